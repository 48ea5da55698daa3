/*
 * Module efr.watch: changes of directories. One primitive a function; what a change means is
 * decided in Lua. Loop thread only.
 */
#include "err.h"
#include "luax.h"
#include "watch.h"

#define WATCH_TYPE "efr.watch"

struct lwatch {
    lua_State *L;            /* main thread */
    struct efr_watch *watch; /* owned; NULL when closed */
    int on_event;
};

static const char *const kind_names[] = {
    [EFR_WATCH_WRITE] = "write",   [EFR_WATCH_CREATE] = "create",
    [EFR_WATCH_DELETE] = "delete", [EFR_WATCH_MOVE] = "move",
    [EFR_WATCH_GONE] = "gone",     [EFR_WATCH_OVERFLOW] = "overflow",
};

static struct lwatch *check_watch(lua_State *L)
{
    return luaL_checkudata(L, 1, WATCH_TYPE);
}

static void call_event(void *arg, int id, enum efr_watch_kind kind, const char *name)
{
    struct lwatch *self = arg;
    if (!luax_push_ref(self->L, self->on_event))
        return;
    lua_pushinteger(self->L, id);
    lua_pushstring(self->L, kind_names[kind]);
    lua_pushstring(self->L, name); // fn id kind name|nil
    (void)luax_call(self->L, 3, 0);
}

/* open(fn(id, kind, name)) -> watch */
static int watch_open_(lua_State *L)
{
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TFUNCTION);
    struct lwatch *self = lua_newuserdatauv(L, sizeof(*self), 0);
    *self = (struct lwatch){.on_event = LUA_NOREF};
    luaL_setmetatable(L, WATCH_TYPE); // fn self
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    self->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    struct efr_err err;
    self->watch = efr_watch_create(luax_loop(L), call_event, self, &err);
    if (!self->watch)
        return luax_push_err(L, &err);
    self->on_event = luax_ref(L, 1);
    return 1;
}

/* watch:add(path) -> id */
static int watch_add_(lua_State *L)
{
    lua_settop(L, 2);
    struct lwatch *self = check_watch(L);
    const char *path = luax_check_path(L, 2);
    if (!self->watch)
        return luax_push_closed(L);
    struct efr_err err;
    int id = efr_watch_add(self->watch, path, &err);
    if (id < 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, id);
    return 1;
}

/* watch:remove(id) */
static int watch_remove_(lua_State *L)
{
    lua_settop(L, 2);
    struct lwatch *self = check_watch(L);
    int id = (int)luax_check_int(L, 2, 1, INT32_MAX);
    if (!self->watch)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, efr_watch_remove(self->watch, id, &err), &err);
}

/* watch:close() */
static int watch_close_(lua_State *L)
{
    lua_settop(L, 1);
    struct lwatch *self = check_watch(L);
    efr_watch_destroy(self->watch);
    self->watch = NULL;
    luax_unref(L, &self->on_event);
    return 0;
}

static int watch_tostring(lua_State *L)
{
    lua_settop(L, 1);
    struct lwatch *self = check_watch(L);
    lua_pushstring(L, self->watch ? WATCH_TYPE : WATCH_TYPE " (closed)");
    return 1;
}

static const luaL_Reg methods[] = {
    {"add", watch_add_},
    {"remove", watch_remove_},
    {"close", watch_close_},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", watch_close_},
    {"__close", watch_close_},
    {"__tostring", watch_tostring},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"open", watch_open_},
    {NULL, NULL},
};

static int luaopen_efr_watch(lua_State *L)
{
    luaL_newmetatable(L, WATCH_TYPE);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(watch, "efr.watch", luaopen_efr_watch);
