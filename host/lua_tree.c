/*
 * Module efr.tree: a directory tree held open, its walks and what they find. One primitive a
 * function; what a difference means is the caller's business. Loop thread; a walk runs in the
 * pool of the loop.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

#include "err.h"
#include "fs.h"
#include "luax.h"
#include "tree.h"
#include "tree_feed.h"
#include "util.h"

#define TREE_TYPE "efr.tree"
#define TAKE_MAX 100000

struct job {
    uv_work_t work; /* first */
    lua_State *L;   /* main thread */
    int self;       /* reference to the userdata: it lives as long as the job */
    int fn;
    struct efr_tree *tree;
    int (*push_results)(lua_State *L, const struct job *job);
    struct efr_tree_limits limits; /* of a walk */
    struct efr_tree_sums sums;
    struct efr_tree_feed feed; /* its arrays lie in one block: paths is owned */
    struct efr_err err;
    int rc;
};

struct ltree {
    struct efr_tree *tree; /* owned; NULL when closed */
    bool busy;             /* a job runs */
    bool closing;          /* ends with it */
};

static const char *const mark_names[] = {
    [EFR_TREE_OK] = NULL,
    [EFR_TREE_SPECIAL] = "special",
    [EFR_TREE_UNREADABLE] = "unreadable",
    [EFR_TREE_BIG] = "big",
    [EFR_TREE_NESTED] = "nested",
    [EFR_TREE_MOUNT] = "mount",
    [EFR_TREE_PASSED] = "passed",
    [EFR_TREE_UNREAD] = "unread",
    [EFR_TREE_OPEN] = "open",
};

static struct ltree *check_tree(lua_State *L)
{
    return luaL_checkudata(L, 1, TREE_TYPE);
}

static int push_busy(lua_State *L)
{
    struct efr_err err;
    (void)efr_err_set(&err, "EFR_BUSY", "the tree is in use");
    return luax_push_err(L, &err);
}

/* open(path) -> tree */
static int tree_open(lua_State *L)
{
    lua_settop(L, 1);
    const char *path = luax_check_path(L, 1);
    struct ltree *self = lua_newuserdatauv(L, sizeof(*self), 0);
    *self = (struct ltree){0};
    luaL_setmetatable(L, TREE_TYPE);
    struct efr_err err;
    self->tree = efr_tree_create(path, &err);
    if (!self->tree)
        return luax_push_err(L, &err);
    return 1;
}

/* The userdata at 1, open and not in use; NULL: *count results of a failure were pushed. */
static struct ltree *free_tree(lua_State *L, int *count)
{
    struct ltree *self = check_tree(L);
    if (self->tree && !self->closing && !self->busy)
        return self;
    *count = self->busy && !self->closing ? push_busy(L) : luax_push_closed(L);
    return NULL;
}

/* ---- jobs in the pool ---- */

static void after_job(uv_work_t *work, int status)
{
    struct job *job = work->data;
    lua_State *L = job->L;
    (void)status;
    if (luax_push_ref(L, job->self)) {
        struct ltree *self = lua_touserdata(L, -1);
        self->busy = false;
        if (self->closing) {
            efr_tree_destroy(self->tree);
            self->tree = NULL;
        }
        if (luax_push_ref(L, job->fn)) {
            int count =
                job->rc == 0 ? job->push_results(L, job) : luax_push_err(L, &job->err);
            (void)luax_call(L, count, 0);
        }
        lua_pop(L, 1);
    }
    luax_unref(L, &job->fn);
    luax_unref(L, &job->self);
    free((void *)job->feed.paths);
    free(job);
}

/* Starts a job for the userdata at 1 that ends in the function at 3. Takes what the job owns. */
static int start_job(lua_State *L, struct ltree *self, const struct job *what,
                     uv_work_cb run)
{
    struct job *job = xmemdup(what, sizeof(*what));
    job->work.data = job;
    job->tree = self->tree;
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    job->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    job->fn = luax_ref(L, 3);
    lua_pushvalue(L, 1);
    job->self = luaL_ref(L, LUA_REGISTRYINDEX);
    int rc = uv_queue_work(luax_loop(L), &job->work, run, after_job);
    if (rc != 0) {
        luax_unref(L, &job->fn);
        luax_unref(L, &job->self);
        free((void *)job->feed.paths);
        free(job);
        return luax_push_errno(L, -rc, "start a job");
    }
    self->busy = true;
    lua_pushboolean(L, 1);
    return 1;
}

static void run_walk(uv_work_t *work)
{
    struct job *job = work->data;
    job->rc = efr_tree_walk(job->tree, &job->limits, &job->sums, &job->err);
}

static int push_sums(lua_State *L, const struct job *job)
{
    lua_createtable(L, 0, 4);
    luax_set_int(L, "entries", (lua_Integer)job->sums.entries);
    luax_set_int(L, "linked", (lua_Integer)job->sums.linked);
    lua_pushboolean(L, job->sums.watched);
    lua_setfield(L, -2, "watched");
    lua_pushboolean(L, job->sums.remote);
    lua_setfield(L, -2, "remote");
    return 1;
}

/* tree:walk({max_bytes, max_entries, watch}, fn(sums | nil, err, code)) */
static int tree_walk(lua_State *L)
{
    int count;
    lua_settop(L, 3);
    struct ltree *self = check_tree(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    struct job job = {.push_results = push_sums,
                      .limits = {
                          .max_bytes = (uint64_t)luax_field_int(L, 2, "max_bytes",
                                                                INT64_MAX, INT64_MAX),
                          .max_entries = (size_t)luax_field_int(L, 2, "max_entries",
                                                                INT32_MAX, INT32_MAX),
                          .watch = luax_field_bool(L, 2, "watch"),
                      }};
    self = free_tree(L, &count);
    return self ? start_job(L, self, &job, run_walk) : count;
}

static void run_feed(uv_work_t *work)
{
    struct job *job = work->data;
    const struct efr_tree_feed *feed = &job->feed;
    job->rc = efr_tree_feed(efr_tree_fd(job->tree), feed, &job->err);
    if (job->rc == 0)
        efr_tree_mark_unread(job->tree, feed->paths, feed->failed, feed->count);
}

static int push_failed(lua_State *L, const struct job *job)
{
    lua_Integer count = 0;
    lua_newtable(L);
    for (size_t i = 0; i < job->feed.count; i++) {
        if (!job->feed.failed[i])
            continue;
        lua_pushinteger(L, (lua_Integer)i + 1);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

/* The bytes of all paths of the list in the field `paths` at 2, with their terminators. */
static size_t check_paths(lua_State *L, size_t *count)
{
    size_t total = 0;
    if (lua_getfield(L, 2, "paths") != LUA_TTABLE)
        luaL_error(L, "field 'paths': no list");
    *count = lua_rawlen(L, -1);
    if (*count > TAKE_MAX)
        luaL_error(L, "field 'paths': more than %d", TAKE_MAX);
    for (size_t i = 1; i <= *count; i++) {
        size_t len;
        if (lua_rawgeti(L, -1, (lua_Integer)i) != LUA_TSTRING ||
            strlen(lua_tolstring(L, -1, &len)) != len)
            luaL_error(L, "field 'paths': no path");
        total += len + 1;
        lua_pop(L, 1);
    }
    return total;
}

/* One block: the pointers, where failures stand, the texts. The list lies at the top and every
 * item is a string: nothing here raises. */
static void copy_paths(lua_State *L, struct efr_tree_feed *feed, size_t text_bytes)
{
    char **paths =
        xmalloc(feed->count * (sizeof(char *) + sizeof(bool)) + text_bytes + 1);
    feed->failed = (bool *)(paths + feed->count);
    char *at = (char *)(feed->failed + feed->count);
    for (size_t i = 0; i < feed->count; i++) {
        size_t len;
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        const char *path = lua_tolstring(L, -1, &len);
        paths[i] = memcpy(at, path, len + 1);
        at += len + 1;
        lua_pop(L, 1);
    }
    feed->paths = (const char *const *)paths;
}

/* tree:feed({fd, paths, first_mark, max_bytes, links}, fn(failed | nil, err, code)) */
static int tree_feed(lua_State *L)
{
    int count;
    lua_settop(L, 3);
    struct ltree *self = check_tree(L);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    struct job job = {
        .push_results = push_failed,
        .feed = {
            .fd = (int)luax_field_int(L, 2, "fd", 0, 1 << 20),
            .first_mark = (uint64_t)luax_field_int(L, 2, "first_mark", 1, INT64_MAX),
            .max_bytes =
                (uint64_t)luax_field_int(L, 2, "max_bytes", INT64_MAX, INT64_MAX),
            .links = luax_field_bool(L, 2, "links"),
        }};
    size_t text_bytes = check_paths(L, &job.feed.count);
    self = free_tree(L, &count);
    if (!self)
        return count;
    copy_paths(L, &job.feed, text_bytes);
    return start_job(L, self, &job, run_feed);
}

/* ---- what a walk found ---- */

static void push_entry(lua_State *L, const struct efr_tree_entry *entry)
{
    lua_createtable(L, 0, 9);
    lua_pushstring(L, efr_fs_type_name(entry->mode));
    lua_setfield(L, -2, "type");
    luax_set_int(L, "mode", entry->mode & 07777);
    luax_set_int(L, "uid", entry->uid);
    luax_set_int(L, "gid", entry->gid);
    luax_set_int(L, "size", (lua_Integer)entry->size);
    luax_set_int(L, "ino", (lua_Integer)entry->ino);
    luax_set_int(L, "ctime_ns", entry->ctime_ns);
    lua_pushstring(L, mark_names[entry->mark]);
    lua_setfield(L, -2, "mark");
    lua_pushboolean(L, entry->empty);
    lua_setfield(L, -2, "empty");
}

/* tree:take(count) -> the next differences */
static int tree_take(lua_State *L)
{
    int count;
    lua_settop(L, 2);
    (void)check_tree(L);
    lua_Integer want = luax_check_int(L, 2, 1, TAKE_MAX);
    struct ltree *self = free_tree(L, &count);
    if (!self)
        return count;
    lua_newtable(L);
    struct efr_tree_change change;
    for (lua_Integer i = 1; i <= want && efr_tree_next(self->tree, &change); i++) {
        lua_createtable(L, 0, 3);
        lua_pushlstring(L, change.path, change.path_len);
        lua_setfield(L, -2, "path");
        if (change.before) {
            push_entry(L, change.before);
            lua_setfield(L, -2, "before");
        }
        if (change.after) {
            push_entry(L, change.after);
            lua_setfield(L, -2, "after");
        }
        lua_rawseti(L, -2, i);
    }
    return 1;
}

/* tree:ask_for(name) */
static int tree_ask_for(lua_State *L)
{
    int count;
    lua_settop(L, 2);
    (void)check_tree(L);
    const char *name = luax_check_path(L, 2);
    struct ltree *self = free_tree(L, &count);
    if (!self)
        return count;
    efr_tree_ask_for(self->tree, name);
    lua_pushboolean(L, 1);
    return 1;
}

/* tree:decide(path, enter) */
static int tree_decide(lua_State *L)
{
    int count;
    lua_settop(L, 3);
    (void)check_tree(L);
    const char *path = luax_check_path(L, 2);
    struct ltree *self = free_tree(L, &count);
    if (!self)
        return count;
    efr_tree_decide(self->tree, path, lua_toboolean(L, 3));
    lua_pushboolean(L, 1);
    return 1;
}

static int call_tree(lua_State *L, void (*fn)(struct efr_tree *tree))
{
    int count;
    lua_settop(L, 1);
    struct ltree *self = free_tree(L, &count);
    if (!self)
        return count;
    fn(self->tree);
    lua_pushboolean(L, 1);
    return 1;
}

/* tree:forget() */
static int tree_forget(lua_State *L)
{
    return call_tree(L, efr_tree_forget);
}

/* tree:commit() */
static int tree_commit(lua_State *L)
{
    return call_tree(L, efr_tree_commit);
}

/* tree:is_quiet() -> boolean */
static int tree_is_quiet(lua_State *L)
{
    lua_settop(L, 1);
    struct ltree *self = check_tree(L);
    if (!self->tree)
        return luax_push_closed(L);
    lua_pushboolean(L, !self->busy && efr_tree_is_quiet(self->tree));
    return 1;
}

/* tree:save(path, tag) */
static int tree_save(lua_State *L)
{
    int count;
    lua_settop(L, 3);
    (void)check_tree(L);
    const char *path = luax_check_path(L, 2);
    const char *tag = luax_check_path(L, 3);
    struct ltree *self = free_tree(L, &count);
    if (!self)
        return count;
    struct efr_err err;
    return luax_push_ok(L, efr_tree_save(self->tree, path, tag, &err), &err);
}

/* tree:load(path, tag) */
static int tree_load(lua_State *L)
{
    int count;
    lua_settop(L, 3);
    (void)check_tree(L);
    const char *path = luax_check_path(L, 2);
    const char *tag = luax_check_path(L, 3);
    struct ltree *self = free_tree(L, &count);
    if (!self)
        return count;
    struct efr_err err;
    return luax_push_ok(L, efr_tree_load(self->tree, path, tag, &err), &err);
}

/* tree:close() */
static int tree_close(lua_State *L)
{
    lua_settop(L, 1);
    struct ltree *self = check_tree(L);
    self->closing = true;
    if (self->busy)
        return 0;
    efr_tree_destroy(self->tree);
    self->tree = NULL;
    return 0;
}

static int tree_tostring(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushstring(L, check_tree(L)->tree ? TREE_TYPE : TREE_TYPE " (closed)");
    return 1;
}

static const luaL_Reg methods[] = {
    {"ask_for", tree_ask_for},   {"close", tree_close}, {"commit", tree_commit},
    {"decide", tree_decide},     {"feed", tree_feed},   {"forget", tree_forget},
    {"is_quiet", tree_is_quiet}, {"load", tree_load},   {"save", tree_save},
    {"take", tree_take},         {"walk", tree_walk},   {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", tree_close},
    {"__close", tree_close},
    {"__tostring", tree_tostring},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"open", tree_open},
    {NULL, NULL},
};

static int luaopen_efr_tree(lua_State *L)
{
    luaL_newmetatable(L, TREE_TYPE);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(tree, "efr.tree", luaopen_efr_tree);
