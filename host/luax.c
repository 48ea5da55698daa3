/*
 * Helpers of the Lua binding files: see luax.h. Loop thread only.
 */
#include "luax.h"

#include <string.h>

#include "err.h"
#include "log.h"
#include "util.h"

#define GUARD_TYPE "efr.guard"
#define GUARD_FD_TYPE "efr.guard_fd"

extern const struct luax_module *const __start_efr_luamods[];
extern const struct luax_module *const __stop_efr_luamods[];

static const char closing_key; /* their addresses are the keys in the registry */
static const char loop_key;

void luax_each_module(void (*fn)(const struct luax_module *module, void *arg), void *arg)
{
    for (const struct luax_module *const *at = __start_efr_luamods;
         at < __stop_efr_luamods; at++)
        fn(*at, arg);
}

/* ---- results ---- */

int luax_push_err(lua_State *L, const struct efr_err *err)
{
    lua_pushnil(L);
    lua_pushstring(L, err->text);
    lua_pushstring(L, err->code);
    return 3;
}

int luax_push_errno(lua_State *L, int errnum, const char *what)
{
    struct efr_err err;
    efr_err_errno(&err, errnum, "%s", what);
    return luax_push_err(L, &err);
}

void luax_set_int(lua_State *L, const char *name, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

int luax_push_closed(lua_State *L)
{
    lua_pushnil(L);
    lua_pushliteral(L, "closed");
    lua_pushliteral(L, "EFR_CLOSED");
    return 3;
}

int luax_push_ok(lua_State *L, int rc, const struct efr_err *err)
{
    if (rc != 0)
        return luax_push_err(L, err);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- arguments ---- */

const char *luax_check_path(lua_State *L, int arg)
{
    size_t len;
    const char *path = luaL_checklstring(L, arg, &len);
    luaL_argcheck(L, len > 0, arg, "empty path");
    luaL_argcheck(L, strlen(path) == len, arg, "NUL in path");
    return path;
}

lua_Integer luax_check_int(lua_State *L, int arg, lua_Integer min, lua_Integer max)
{
    lua_Integer value = luaL_checkinteger(L, arg);
    luaL_argcheck(L, value >= min && value <= max, arg, "number out of range");
    return value;
}

lua_Integer luax_opt_int(lua_State *L, int arg, lua_Integer def, lua_Integer min,
                         lua_Integer max)
{
    return lua_isnoneornil(L, arg) ? def : luax_check_int(L, arg, min, max);
}

int luax_check_fd(lua_State *L, int arg)
{
    return (int)luax_check_int(L, arg, 0, 1 << 20);
}

lua_Integer luax_field_int(lua_State *L, int arg, const char *name, lua_Integer def,
                           lua_Integer max)
{
    lua_Integer value = def;
    if (lua_getfield(L, arg, name) != LUA_TNIL) {
        int ok;
        value = lua_tointegerx(L, -1, &ok);
        if (!ok || value < 0 || value > max)
            luaL_error(L, "field '%s': no integer from 0 to %I", name, (LUAI_UACINT)max);
    }
    lua_pop(L, 1);
    return value;
}

int luax_field_bool(lua_State *L, int arg, const char *name)
{
    int type = lua_getfield(L, arg, name);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_error(L, "field '%s': no boolean", name);
    int value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

const char *luax_field_str(lua_State *L, int arg, const char *name)
{
    int type = lua_getfield(L, arg, name);
    if (type != LUA_TNIL && type != LUA_TSTRING)
        luaL_error(L, "field '%s': no string", name);
    size_t len = 0;
    const char *value = lua_tolstring(L, -1, &len);
    if (value && strlen(value) != len)
        luaL_error(L, "field '%s': NUL in string", name);
    lua_pop(L, 1); /* the table keeps it alive */
    return value;
}

/* ---- temporaries ---- */

struct guard {
    void *ptr;
    void (*release)(void *ptr);
};

static int guard_close(lua_State *L)
{
    struct guard *guard = lua_touserdata(L, 1);
    void *ptr = guard->ptr;
    guard->ptr = NULL;
    if (ptr)
        guard->release(ptr);
    return 0;
}

static int guard_fd_close(lua_State *L)
{
    efr_close(lua_touserdata(L, 1));
    return 0;
}

static void set_guard_type(lua_State *L, const char *type, lua_CFunction close)
{
    if (luaL_newmetatable(L, type)) {
        lua_pushcfunction(L, close);
        lua_setfield(L, -2, "__close");
        lua_pushcfunction(L, close);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    lua_toclose(L, -1);
}

void **luax_guard(lua_State *L, void (*release)(void *ptr))
{
    luaL_checkstack(L, 4, NULL);
    struct guard *guard = lua_newuserdatauv(L, sizeof(*guard), 0);
    guard->ptr = NULL;
    guard->release = release;
    set_guard_type(L, GUARD_TYPE, guard_close);
    return &guard->ptr;
}

int *luax_guard_fd(lua_State *L)
{
    luaL_checkstack(L, 4, NULL);
    int *fd = lua_newuserdatauv(L, sizeof(*fd), 0);
    *fd = -1;
    set_guard_type(L, GUARD_FD_TYPE, guard_fd_close);
    return fd;
}

void *luax_tmp(lua_State *L, size_t size)
{
    luaL_checkstack(L, 1, NULL);
    return lua_newuserdatauv(L, size ? size : 1, 0);
}

/* ---- calls from C into Lua ---- */

int luax_ref(lua_State *L, int arg)
{
    luaL_checktype(L, arg, LUA_TFUNCTION);
    lua_pushvalue(L, arg);
    return luaL_ref(L, LUA_REGISTRYINDEX);
}

void luax_unref(lua_State *L, int *ref)
{
    luaL_unref(L, LUA_REGISTRYINDEX, *ref);
    *ref = LUA_NOREF;
}

static int is_closing(lua_State *L)
{
    int closing = lua_rawgetp(L, LUA_REGISTRYINDEX, &closing_key) == LUA_TBOOLEAN;
    lua_pop(L, 1);
    return closing;
}

void luax_set_closing(lua_State *L)
{
    lua_pushboolean(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &closing_key);
}

void luax_set_loop(lua_State *L, struct uv_loop_s *loop)
{
    lua_pushlightuserdata(L, loop);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &loop_key);
}

struct uv_loop_s *luax_loop(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &loop_key);
    struct uv_loop_s *loop = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return loop;
}

int luax_push_ref(lua_State *L, int ref)
{
    if (ref == LUA_NOREF || ref == LUA_REFNIL || is_closing(L))
        return 0;
    luaL_checkstack(L, 8, NULL);
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    return 1;
}

int luax_traceback(lua_State *L)
{
    const char *text = luaL_tolstring(L, 1, NULL);
    luaL_traceback(L, L, text, 1);
    return 1;
}

int luax_call(lua_State *L, int nargs, int nresults)
{
    int base = lua_gettop(L) - nargs; /* index of the function */
    if (is_closing(L) || !lua_checkstack(L, 4)) {
        lua_settop(L, base - 1);
        return 0;
    }
    lua_pushcfunction(L, luax_traceback);
    lua_insert(L, base);
    int rc = lua_pcall(L, nargs, nresults, base);
    if (rc != LUA_OK) {
        size_t len = 0;
        const char *text = lua_tolstring(L, -1, &len);
        if (text)
            efr_log_text(EFR_LOG_ERROR, text, len);
        else
            efr_logf(EFR_LOG_ERROR, "error in a callback without a text");
        lua_settop(L, base - 1);
        return -1;
    }
    lua_remove(L, base);
    return lua_gettop(L) - base + 1;
}
