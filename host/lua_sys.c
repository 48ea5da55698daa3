/*
 * Module efr.sys: the process, its user and its environment. One primitive a function. Loop thread only.
 */
#include <unistd.h>

#include "log.h"
#include "luax.h"
#include "util.h"

static int sys_getpid(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushinteger(L, getpid());
    return 1;
}

/* traceback(co, text): the text and the stack of a coroutine. */
static int sys_traceback(lua_State *L)
{
    lua_settop(L, 2);
    luaL_checktype(L, 1, LUA_TTHREAD);
    luaL_traceback(L, lua_tothread(L, 1), luaL_checkstring(L, 2), 0);
    return 1;
}

/* log_write(level, text) */
static int sys_log_write(lua_State *L)
{
    lua_settop(L, 2);
    int level = efr_log_level_of(luaL_checkstring(L, 1));
    luaL_argcheck(L, level >= 0, 1, "unknown level");
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    efr_log_text((enum efr_log_level)level, text, len);
    return 0;
}

/* write_stderr(text): one plain message to standard error. */
static int sys_write_stderr(lua_State *L)
{
    lua_settop(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    ssize_t n = write(STDERR_FILENO, text, len);
    lua_pushboolean(L, n == (ssize_t)len);
    return 1;
}

static int luaopen_efr_sys(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"getpid", sys_getpid},
        {"log_write", sys_log_write},
        {"traceback", sys_traceback},
        {"write_stderr", sys_write_stderr},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    lua_pushliteral(L, EFR_VERSION);
    lua_setfield(L, -2, "VERSION");
    return 1;
}

EFR_LUA_MODULE(sys, "efr.sys", luaopen_efr_sys);
