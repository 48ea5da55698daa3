/*
 * efr-lua: the interpreter of the tests. Our sealed state and all C modules, with the
 * standard libraries and the search paths of the system added on top, because busted and
 * its libraries need them. Never installed.
 * Usage: efr-lua SCRIPT [ARG...]
 */
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "err.h"
#include "luax.h"
#include "state.h"

static const char paths[] =
    "package.path = '/usr/local/share/lua/5.4/?.lua;/usr/share/lua/5.4/?.lua;"
    "/usr/share/lua/5.4/?/init.lua;./?.lua'\n"
    "package.cpath = '/usr/lib/x86_64-linux-gnu/lua/5.4/?.so;"
    "/usr/lib/aarch64-linux-gnu/lua/5.4/?.so'\n";

/* os.exit that closes the state, after the loop has let go of what is closing: luv's finalizer
 * frees such a handle, as efr_state_destroy says. */
static int settled_exit(lua_State *L)
{
    int count = lua_gettop(L);
    if (lua_toboolean(L, 2)) {
        luax_set_closing(L);
        for (int i = 0; i < 2; i++)
            (void)uv_run(luax_loop(L), UV_RUN_NOWAIT);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, count, 0);
    return 0;
}

/* Opens the package library once more, because the sealed state took its searchers away.
 * package.loaded and preload stay those of the state. */
static int unseal(lua_State *L)
{
    static const luaL_Reg libs[] = {
        {LUA_GNAME, luaopen_base}, /* dofile, loadfile, load */
        {LUA_IOLIBNAME, luaopen_io},
        {LUA_OSLIBNAME, luaopen_os},
        {LUA_DBLIBNAME, luaopen_debug},
    };
    for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
        lua_pushcfunction(L, libs[i].func);
        lua_pushstring(L, libs[i].name);
        lua_call(L, 1, 1);
        lua_pushvalue(L, -1);
        lua_setglobal(L, libs[i].name);
        lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        lua_insert(L, -2);
        lua_setfield(L, -2, libs[i].name);
        lua_pop(L, 1);
    }
    lua_getglobal(L, "os");
    lua_getfield(L, -1, "exit");
    lua_pushcclosure(L, settled_exit, 1);
    lua_setfield(L, -2, "exit");
    lua_settop(L, 0);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "searchers");
    lua_rawgeti(L, -1, 2); // sealed searchers embedded
    lua_pushcfunction(L, luaopen_package);
    lua_call(L, 0, 1); // sealed searchers embedded package
    lua_pushvalue(L, -1);
    lua_setglobal(L, "package");
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "package");
    lua_pop(L, 1);
    lua_getfield(L, -1, "searchers");
    lua_pushvalue(L, -3);
    lua_rawseti(L, -2, 5); /* the embedded files come last */
    lua_settop(L, 0);
    if (luaL_dostring(L, paths) != LUA_OK)
        return lua_error(L);
    return 0;
}

static int run_script(lua_State *L)
{
    char **argv = lua_touserdata(L, 1);
    lua_settop(L, 0);
    unseal(L);
    lua_newtable(L);
    int n = 0;
    for (; argv[n + 1]; n++) {
        lua_pushstring(L, argv[n + 1]);
        lua_rawseti(L, -2, n);
    }
    lua_pushstring(L, argv[0]);
    lua_rawseti(L, -2, -1);
    lua_setglobal(L, "arg");
    if (luaL_loadfile(L, argv[1]) != LUA_OK)
        return lua_error(L);
    luaL_checkstack(L, n, NULL);
    for (int i = 1; i < n; i++)
        lua_pushstring(L, argv[i + 1]);
    lua_call(L, n - 1, 0);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: efr-lua SCRIPT [ARG...]\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0)
        return 1;
    struct efr_err err = {0};
    struct efr_state_opts opts = {.loop = &loop};
    struct efr_state *state = efr_state_create(&opts, &err);
    if (!state) {
        (void)fprintf(stderr, "efr-lua: %s\n", err.text);
        return 1;
    }
    lua_State *L = efr_state_lua(state);
    lua_pushcfunction(L, luax_traceback);
    lua_pushcfunction(L, run_script);
    lua_pushlightuserdata(L, argv);
    int rc = 0;
    if (lua_pcall(L, 1, 0, 1) != LUA_OK) {
        (void)fprintf(stderr, "efr-lua: %s\n", lua_tostring(L, -1));
        rc = 1;
    }
    lua_settop(L, 0);
    efr_state_destroy(state);
    if (uv_loop_close(&loop) != 0)
        (void)fprintf(stderr, "efr-lua: handles were left on the loop\n");
    return rc;
}
