/*
 * lua_store - the Lua module efr.store over store.h.
 *
 * Owns the callbacks of batches on their way. Must not know tables or events. Loop thread
 * only: store.c hands results over there.
 */
#include <lauxlib.h>
#include <lua.h>
#include <luv/luv.h>
#include <stdlib.h>

#include "err.h"
#include "luax.h"
#include "store.h"
#include "util.h"

#define DB "efr.store.db"

struct db {
    struct store *store; /* owned; NULL = closed */
    lua_State *L;        /* where callbacks run: the main thread of the state */
    int in_flight;
    int self_ref; /* keeps this userdata while batches are on their way */
};

/* One batch on its way. */
struct pending {
    struct db *db;
    int callback;
};

static struct db *check_db(lua_State *L)
{
    return luaL_checkudata(L, 1, DB);
}

int luaopen_efr_store(lua_State *L);

/* -- values ----------------------------------------------------------------------- */

/* The value at the top of the stack, borrowed from it. what names it in the error. */
static struct sql_value to_value(lua_State *L, const char *what, int i)
{
    struct sql_value value = {.type = SQL_NULL};

    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        value.type = SQL_TEXT;
        value.text = lua_tolstring(L, -1, &value.text_len);
        return value;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1)) {
            value.type = SQL_INTEGER;
            value.integer = lua_tointeger(L, -1);
        } else {
            value.type = SQL_REAL;
            value.real = lua_tonumber(L, -1);
        }
        return value;
    case LUA_TLIGHTUSERDATA:
        if (lua_touserdata(L, -1) == NULL)
            return value;
        break;
    default:
        break;
    }
    luaL_error(L, "%s%d: a string, a number or store.null is expected, not %s", what, i,
               luaL_typename(L, -1));
    return value;
}

static void push_value(lua_State *L, const struct sql_value *value)
{
    switch (value->type) {
    case SQL_INTEGER:
        lua_pushinteger(L, value->integer);
        break;
    case SQL_REAL:
        lua_pushnumber(L, value->real);
        break;
    case SQL_TEXT:
        lua_pushlstring(L, value->text, value->text_len);
        break;
    case SQL_NULL:
    default:
        lua_pushnil(L);
        break;
    }
}

/* -- writing ---------------------------------------------------------------------- */

/* Adds statement i of the batch, a table at the top of the stack. */
static void add_statement(lua_State *L, struct store_batch *batch, int i)
{
    size_t len;
    const char *text;
    lua_Integer expect = -1;
    lua_Integer n;

    if (!lua_istable(L, -1))
        luaL_error(L, "statement %d: a table is expected", i);
    if (lua_getfield(L, -1, "expect_changes") != LUA_TNIL) {
        int is_integer;

        expect = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer || expect < 0)
            luaL_error(L, "statement %d: expect_changes is no count", i);
    }
    if (lua_rawgeti(L, -2, 1) != LUA_TSTRING)
        luaL_error(L, "statement %d: the SQL text is missing", i);
    text = lua_tolstring(L, -1, &len);
    store_batch_add(batch, text, len, expect);
    if (lua_rawgeti(L, -3, 2) != LUA_TTABLE && !lua_isnil(L, -1))
        luaL_error(L, "statement %d: the parameters are no table", i);
    n = lua_isnil(L, -1) ? 0 : (lua_Integer)lua_rawlen(L, -1);
    for (lua_Integer j = 1; j <= n; j++) {
        lua_rawgeti(L, -1, j);
        store_batch_bind(batch, to_value(L, "parameter ", (int)j));
        lua_pop(L, 1);
    }
    lua_pop(L, 3);
}

/* The userdata at stack index 1 lives while one of its batches is on its way. */
static void hold(lua_State *L, struct db *db)
{
    if (db->in_flight++ > 0)
        return;
    lua_pushvalue(L, 1);
    db->self_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

static void unhold(lua_State *L, struct db *db)
{
    if (--db->in_flight == 0)
        luax_unref(L, &db->self_ref);
}

static void push_changes(lua_State *L, const struct store_result *result)
{
    lua_createtable(L, result->n_changes, 1);
    for (int i = 0; i < result->n_changes; i++) {
        lua_pushinteger(L, result->changes[i].changes);
        lua_rawseti(L, -2, i + 1);
    }
    if (result->n_changes > 0) {
        lua_pushinteger(L, result->changes[result->n_changes - 1].rowid);
        lua_setfield(L, -2, "last_rowid");
    }
}

/* Protected, since only memory can fail here: callback(err, code, changes). */
static int call_back(lua_State *L)
{
    const struct store_result *result = lua_touserdata(L, 2); // callback result

    lua_settop(L, 1);
    if (result->err != NULL) {
        lua_pushstring(L, result->err->text);
        lua_pushstring(L, result->err->code);
        lua_pushnil(L);
    } else {
        lua_pushnil(L);
        lua_pushnil(L);
        push_changes(L, result);
    }
    lua_call(L, 3, 0);
    return 0;
}

static void on_done(void *arg, const struct store_result *result)
{
    struct pending *pending = arg;
    struct db *db = pending->db;
    lua_State *L = db->L;
    int callback = pending->callback;

    free(pending);
    lua_pushcfunction(L, call_back);
    if (luax_push_ref(L, callback)) {
        lua_pushlightuserdata(L, (void *)result);
        (void)luax_call(L, 2, 0);
    } else {
        lua_pop(L, 1);
    }
    luax_unref(L, &callback);
    unhold(L, db);
}

static void release_batch(void *batch)
{
    store_batch_destroy(batch);
}

/* db:write(statements, durable, callback) -> true | nil, message, code */
static int db_write(lua_State *L)
{
    struct db *db;
    struct store_batch *batch;
    struct pending *pending;
    struct efr_err err = {0};
    void **guard;
    int callback;
    lua_Integer n;

    lua_settop(L, 4);
    db = check_db(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TBOOLEAN);
    luaL_checktype(L, 4, LUA_TFUNCTION);
    if (db->store == NULL)
        return luax_push_closed(L);
    luaL_checkstack(L, 8, NULL);
    guard = luax_guard(L, release_batch); // db statements durable callback guard
    batch = store_batch_create();
    *guard = batch;
    n = (lua_Integer)lua_rawlen(L, 2);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_rawgeti(L, 2, i);
        add_statement(L, batch, (int)i);
        lua_pop(L, 1);
    }
    callback = luax_ref(L, 4);
    hold(L, db);
    pending = xcalloc(1, sizeof(*pending));
    *pending = (struct pending){.db = db, .callback = callback};
    *guard = NULL;
    if (store_write_take(db->store, batch, lua_toboolean(L, 3), on_done, pending, &err) !=
        0) {
        free(pending);
        luax_unref(L, &callback);
        unhold(L, db);
        return luax_push_err(L, &err);
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* -- reading ---------------------------------------------------------------------- */

struct reading {
    struct sql *sql;
    struct sqlite3_stmt *stmt;
    struct efr_err err;
    int rc;
};

/* Pushes all rows as an array of tables. Protected: the statement must end in any case. */
static int push_rows(lua_State *L)
{
    struct reading *reading = lua_touserdata(L, 1);
    int n = sql_column_count(reading->stmt);

    luaL_checkstack(L, n + 4, "too many columns");
    for (int i = 0; i < n; i++)
        lua_pushstring(L, sql_column_name(reading->stmt, i));
    lua_newtable(L); // reading name... rows
    for (lua_Integer row = 1;; row++) {
        reading->rc = sql_step(reading->sql, reading->stmt, &reading->err);
        if (reading->rc != 1)
            return 1;
        lua_createtable(L, 0, n);
        for (int i = 0; i < n; i++) {
            struct sql_value value = sql_column(reading->stmt, i);

            lua_pushvalue(L, 2 + i);
            push_value(L, &value);
            lua_rawset(L, -3);
        }
        lua_rawseti(L, -2, row);
    }
}

/* The parameters at stack index 3 as an array that the collector frees. */
static struct sql_value *read_params(lua_State *L, int *n_params)
{
    size_t n = lua_isnil(L, 3) ? 0 : lua_rawlen(L, 3);
    struct sql_value *values;

    luaL_argcheck(L, n <= 32766, 3, "too many parameters");
    values = luax_tmp(L, n * sizeof(*values));
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, 3, (lua_Integer)i + 1);
        values[i] = to_value(L, "parameter ", (int)i + 1);
        lua_pop(L, 1); /* the table keeps a string alive */
    }
    *n_params = (int)n;
    return values;
}

/* db:read(sql, params) -> rows | nil, message, code */
static int db_read(lua_State *L)
{
    struct db *db;
    struct sql_value text = {.type = SQL_TEXT};
    struct sql_value *values;
    struct reading reading = {0};
    int n_values;
    int rc;

    lua_settop(L, 3);
    db = check_db(L);
    text.text = luaL_checklstring(L, 2, &text.text_len);
    if (!lua_isnil(L, 3))
        luaL_checktype(L, 3, LUA_TTABLE);
    if (db->store == NULL)
        return luax_push_closed(L);
    values = read_params(L, &n_values);
    reading.sql = store_reader(db->store);
    reading.stmt = sql_start(reading.sql, text, values, n_values, &reading.err);
    if (reading.stmt == NULL)
        return luax_push_err(L, &reading.err);
    lua_pushcfunction(L, push_rows);
    lua_pushlightuserdata(L, &reading);
    rc = lua_pcall(L, 1, 1, 0);
    sql_done(reading.stmt);
    if (rc != LUA_OK)
        return lua_error(L);
    return reading.rc == 0 ? 1 : luax_push_err(L, &reading.err);
}

/* db:begin_read() -> true | nil, message, code */
static int db_begin_read(lua_State *L)
{
    struct db *db;
    struct efr_err err = {0};

    lua_settop(L, 1);
    db = check_db(L);
    if (db->store == NULL)
        return luax_push_closed(L);
    return luax_push_ok(L, store_begin_read(db->store, &err), &err);
}

/* db:end_read() -> true | nil, message, code */
static int db_end_read(lua_State *L)
{
    struct db *db;
    struct efr_err err = {0};

    lua_settop(L, 1);
    db = check_db(L);
    if (db->store == NULL)
        return luax_push_closed(L);
    return luax_push_ok(L, store_end_read(db->store, &err), &err);
}

/* -- whole database --------------------------------------------------------------- */

/* db:script(sql) -> true | nil, message, code */
static int db_script(lua_State *L)
{
    struct db *db;
    const char *text;
    struct efr_err err = {0};

    lua_settop(L, 2);
    db = check_db(L);
    text = luax_check_path(L, 2); /* any text without NUL */
    if (db->store == NULL)
        return luax_push_closed(L);
    return luax_push_ok(L, store_script(db->store, text, &err), &err);
}

/* db:backup(path) -> true | nil, message, code */
static int db_backup(lua_State *L)
{
    struct db *db;
    const char *path;
    struct efr_err err = {0};

    lua_settop(L, 2);
    db = check_db(L);
    path = luax_check_path(L, 2);
    if (db->store == NULL)
        return luax_push_closed(L);
    return luax_push_ok(L, sql_backup(store_reader(db->store), path, &err), &err);
}

/* db:check() -> true | nil, message, code */
static int db_check(lua_State *L)
{
    struct db *db;
    struct efr_err err = {0};

    lua_settop(L, 1);
    db = check_db(L);
    if (db->store == NULL)
        return luax_push_closed(L);
    return luax_push_ok(L, sql_check(store_reader(db->store), &err), &err);
}

/* db:start() -> true | nil, message, code */
static int db_start(lua_State *L)
{
    struct db *db;
    struct efr_err err = {0};

    lua_settop(L, 1);
    db = check_db(L);
    if (db->store == NULL)
        return luax_push_closed(L);
    return luax_push_ok(L, store_start(db->store, luv_loop(L), &err), &err);
}

/* db:close(): also __gc and __close. The callbacks of drained batches run in here. */
static int db_close(lua_State *L)
{
    struct db *db;
    struct store *store;
    lua_State *main;

    lua_settop(L, 1);
    db = check_db(L);
    store = db->store;
    main = db->L;
    db->store = NULL;
    db->L = L; /* this may be a coroutine, and then the main thread waits inside resume */
    store_close(store);
    db->L = main;
    lua_pushboolean(L, 1);
    return 1;
}

static int db_tostring(lua_State *L)
{
    struct db *db = check_db(L);

    lua_pushfstring(L, "%s (%s)", DB, db->store != NULL ? "open" : "closed");
    return 1;
}

/* store.open(path) -> db | nil, message, code */
static int store_open_lua(lua_State *L)
{
    const char *path;
    struct db *db;
    struct efr_err err = {0};

    lua_settop(L, 1);
    path = luax_check_path(L, 1);
    db = lua_newuserdatauv(L, sizeof(*db), 0);
    *db = (struct db){.self_ref = LUA_NOREF};
    luaL_setmetatable(L, DB);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    db->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    db->store = store_open(path, &err);
    return db->store != NULL ? 1 : luax_push_err(L, &err);
}

static const luaL_Reg db_methods[] = {
    {"script", db_script},         {"backup", db_backup},
    {"check", db_check},           {"start", db_start},
    {"write", db_write},           {"read", db_read},
    {"begin_read", db_begin_read}, {"end_read", db_end_read},
    {"close", db_close},           {NULL, NULL},
};

static const luaL_Reg db_meta[] = {
    {"__gc", db_close},
    {"__close", db_close},
    {"__tostring", db_tostring},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"open", store_open_lua},
    {NULL, NULL},
};

int luaopen_efr_store(lua_State *L)
{
    luaL_newmetatable(L, DB);
    luaL_setfuncs(L, db_meta, 0);
    luaL_newlib(L, db_methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}

EFR_LUA_MODULE(store, "efr.store", luaopen_efr_store);
