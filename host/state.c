/*
 * The sealed Lua state: see state.h. Loop thread only.
 */
#include "state.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embed.h"
#include "err.h"
#include "luax.h"
#include "proc.h"
#include "util.h"

/* Debian's lua-lpeg-dev has no header, and that of luv does not pass our warnings. */
int luaopen_lpeg(lua_State *L);
int luaopen_luv(lua_State *L);
void luv_set_loop(lua_State *L, uv_loop_t *loop);
void luv_set_callback(lua_State *L,
                      int (*call)(lua_State *L, int nargs, int nresults, int flags));

struct efr_state {
    lua_State *L;
    size_t used_bytes;
    size_t max_bytes;
    uv_loop_t *loop; /* borrowed */
};

static void wiping_free(void *ptr, size_t size)
{
    if (ptr)
        efr_wipe(ptr, size);
    free(ptr);
}

/* Messages and files carry passwords and keys, and Lua strings hold them: what is freed is overwritten first. */
static void *alloc(void *ud, void *ptr, size_t old_size, size_t new_size)
{
    struct efr_state *state = ud;
    size_t old = ptr ? old_size : 0;
    if (new_size == 0) {
        wiping_free(ptr, old);
        state->used_bytes -= old;
        return NULL;
    }
    /* Shrinking must never fail. */
    if (new_size > old && state->max_bytes &&
        state->used_bytes - old + new_size > state->max_bytes)
        return NULL;
    void *result = NULL;
    if (new_size <= old) {
        efr_wipe((char *)ptr + new_size, old - new_size);
        result = realloc(ptr, new_size);
    } else if ((result = malloc(new_size))) {
        if (ptr)
            memcpy(result, ptr, old);
        wiping_free(ptr, old);
    }
    if (result)
        state->used_bytes += new_size - old;
    return result;
}

static int panic(lua_State *L)
{
    const char *text = lua_tostring(L, -1);
    (void)fprintf(stderr, "efr: unprotected Lua error: %s\n", text ? text : "(no text)");
    return 0; /* Lua aborts */
}

/* load() for text only: bytecode can break the interpreter. */
static int load_text(lua_State *L)
{
    lua_settop(L, 4);
    int has_env = !lua_isnil(L, 4);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    const char *name = luaL_optstring(L, 2, "=(load)");
    if (luaL_loadbufferx(L, text, len, name, "t") != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    if (has_env) {
        lua_pushvalue(L, 4);
        if (!lua_setupvalue(L, -2, 1))
            lua_pop(L, 1);
    }
    return 1;
}

/* ---- modules ---- */

static int push_text(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    return 1;
}

static int load_entry(lua_State *L, const struct efr_embed *entry)
{
    char path[1024];
    if (efr_embed_tree_path(entry, path, sizeof(path))) {
        if (entry->kind == EFR_EMBED_LUA)
            return luaL_loadfilex(L, path, "t");
    }
    size_t len = (size_t)(entry->end - entry->data);
    if (entry->kind == EFR_EMBED_SQL) {
        lua_pushlstring(L, entry->data, len);
        lua_pushcclosure(L, push_text, 1);
        return LUA_OK;
    }
    lua_pushfstring(L, "@%s", entry->path);
    int rc = luaL_loadbufferx(L, entry->data, len, lua_tostring(L, -1), "bt");
    lua_remove(L, -2);
    return rc;
}

static int search_embedded(lua_State *L)
{
    lua_settop(L, 1);
    const char *name = luaL_checkstring(L, 1);
    const struct efr_embed *entry = efr_embed_find(name, 0);
    if (!entry) {
        lua_pushfstring(L, "no module '%s' in this program", name);
        return 1;
    }
    if (load_entry(L, entry) != LUA_OK)
        return luaL_error(L, "load module '%s': %s", name, lua_tostring(L, -1));
    lua_pushstring(L, entry->path);
    return 2;
}

static void add_preload(const struct luax_module *module, void *arg)
{
    lua_State *L = arg; // preload
    lua_pushcfunction(L, module->open);
    lua_setfield(L, -2, module->name);
}

/* package: no paths, no loadlib, searchers = preload and the embedded files. */
static void seal_package(lua_State *L)
{
    lua_getglobal(L, LUA_LOADLIBNAME); // package
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "path");
    lua_pushliteral(L, "");
    lua_setfield(L, -2, "cpath");
    static const char *const gone[] = {"loadlib", "searchpath", "config"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        lua_pushnil(L);
        lua_setfield(L, -2, gone[i]);
    }
    lua_getfield(L, -1, "searchers"); // package searchers
    for (int i = 4; i >= 3; i--) {
        lua_pushnil(L);
        lua_rawseti(L, -2, i);
    }
    lua_pushcfunction(L, search_embedded);
    lua_rawseti(L, -2, 2);
    lua_pop(L, 1);
    lua_getfield(L, -1, "preload"); // package preload
    luax_each_module(add_preload, L);
    lua_pushcfunction(L, luaopen_luv);
    lua_setfield(L, -2, "luv");
    lua_pushcfunction(L, luaopen_lpeg);
    lua_setfield(L, -2, "lpeg");
    lua_pop(L, 2);
}

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libs[] = {
        {LUA_GNAME, luaopen_base},          {LUA_LOADLIBNAME, luaopen_package},
        {LUA_COLIBNAME, luaopen_coroutine}, {LUA_TABLIBNAME, luaopen_table},
        {LUA_STRLIBNAME, luaopen_string},   {LUA_MATHLIBNAME, luaopen_math},
        {LUA_UTF8LIBNAME, luaopen_utf8},
    };
    for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
        luaL_requiref(L, libs[i].name, libs[i].func, 1);
        lua_pop(L, 1);
    }
    static const char *const gone[] = {"dofile", "loadfile"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        lua_pushnil(L);
        lua_setglobal(L, gone[i]);
    }
    lua_pushcfunction(L, load_text);
    lua_setglobal(L, "load");
    lua_getglobal(L, LUA_STRLIBNAME); // string
    lua_pushnil(L);
    lua_setfield(L, -2, "dump");
    lua_pop(L, 1);
}

/* ---- the loop ---- */

/* luv's own routine ends the process on an error (trap T1); this one logs and goes on. */
static int guarded_callback(lua_State *L, int nargs, int nresults, int flags)
{
    (void)flags;
    int n = luax_call(L, nargs, nresults);
    return n < 0 ? -LUA_ERRRUN : n;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* Runs as the last finalizer of the state: luv's own finalizers have asked for the
 * closing of their handles, and their close callbacks still need the state. */
static int drain_loop(lua_State *L)
{
    uv_loop_t **loop = lua_touserdata(L, 1);
    if (!*loop)
        return 0;
    efr_proc_finish_all();
    uv_walk(*loop, close_handle, NULL);
    (void)uv_run(*loop, UV_RUN_DEFAULT);
    *loop = NULL;
    return 0;
}

static void attach_loop(lua_State *L, uv_loop_t *loop)
{
    uv_loop_t **slot = lua_newuserdatauv(L, sizeof(void *), 0); // slot
    *slot = loop;
    lua_newtable(L);
    lua_pushcfunction(L, drain_loop);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    (void)luaL_ref(L, LUA_REGISTRYINDEX);
    luax_set_loop(L, loop);
    luv_set_loop(L, loop);
    luv_set_callback(L, guarded_callback);
}

static int setup(lua_State *L)
{
    uv_loop_t *loop = lua_touserdata(L, 1);
    attach_loop(L, loop);
    open_libraries(L);
    seal_package(L);
    return 0;
}

struct efr_state *efr_state_create(const struct efr_state_opts *opts, struct efr_err *err)
{
    struct efr_state *state = xcalloc(1, sizeof(*state));
    state->max_bytes = opts->memory_max_bytes;
    state->loop = opts->loop;
    state->L = lua_newstate(alloc, state);
    if (!state->L) {
        efr_err_set(err, "ENOMEM", "no memory for a Lua state");
        free(state);
        return NULL;
    }
    lua_State *L = state->L;
    lua_atpanic(L, panic);
    lua_pushcfunction(L, setup);
    lua_pushlightuserdata(L, opts->loop);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        efr_err_set(err, "EFR_LUA", "set up the Lua state: %s", lua_tostring(L, -1));
        efr_state_destroy(state);
        return NULL;
    }
    return state;
}

void efr_state_destroy(struct efr_state *state)
{
    if (!state)
        return;
    luax_set_closing(state->L);
    /* luv's finalizer frees a handle that is already closing, so the loop must have let
     * go of it before. A loop that was told to stop returns once without a turn. */
    for (int i = 0; state->loop && i < 2; i++)
        (void)uv_run(state->loop, UV_RUN_NOWAIT);
    lua_close(state->L);
    free(state);
}

lua_State *efr_state_lua(struct efr_state *state)
{
    return state->L;
}

size_t efr_state_memory(const struct efr_state *state)
{
    return state->used_bytes;
}

/* ---- running a program ---- */

/* Runs require("efr.boot").start(role, args); both come as light userdata. */
static int start_boot(lua_State *L)
{
    const char *role = lua_touserdata(L, 1);
    char **argv = lua_touserdata(L, 2);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "efr.boot");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "start");
    lua_pushstring(L, role);
    lua_newtable(L);
    for (int i = 0; argv[i]; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 2, 1);
    return 1;
}

/* Runs one protected step and takes its integer result. */
static int protected_int(lua_State *L, int nargs, struct efr_err *err)
{
    int base = lua_gettop(L) - nargs;
    lua_pushcfunction(L, luax_traceback);
    lua_insert(L, base);
    if (lua_pcall(L, nargs, 1, base) != LUA_OK) {
        const char *text = lua_tostring(L, -1);
        efr_err_set(err, "EFR_LUA", "%s", text ? text : "error without a text");
        lua_settop(L, base - 1);
        return -1;
    }
    int code = (int)lua_tointeger(L, -1);
    lua_settop(L, base - 1);
    return code;
}

int efr_state_run(struct efr_state *state, const char *role, char **argv,
                  struct efr_err *err)
{
    lua_State *L = state->L;
    lua_pushcfunction(L, start_boot);
    lua_pushlightuserdata(L, (void *)(uintptr_t)role);
    lua_pushlightuserdata(L, argv);
    return protected_int(L, 2, err);
}
