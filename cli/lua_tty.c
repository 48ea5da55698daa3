/*
 * efr.tty for Lua: the terminal primitives of tty.h. No logic. Loop thread.
 */
#include "err.h"
#include "luax.h"
#include "tty.h"

/* size(fd) -> cols, lines */
static int l_size(lua_State *L)
{
    struct efr_err err;
    int cols;
    int lines;

    lua_settop(L, 1);
    if (tty_size(luax_check_fd(L, 1), &cols, &lines, &err) != 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, cols);
    lua_pushinteger(L, lines);
    return 2;
}

/* save(fd) -> true */
static int l_save(lua_State *L)
{
    struct efr_err err;

    lua_settop(L, 1);
    return luax_push_ok(L, tty_save(luax_check_fd(L, 1), &err), &err);
}

/* set_mode("quiet"|"keys"|"raw") -> true */
static int l_set_mode(lua_State *L)
{
    static const char *const names[] = {"quiet", "keys", "raw", NULL};
    static const enum tty_mode modes[] = {TTY_MODE_QUIET, TTY_MODE_KEYS, TTY_MODE_RAW};
    struct efr_err err;

    lua_settop(L, 1);
    enum tty_mode mode = modes[luaL_checkoption(L, 1, NULL, names)];
    return luax_push_ok(L, tty_set_mode(mode, &err), &err);
}

/* restore(flush) -> true */
static int l_restore(lua_State *L)
{
    struct efr_err err;

    lua_settop(L, 1);
    return luax_push_ok(L, tty_restore(lua_toboolean(L, 1), &err), &err);
}

/* flush_input(fd) -> true */
static int l_flush_input(lua_State *L)
{
    struct efr_err err;

    lua_settop(L, 1);
    return luax_push_ok(L, tty_flush_input(luax_check_fd(L, 1), &err), &err);
}

/* foreground(fd) -> boolean */
static int l_foreground(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushboolean(L, tty_foreground(luax_check_fd(L, 1)));
    return 1;
}

/* farewell(fd, bytes) -> true */
static int l_farewell(lua_State *L)
{
    struct efr_err err;
    size_t len_bytes;

    lua_settop(L, 2);
    int fd = luax_check_fd(L, 1);
    const char *text = luaL_checklstring(L, 2, &len_bytes);
    return luax_push_ok(L, tty_farewell(fd, text, len_bytes, &err), &err);
}

/* read(fd) -> bytes; empty when nothing is there or the input ended */
static int l_read(lua_State *L)
{
    struct efr_err err;
    char buf[4096];

    lua_settop(L, 1);
    ssize_t count = tty_read(luax_check_fd(L, 1), buf, sizeof(buf), &err);
    if (count < 0)
        return luax_push_err(L, &err);
    lua_pushlstring(L, buf, (size_t)count);
    return 1;
}

/* write(fd, bytes) -> true */
static int l_write(lua_State *L)
{
    struct efr_err err;
    size_t len_bytes;

    lua_settop(L, 2);
    int fd = luax_check_fd(L, 1);
    const char *text = luaL_checklstring(L, 2, &len_bytes);
    return luax_push_ok(L, tty_write(fd, text, len_bytes, &err), &err);
}

int luaopen_efr_tty(lua_State *L);

int luaopen_efr_tty(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"size", l_size},
        {"save", l_save},
        {"set_mode", l_set_mode},
        {"restore", l_restore},
        {"flush_input", l_flush_input},
        {"foreground", l_foreground},
        {"farewell", l_farewell},
        {"read", l_read},
        {"write", l_write},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(tty, "efr.tty", luaopen_efr_tty);
