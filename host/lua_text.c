/*
 * Module efr.text: UTF-8, clusters, widths and visible forms. Loop thread only.
 */
#include <stdlib.h>

#include "buf.h"
#include "luax.h"
#include "text.h"
#include "util.h"

static void release_buf(void *ptr)
{
    efr_buf_finish(ptr);
    free(ptr);
}

static int convert(lua_State *L, void (*fn)(const char *, size_t, struct efr_buf *))
{
    lua_settop(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    void **slot = luax_guard(L, release_buf);
    struct efr_buf *buf = xmalloc(sizeof(*buf));
    efr_buf_init(buf, false);
    *slot = buf;
    fn(text, len, buf);
    lua_pushlstring(L, buf->data ? buf->data : "", buf->len);
    return 1;
}

/* is_utf8(text) */
static int text_is_utf8(lua_State *L)
{
    lua_settop(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_pushboolean(L, efr_text_is_utf8(text, len));
    return 1;
}

/* clean(text): U+FFFD in place of what is no UTF-8. */
static int text_clean(lua_State *L)
{
    return convert(L, efr_text_clean);
}

/* printable(text): every character visible. */
static int text_printable(lua_State *L)
{
    return convert(L, efr_text_printable);
}

/* width(text): columns on a terminal. */
static int text_width(lua_State *L)
{
    lua_settop(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_pushinteger(L, (lua_Integer)efr_text_width(text, len));
    return 1;
}

/* next_grapheme(text, index): the index after the cluster that starts at index; nil after
 * the end. */
static int text_next_grapheme(lua_State *L)
{
    lua_settop(L, 2);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer at = luax_check_int(L, 2, 1, LUA_MAXINTEGER);
    if ((lua_Unsigned)at > len) {
        lua_pushnil(L);
        return 1;
    }
    size_t n = efr_text_cluster(text + at - 1, len - (size_t)(at - 1));
    lua_pushinteger(L, at + (lua_Integer)n);
    return 1;
}

static int luaopen_efr_text(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"clean", text_clean},
        {"is_utf8", text_is_utf8},
        {"next_grapheme", text_next_grapheme},
        {"printable", text_printable},
        {"width", text_width},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(text, "efr.text", luaopen_efr_text);
