/*
 * Module efr.json: JSON over jansson. 64-bit integers are exact, integers and floats stay
 * what they are, an array is a table with the array metatable (decoded ones have it), and
 * [] stays []. Memory of jansson is overwritten when it is freed: keys travel through
 * here. Loop thread only.
 */
#include <jansson.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "luax.h"
#include "util.h"

#define ARRAY_TYPE "efr.json.array"
#define DEPTH_LIMIT 256
#define DECODE_DEPTH 64
#define ENCODE_DEPTH 200
#define DECODE_MAX_BYTES ((lua_Integer)64 << 20)

static void wiping_free(void *ptr)
{
    if (!ptr)
        return;
    efr_wipe(ptr, malloc_usable_size(ptr));
    free(ptr);
}

static void release_json(void *ptr)
{
    json_decref(ptr);
}

static int push_failure(lua_State *L, const char *text)
{
    lua_pushnil(L);
    lua_pushstring(L, text);
    lua_pushliteral(L, "EFR_JSON");
    return 3;
}

/* ---- decode ---- */

/* Pushes one value. Returns NULL, or a static text of what is wrong with it. */
static const char *push_value(lua_State *L, json_t *value, int depth);

static const char *push_array(lua_State *L, json_t *array, int depth)
{
    size_t count = json_array_size(array);
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (size_t i = 0; i < count; i++) {
        const char *wrong = push_value(L, json_array_get(array, i), depth - 1);
        if (wrong)
            return wrong;
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    luaL_setmetatable(L, ARRAY_TYPE);
    return NULL;
}

static const char *push_object(lua_State *L, json_t *object, int depth)
{
    lua_createtable(L, 0, (int)json_object_size(object));
    for (void *at = json_object_iter(object); at;
         at = json_object_iter_next(object, at)) {
        lua_pushlstring(L, json_object_iter_key(at), json_object_iter_key_len(at));
        const char *wrong = push_value(L, json_object_iter_value(at), depth - 1);
        if (wrong)
            return wrong;
        lua_rawset(L, -3);
    }
    return NULL;
}

static const char *push_value(lua_State *L, json_t *value, int depth)
{
    luaL_checkstack(L, 4, "JSON too deep");
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return depth > 0 ? push_object(L, value, depth) : "nested too deep";
    case JSON_ARRAY:
        return depth > 0 ? push_array(L, value, depth) : "nested too deep";
    case JSON_STRING:
        lua_pushlstring(L, json_string_value(value), json_string_length(value));
        return NULL;
    case JSON_INTEGER:
        lua_pushinteger(L, json_integer_value(value));
        return NULL;
    case JSON_REAL:
        lua_pushnumber(L, json_real_value(value));
        return NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        lua_pushboolean(L, json_is_true(value));
        return NULL;
    case JSON_NULL:
    default:
        lua_pushlightuserdata(L, NULL);
        return NULL;
    }
}

/* jansson accepts deeper nesting than we do and recurses for it, so the depth is counted
 * before it runs: brackets outside of strings. */
static int too_deep(const char *text, size_t len, int limit)
{
    int depth = 0;
    int in_string = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = 0;
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '[' || c == '{') {
            if (++depth > limit)
                return 1;
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return 0;
}

/* decode(text, options) */
static int json_decode(lua_State *L)
{
    lua_settop(L, 2);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_Integer depth = DECODE_DEPTH;
    lua_Integer max_bytes = DECODE_MAX_BYTES;
    if (!lua_isnil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        depth = luax_field_int(L, 2, "max_depth", DECODE_DEPTH, DEPTH_LIMIT);
        max_bytes = luax_field_int(L, 2, "max_bytes", DECODE_MAX_BYTES, INT32_MAX);
    }
    if ((lua_Integer)len > max_bytes)
        return push_failure(L, "JSON: text too long");
    if (too_deep(text, len, (int)depth))
        return push_failure(L, "JSON: nested too deep");
    void **slot = luax_guard(L, release_json);
    json_error_t error;
    *slot = json_loadb(text, len,
                       JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!*slot) {
        struct efr_err err;
        char *near = strstr(error.text, " near '");
        if (near) /* it quotes the text, and that may be a secret */
            *near = '\0';
        efr_err_set(&err, "EFR_JSON", "JSON: %s at byte %d", error.text, error.position);
        return luax_push_err(L, &err);
    }
    const char *wrong = push_value(L, *slot, (int)depth);
    return wrong ? push_failure(L, wrong) : 1;
}

/* ---- encode ---- */

static const void *array_type_of(lua_State *L)
{
    luaL_getmetatable(L, ARRAY_TYPE);
    const void *type = lua_topointer(L, -1);
    lua_pop(L, 1);
    return type;
}

struct encoder {
    lua_State *L;
    const void *array_type; /* address of the array metatable */
    int precision;          /* digits that every float of the value needs */
    struct efr_err err;
};

static json_t *make_value(struct encoder *enc, int arg, int depth);

static json_t *refuse(struct encoder *enc, const char *text)
{
    if (!enc->err.text[0])
        efr_err_set(&enc->err, "EFR_JSON", "JSON: %s", text);
    return NULL;
}

static json_t *make_string(struct encoder *enc, int arg)
{
    size_t len;
    const char *text = lua_tolstring(enc->L, arg, &len);
    json_t *value = json_stringn(text, len);
    return value ? value : refuse(enc, "a string is no UTF-8");
}

/* The shortest of 15, 16 and 17 digits that gives the number back. */
static int digits_of(double number)
{
    char text[64];
    for (int digits = 15; digits < 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            return digits;
    }
    return 17;
}

static json_t *make_number(struct encoder *enc, int arg)
{
    if (lua_isinteger(enc->L, arg))
        return json_integer(lua_tointeger(enc->L, arg));
    double number = lua_tonumber(enc->L, arg);
    if (!isfinite(number))
        return refuse(enc, "a number is not finite");
    int digits = digits_of(number);
    if (digits > enc->precision)
        enc->precision = digits;
    return json_real(number);
}

static json_t *make_array(struct encoder *enc, int arg, int depth)
{
    lua_State *L = enc->L;
    lua_Integer count = (lua_Integer)lua_rawlen(L, arg);
    json_t *array = json_array();
    for (lua_Integer i = 1; array && i <= count; i++) {
        lua_rawgeti(L, arg, i);
        json_t *value = make_value(enc, lua_gettop(L), depth - 1);
        lua_pop(L, 1);
        if (!value || json_array_append_new(array, value) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* Adds the pair on the stack top. */
static int add_pair(struct encoder *enc, json_t *object, int depth)
{
    lua_State *L = enc->L;
    if (lua_type(L, -2) != LUA_TSTRING) {
        (void)refuse(enc, "a table has keys of an array and of an object, or a hole");
        return -1;
    }
    size_t len;
    const char *key = lua_tolstring(L, -2, &len);
    if (strlen(key) != len) {
        (void)refuse(enc, "NUL in a key");
        return -1;
    }
    json_t *value = make_value(enc, lua_gettop(L), depth - 1);
    if (!value)
        return -1;
    if (json_object_set_new(object, key, value) != 0) {
        (void)refuse(enc, "a key is no UTF-8");
        return -1;
    }
    return 0;
}

static json_t *make_object(struct encoder *enc, int arg, int depth)
{
    lua_State *L = enc->L;
    json_t *object = json_object();
    lua_pushnil(L);
    while (object && lua_next(L, arg)) {
        if (add_pair(enc, object, depth) != 0) {
            lua_pop(L, 2);
            json_decref(object);
            return NULL;
        }
        lua_pop(L, 1);
    }
    return object;
}

static int has_array_type(lua_State *L, int arg, const void *array_type)
{
    if (!lua_getmetatable(L, arg))
        return 0;
    int same = lua_topointer(L, -1) == array_type;
    lua_pop(L, 1);
    return same;
}

/* Whether every key is one of 1..n: what # promises only for sequences. */
static int is_sequence(lua_State *L, int arg)
{
    lua_Integer len = (lua_Integer)lua_rawlen(L, arg);
    lua_Integer count = 0;
    lua_pushnil(L);
    while (lua_next(L, arg)) {
        lua_pop(L, 1);
        if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1 ||
            lua_tointeger(L, -1) > len) {
            lua_pop(L, 1);
            return 0;
        }
        count++;
    }
    return count == len;
}

static json_t *make_table(struct encoder *enc, int arg, int depth)
{
    if (depth <= 0)
        return refuse(enc, "nested too deep");
    int marked = has_array_type(enc->L, arg, enc->array_type);
    if (!marked && lua_rawlen(enc->L, arg) == 0)
        return make_object(enc, arg, depth);
    if (!is_sequence(enc->L, arg))
        return refuse(enc, "a table has keys of an array and of an object, or a hole");
    return make_array(enc, arg, depth);
}

/* Only functions that raise no Lua error are called below this point: json_t trees in the
 * making have no guard. The stack is grown before by json_encode. */
static json_t *make_value(struct encoder *enc, int arg, int depth)
{
    switch (lua_type(enc->L, arg)) {
    case LUA_TTABLE:
        return make_table(enc, arg, depth);
    case LUA_TSTRING:
        return make_string(enc, arg);
    case LUA_TNUMBER:
        return make_number(enc, arg);
    case LUA_TBOOLEAN:
        return json_boolean(lua_toboolean(enc->L, arg));
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(enc->L, arg))
            return json_null();
        break;
    default:
        break;
    }
    return refuse(enc, "a value of this type has no JSON form");
}

static int append_text(const char *data, size_t len, void *arg)
{
    efr_buf_append(arg, data, len);
    return 0;
}

static void release_buf(void *ptr)
{
    efr_buf_finish(ptr);
    free(ptr);
}

/* encode(value, options) */
static int json_encode(lua_State *L)
{
    lua_settop(L, 2);
    luaL_checkany(L, 1);
    size_t flags = JSON_COMPACT | JSON_ENCODE_ANY;
    if (!lua_isnil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        flags |= luax_field_bool(L, 2, "sort") ? JSON_SORT_KEYS : 0;
        if (luax_field_bool(L, 2, "pretty"))
            flags = (flags & ~(size_t)JSON_COMPACT) | JSON_INDENT(2);
    }
    luaL_checkstack(L, ENCODE_DEPTH * 4 + 16, "JSON too deep");
    void **tree = luax_guard(L, release_json);
    void **slot = luax_guard(L, release_buf);
    struct encoder enc = {.L = L, .array_type = array_type_of(L), .precision = 15};
    *tree = make_value(&enc, 1, ENCODE_DEPTH);
    if (!*tree) {
        (void)refuse(&enc, "out of memory");
        return luax_push_err(L, &enc.err);
    }
    struct efr_buf *buf = xmalloc(sizeof(*buf));
    efr_buf_init(buf, true);
    *slot = buf;
    flags |= JSON_REAL_PRECISION((size_t)enc.precision);
    if (json_dump_callback(*tree, append_text, buf, flags) != 0)
        return push_failure(L, "JSON: cannot be written");
    lua_pushlstring(L, buf->data ? buf->data : "", buf->len);
    return 1;
}

/* ---- arrays ---- */

/* array(table): marks it as an array and returns it. */
static int json_mark_array(lua_State *L)
{
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argcheck(L, !lua_getmetatable(L, 1) || has_array_type(L, 1, array_type_of(L)), 1,
                  "table has a metatable");
    lua_settop(L, 1);
    luaL_setmetatable(L, ARRAY_TYPE);
    return 1;
}

/* is_array(value): whether it is marked. */
static int json_is_marked(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushboolean(L, lua_istable(L, 1) && has_array_type(L, 1, array_type_of(L)));
    return 1;
}

static int luaopen_efr_json(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"array", json_mark_array},
        {"decode", json_decode},
        {"encode", json_encode},
        {"is_array", json_is_marked},
        {NULL, NULL},
    };
    size_t seed;
    efr_random(&seed, sizeof(seed));
    json_object_seed(seed | 1); /* else jansson opens a file for it */
    json_set_alloc_funcs(malloc, wiping_free);
    luaL_newmetatable(L, ARRAY_TYPE);
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}

EFR_LUA_MODULE(json, "efr.json", luaopen_efr_json);
