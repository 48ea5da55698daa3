/*
 * lua_http - the Lua module efr.http over http.h.
 *
 * Owns the callbacks of running requests and the pool of the state, made at the first
 * request. Must not know providers or retries. Loop thread only.
 */
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <luv/luv.h>

#include "err.h"
#include "http.h"
#include "luax.h"

#define HANDLE "efr.http.request"
#define POOL "efr.http.pool"

enum { ON_HEAD, ON_DATA, ON_DONE, N_CALLBACKS };

static const char *const callback_names[N_CALLBACKS] = {"on_head", "on_data", "on_done"};

struct handle {
    struct http_request *request; /* NULL = ended */
    lua_State *L;                 /* the main thread of the state */
    int self_ref;                 /* keeps this userdata until the request has ended */
    int callbacks[N_CALLBACKS];
};

int luaopen_efr_http(lua_State *L);

/* -- events ----------------------------------------------------------------------- */

static void on_head(void *arg, int status, const char *lines, size_t len)
{
    struct handle *handle = arg;
    lua_State *L = handle->L;

    if (!luax_push_ref(L, handle->callbacks[ON_HEAD]))
        return;
    lua_pushinteger(L, status);
    lua_pushlstring(L, lines, len);
    (void)luax_call(L, 2, 0);
}

static void on_data(void *arg, const char *bytes, size_t len)
{
    struct handle *handle = arg;
    lua_State *L = handle->L;

    if (!luax_push_ref(L, handle->callbacks[ON_DATA]))
        return;
    lua_pushlstring(L, bytes, len);
    (void)luax_call(L, 1, 0);
}

static void release(lua_State *L, struct handle *handle)
{
    for (int i = 0; i < N_CALLBACKS; i++)
        luax_unref(L, &handle->callbacks[i]);
    luax_unref(L, &handle->self_ref);
}

static void on_done(void *arg, const struct efr_err *err)
{
    struct handle *handle = arg;
    lua_State *L = handle->L;

    handle->request = NULL;
    if (luax_push_ref(L, handle->callbacks[ON_DONE])) {
        if (err != NULL) {
            lua_pushstring(L, err->text);
            lua_pushstring(L, err->code);
        }
        (void)luax_call(L, err != NULL ? 2 : 0, 0);
    }
    release(L, handle);
}

/* -- the pool --------------------------------------------------------------------- */

struct pool {
    struct http *http; /* owned */
};

static int pool_gc(lua_State *L)
{
    struct pool *pool = lua_touserdata(L, 1);

    http_destroy(pool->http);
    pool->http = NULL;
    return 0;
}

/* The pool of this state, made at the first call and closed with the state. It is older than
 * any handle, so its finalizer runs after theirs. NULL with *err set. */
static struct http *get_pool(lua_State *L, struct efr_err *err)
{
    struct pool *pool;

    if (lua_getfield(L, LUA_REGISTRYINDEX, POOL) == LUA_TUSERDATA) {
        pool = lua_touserdata(L, -1);
        lua_pop(L, 1);
        return pool->http;
    }
    pool = lua_newuserdatauv(L, sizeof(*pool), 0);
    pool->http = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, pool_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2); // nil pool
    pool->http = http_create(luv_loop(L), err);
    if (pool->http != NULL) {
        lua_pushvalue(L, -1);
        lua_setfield(L, LUA_REGISTRYINDEX, POOL);
    }
    lua_pop(L, 2);
    return pool->http;
}

/* -- requests --------------------------------------------------------------------- */

/* The field headers of the table at index 1: an array that the collector frees, of strings
 * that the table keeps. Leaves the array on the stack. */
static void read_headers(lua_State *L, struct http_options *options)
{
    const char **headers;
    int type = lua_getfield(L, 1, "headers");

    if (type != LUA_TTABLE && type != LUA_TNIL)
        luaL_error(L, "field 'headers': no table");
    options->n_headers = type == LUA_TTABLE ? lua_rawlen(L, -1) : 0;
    headers = luax_tmp(L, options->n_headers * sizeof(*headers)); // headers array
    for (size_t i = 0; i < options->n_headers; i++) {
        size_t len;

        if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_error(L, "header %d: no string", (int)i + 1);
        headers[i] = lua_tolstring(L, -1, &len);
        for (size_t j = 0; j < len; j++) {
            if (headers[i][j] == '\0')
                luaL_error(L, "header %d: NUL in string", (int)i + 1);
        }
        lua_pop(L, 1);
    }
    options->headers = headers;
    lua_remove(L, -2); // array
}

static void read_body(lua_State *L, struct http_options *options)
{
    int type = lua_getfield(L, 1, "body");

    if (type != LUA_TSTRING && type != LUA_TNIL)
        luaL_error(L, "field 'body': no string");
    options->body = lua_tolstring(L, -1, &options->body_len);
    lua_pop(L, 1);
}

static void read_options(lua_State *L, struct http_options *options)
{
    const char *method = luax_field_str(L, 1, "method");

    options->method = method != NULL ? method : "GET";
    options->url = luax_field_str(L, 1, "url");
    luaL_argcheck(L, options->url != NULL, 1, "field 'url' is missing");
    options->ca_file = luax_field_str(L, 1, "ca_file");
    options->proxy = luax_field_str(L, 1, "proxy");
    options->connect_timeout_ms = luax_field_int(L, 1, "connect_timeout_ms", 0, INT_MAX);
    options->idle_timeout_ms = luax_field_int(L, 1, "idle_timeout_ms", 0, INT_MAX);
    options->max_bytes = (size_t)luax_field_int(L, 1, "max_bytes", 0, LLONG_MAX);
    read_body(L, options);
    read_headers(L, options);
}

/* Takes the functions of the table at index 2 into the handle. on_done must be one. */
static void read_callbacks(lua_State *L, struct handle *handle)
{
    for (int i = 0; i < N_CALLBACKS; i++) {
        int type = lua_getfield(L, 2, callback_names[i]);

        if (type != LUA_TFUNCTION && (i == ON_DONE || type != LUA_TNIL))
            luaL_error(L, "callback '%s': no function", callback_names[i]);
        if (type == LUA_TFUNCTION)
            handle->callbacks[i] = luax_ref(L, -1);
        lua_pop(L, 1);
    }
}

/* http.request(options, callbacks) -> handle | nil, message, code */
static int request(lua_State *L)
{
    static const struct http_events events = {on_head, on_data, on_done};
    struct http_options options = {0};
    struct efr_err err = {0};
    struct http *pool;
    struct handle *handle;

    lua_settop(L, 2);
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TTABLE);
    read_options(L, &options); // options callbacks array
    pool = get_pool(L, &err);
    if (pool == NULL)
        return luax_push_err(L, &err);
    handle = lua_newuserdatauv(L, sizeof(*handle), 0);
    *handle = (struct handle){.self_ref = LUA_NOREF,
                              .callbacks = {LUA_NOREF, LUA_NOREF, LUA_NOREF}};
    luaL_setmetatable(L, HANDLE);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    handle->L = lua_tothread(L, -1);
    lua_pop(L, 1); // options callbacks array handle
    read_callbacks(L, handle);
    lua_pushvalue(L, -1);
    handle->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    handle->request = http_start(pool, &options, &events, handle, &err);
    if (handle->request == NULL) {
        release(L, handle);
        return luax_push_err(L, &err);
    }
    return 1;
}

/* handle:cancel(), also close and __close. */
static int handle_cancel(lua_State *L)
{
    struct handle *handle;

    lua_settop(L, 1);
    handle = luaL_checkudata(L, 1, HANDLE);
    if (handle->request != NULL)
        http_cancel(handle->request);
    lua_pushboolean(L, 1);
    return 1;
}

/* Collected: it has ended or never began, or the state closes. Callbacks of a request that
 * never began go here; the pool ends a running one. */
static int handle_gc(lua_State *L)
{
    release(L, luaL_checkudata(L, 1, HANDLE));
    return 0;
}

static int handle_tostring(lua_State *L)
{
    const struct handle *handle = luaL_checkudata(L, 1, HANDLE);

    lua_pushfstring(L, "%s (%s)", HANDLE, handle->request != NULL ? "running" : "ended");
    return 1;
}

static const luaL_Reg handle_methods[] = {
    {"cancel", handle_cancel},
    {"close", handle_cancel},
    {NULL, NULL},
};

static const luaL_Reg handle_meta[] = {
    {"__gc", handle_gc},
    {"__close", handle_cancel},
    {"__tostring", handle_tostring},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"request", request},
    {NULL, NULL},
};

int luaopen_efr_http(lua_State *L)
{
    luaL_newmetatable(L, HANDLE);
    luaL_setfuncs(L, handle_meta, 0);
    luaL_newlib(L, handle_methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(http, "efr.http", luaopen_efr_http);
