/*
 * Module efr.reach: whether places of the file system answer, asked in a process of its own.
 * What it means that one does not is the caller's business. Loop thread only.
 */
#include "err.h"
#include "luax.h"
#include "reach.h"

#define MAX_BYTES ((size_t)1024 * 1024)

/* reach.ask(paths, seconds): NUL-terminated, one after the other -> a descriptor. */
static int reach_ask(lua_State *L)
{
    size_t len = 0;
    struct efr_err err;
    lua_settop(L, 2);
    const char *paths = luaL_checklstring(L, 1, &len);
    luaL_argcheck(L, len > 0 && len <= MAX_BYTES && paths[len - 1] == '\0', 1,
                  "not a list of paths");
    unsigned int seconds = (unsigned int)luax_check_int(L, 2, 1, 3600);
    int fd = efr_reach_ask(paths, len, seconds, &err);
    if (fd < 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, fd);
    return 1;
}

static const luaL_Reg functions[] = {
    {"ask", reach_ask},
    {NULL, NULL},
};

static int luaopen_efr_reach(lua_State *L)
{
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(reach, "efr.reach", luaopen_efr_reach);
