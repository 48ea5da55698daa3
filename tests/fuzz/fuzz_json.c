/*
 * Fuzzes efr.json: whatever the bytes are, decode gives a value or an error, and a value
 * survives a round trip unchanged.
 */
// sources: host/lua_json.c host/luax.c host/err.c host/util.c host/buf.c host/log.c
#include <lauxlib.h>
#include <lualib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "luax.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static lua_State *L;

static void add(const struct luax_module *module, void *arg)
{
    (void)arg;
    luaL_requiref(L, module->name, module->open, 0);
    lua_setglobal(L, "json");
}

static const char check[] = "local text = ...\n"
                            "local value, err, code = json.decode(text)\n"
                            "if code then\n"
                            "  assert(value == nil and code == 'EFR_JSON' and #err > 6)\n"
                            "  return\n"
                            "end\n"
                            "local first = assert(json.encode(value, {sort = true}))\n"
                            "local again = assert(json.decode(first, {max_depth = 64}))\n"
                            "assert(json.encode(again, {sort = true}) == first)\n"
                            "assert(not first:find('[\\0-\\31]'))\n"
                            "assert(json.encode(value, {pretty = true}))\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!L) {
        L = luaL_newstate();
        luaL_openlibs(L);
        luax_each_module(add, NULL);
        if (luaL_loadstring(L, check) != LUA_OK)
            abort();
    }
    lua_pushvalue(L, 1);
    lua_pushlstring(L, (const char *)data, size);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
        (void)fprintf(stderr, "%s\n", lua_tostring(L, -1));
        abort();
    }
    lua_settop(L, 1);
    return 0;
}
