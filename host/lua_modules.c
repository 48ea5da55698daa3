/*
 * Module efr.modules: which modules this program holds. Knows nothing of what they do.
 * Loop thread only.
 */
#include <stdlib.h>
#include <string.h>

#include "embed.h"
#include "luax.h"

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* list(prefix): the names of the embedded modules that start with prefix, sorted. */
static int modules_list(lua_State *L)
{
    lua_settop(L, 1);
    size_t len;
    const char *prefix = luaL_optlstring(L, 1, "", &len);
    const char **names = luax_tmp(L, efr_embed_count * sizeof(*names));
    size_t count = 0;
    for (size_t i = 0; i < efr_embed_count; i++) {
        const struct efr_embed *entry = &efr_embed_table[i];
        if (entry->kind != EFR_EMBED_ASSET && !strncmp(entry->name, prefix, len))
            names[count++] = entry->name;
    }
    qsort(names, count, sizeof(*names), compare);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static void add_name(const struct luax_module *module, void *arg)
{
    lua_State *L = arg;
    lua_pushstring(L, module->name);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* native(): the names of the C modules of this program, in no order. */
static int modules_native(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    luax_each_module(add_name, L);
    return 1;
}

static int luaopen_efr_modules(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"list", modules_list},
        {"native", modules_native},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(modules, "efr.modules", luaopen_efr_modules);
