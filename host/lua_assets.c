/*
 * Module efr.assets: the embedded files that are no Lua (zsh/). Loop thread only.
 */
#include "embed.h"
#include "luax.h"

/* get(path): the bytes of an asset by its path in the source tree, nil when there is
 * none. */
static int assets_get(lua_State *L)
{
    lua_settop(L, 1);
    const struct efr_embed *entry = efr_embed_find(luax_check_path(L, 1), 1);
    if (entry)
        lua_pushlstring(L, entry->data, (size_t)(entry->end - entry->data));
    else
        lua_pushnil(L);
    return 1;
}

/* list(): the paths of all assets, in no order. */
static int assets_list(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    lua_Integer count = 0;
    for (size_t i = 0; i < efr_embed_count; i++) {
        if (efr_embed_table[i].kind != EFR_EMBED_ASSET)
            continue;
        lua_pushstring(L, efr_embed_table[i].name);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

static int luaopen_efr_assets(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"get", assets_get},
        {"list", assets_list},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(assets, "efr.assets", luaopen_efr_assets);
