/*
 * Module efr.dir: a directory held open, and what lies in it. One primitive a function; which
 * directory that is and what its entries mean is the caller's business. Loop thread only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "buf.h"
#include "dir.h"
#include "err.h"
#include "fs.h"
#include "luax.h"
#include "util.h"

#define DIR_TYPE "efr.dir"
#define READ_MAX_BYTES ((lua_Integer)1 << 30)
#define NS_PER_S 1000000000

struct ldir {
    int fd; /* owned; -1 when closed */
};

static struct ldir *check_dir(lua_State *L, int arg)
{
    return luaL_checkudata(L, arg, DIR_TYPE);
}

/* A name in a directory: one component, and not the directory itself or the one above. */
static const char *check_name(lua_State *L, int arg)
{
    const char *name = luax_check_path(L, arg);
    luaL_argcheck(L, !strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."), arg,
                  "not a name in a directory");
    return name;
}

static int push_failure(lua_State *L, const char *what, const char *path)
{
    int errnum = errno;
    struct efr_err err;
    efr_err_errno(&err, errnum, "%s %s", what, path);
    return luax_push_err(L, &err);
}

static int push_done(lua_State *L, int rc, const char *what, const char *path)
{
    if (rc != 0)
        return push_failure(L, what, path);
    lua_pushboolean(L, 1);
    return 1;
}

/* Takes the closed userdata at the top and gives it a descriptor. */
static int finish_open(lua_State *L, struct ldir *self, int fd, const char *path)
{
    if (fd < 0)
        return push_failure(L, "open directory", path);
    self->fd = fd;
    return 1;
}

static struct ldir *new_dir(lua_State *L)
{
    struct ldir *self = lua_newuserdatauv(L, sizeof(*self), 0);
    self->fd = -1;
    luaL_setmetatable(L, DIR_TYPE);
    return self;
}

/* open(path) -> dir */
static int dir_open_(lua_State *L)
{
    lua_settop(L, 1);
    const char *path = luax_check_path(L, 1);
    struct ldir *self = new_dir(L);
    return finish_open(L, self, efr_dir_open(path), path);
}

/* dir:open(path) -> dir */
static int dir_open_at(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *above = check_dir(L, 1);
    const char *path = luax_check_path(L, 2);
    if (above->fd < 0)
        return luax_push_closed(L);
    struct ldir *self = new_dir(L);
    return finish_open(L, self, efr_dir_open_at(above->fd, path), path);
}

static void push_stat(lua_State *L, const struct stat *st)
{
    lua_createtable(L, 0, 8);
    lua_pushstring(L, efr_fs_type_name(st->st_mode));
    lua_setfield(L, -2, "type");
    luax_set_int(L, "mode", st->st_mode & 07777);
    luax_set_int(L, "uid", (lua_Integer)st->st_uid);
    luax_set_int(L, "gid", (lua_Integer)st->st_gid);
    luax_set_int(L, "size", st->st_size);
    luax_set_int(L, "dev", (lua_Integer)st->st_dev);
    luax_set_int(L, "ino", (lua_Integer)st->st_ino);
    luax_set_int(L, "ctime_ns",
                 (lua_Integer)st->st_ctim.tv_sec * NS_PER_S + st->st_ctim.tv_nsec);
}

/* dir:stat(path) -> stat */
static int dir_stat_(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *self = check_dir(L, 1);
    const char *path = luax_check_path(L, 2);
    if (self->fd < 0)
        return luax_push_closed(L);
    struct stat st;
    if (efr_dir_stat(self->fd, path, &st) != 0)
        return push_failure(L, "stat", path);
    push_stat(L, &st);
    return 1;
}

static void release_buf(void *ptr)
{
    efr_buf_finish(ptr);
    free(ptr);
}

/* dir:read(path, max) -> bytes */
static int dir_read_(lua_State *L)
{
    lua_settop(L, 3);
    struct ldir *self = check_dir(L, 1);
    const char *path = luax_check_path(L, 2);
    lua_Integer max = luax_check_int(L, 3, 0, READ_MAX_BYTES);
    if (self->fd < 0)
        return luax_push_closed(L);
    void **slot = luax_guard(L, release_buf);
    struct efr_buf *buf = xmalloc(sizeof(*buf));
    efr_buf_init(buf, true); /* it may be a file with a key */
    *slot = buf;
    struct efr_err err;
    if (efr_dir_read(self->fd, path, (size_t)max, buf, &err) != 0)
        return luax_push_err(L, &err);
    lua_pushlstring(L, buf->data ? buf->data : "", buf->len);
    return 1;
}

static void release_stream(void *ptr)
{
    (void)closedir(ptr);
}

static const char *entry_type(DIR *dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return efr_fs_type_name(DTTOIF(entry->d_type));
    if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return NULL;
    return efr_fs_type_name(st.st_mode);
}

/* Opens a directory below for its entries; the stream is in a guard. NULL with errno set. */
static DIR *open_stream(lua_State *L, int dir_fd, const char *path)
{
    void **slot = luax_guard(L, release_stream);
    int fd = efr_dir_open_at(dir_fd, path);
    if (fd < 0)
        return NULL;
    *slot = fdopendir(fd);
    if (!*slot)
        efr_close(&fd);
    return *slot;
}

/* dir:list(path, max) -> names, stat: a table of name -> type, at most max of them, and what
 * the directory was before they were read. */
static int dir_list_(lua_State *L)
{
    lua_settop(L, 3);
    struct ldir *self = check_dir(L, 1);
    const char *path = luax_check_path(L, 2);
    lua_Integer max = luax_check_int(L, 3, 0, INT32_MAX);
    if (self->fd < 0)
        return luax_push_closed(L);
    struct stat st;
    DIR *stream = open_stream(L, self->fd, path);
    if (!stream || fstat(dirfd(stream), &st) != 0)
        return push_failure(L, "open directory", path);
    lua_newtable(L);
    const struct dirent *entry;
    lua_Integer count = 0;
    while (errno = 0, count < max && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const char *type = entry_type(stream, entry);
        if (!type) /* gone meanwhile */
            continue;
        lua_pushstring(L, type);
        lua_setfield(L, -2, entry->d_name);
        count++;
    }
    if (errno != 0)
        return push_failure(L, "read directory", path);
    push_stat(L, &st);
    return 2;
}

/* dir:create(name, bytes, mode) */
static int dir_create_(lua_State *L)
{
    lua_settop(L, 4);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    size_t len = 0;
    const char *data = luaL_checklstring(L, 3, &len);
    mode_t mode = (mode_t)luax_check_int(L, 4, 0, 07777);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, efr_dir_create(self->fd, name, data, len, mode), "make", name);
}

/* dir:mkdir(name, mode) */
static int dir_mkdir_(lua_State *L)
{
    lua_settop(L, 3);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    mode_t mode = (mode_t)luax_check_int(L, 3, 0, 07777);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, mkdirat(self->fd, name, mode), "make directory", name);
}

/* dir:remove(name): a file or a link */
static int dir_remove_(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, unlinkat(self->fd, name, 0), "remove", name);
}

/* dir:remove_tree(name): whatever it is, with all below */
static int dir_remove_tree_(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    if (self->fd < 0)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, efr_fs_rmtree_at(self->fd, name, &err), &err);
}

/* dir:readlink(name) -> target */
static int dir_readlink_(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    if (self->fd < 0)
        return luax_push_closed(L);
    char target[4096];
    ssize_t n = readlinkat(self->fd, name, target, sizeof(target));
    if (n < 0)
        return push_failure(L, "read link", name);
    lua_pushlstring(L, target, (size_t)n);
    return 1;
}

/* dir:xattr(name) -> value, of the directory itself */
static int dir_xattr_(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *self = check_dir(L, 1);
    const char *name = luax_check_path(L, 2);
    if (self->fd < 0)
        return luax_push_closed(L);
    char value[256];
    ssize_t n = fgetxattr(self->fd, name, value, sizeof(value));
    if (n < 0)
        return push_failure(L, "read attribute", name);
    lua_pushlstring(L, value, (size_t)n);
    return 1;
}

/* dir:symlink(target, name) */
static int dir_symlink_(lua_State *L)
{
    lua_settop(L, 3);
    struct ldir *self = check_dir(L, 1);
    const char *target = luax_check_path(L, 2);
    const char *name = check_name(L, 3);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, symlinkat(target, self->fd, name), "make a link", name);
}

/* dir:move(name, other, new_name) */
static int dir_move_(lua_State *L)
{
    lua_settop(L, 4);
    struct ldir *self = check_dir(L, 1);
    const char *from = check_name(L, 2);
    struct ldir *other = check_dir(L, 3);
    const char *to = check_name(L, 4);
    if (self->fd < 0 || other->fd < 0)
        return luax_push_closed(L);
    return push_done(L, efr_dir_move(self->fd, from, other->fd, to), "move", from);
}

/* dir:rmdir(name) */
static int dir_rmdir_(lua_State *L)
{
    lua_settop(L, 2);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, unlinkat(self->fd, name, AT_REMOVEDIR), "remove directory", name);
}

/* dir:exchange(name, other, other_name) */
static int dir_exchange_(lua_State *L)
{
    lua_settop(L, 4);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    struct ldir *other = check_dir(L, 3);
    const char *other_name = check_name(L, 4);
    if (self->fd < 0 || other->fd < 0)
        return luax_push_closed(L);
    return push_done(L, efr_dir_exchange(self->fd, name, other->fd, other_name), "swap",
                     name);
}

/* dir:chmod(name, mode) */
static int dir_chmod_(lua_State *L)
{
    lua_settop(L, 3);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    mode_t mode = (mode_t)luax_check_int(L, 3, 0, 07777);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, efr_dir_chmod(self->fd, name, mode), "chmod", name);
}

/* dir:chown(name, uid, gid) */
static int dir_chown_(lua_State *L)
{
    lua_settop(L, 4);
    struct ldir *self = check_dir(L, 1);
    const char *name = check_name(L, 2);
    uid_t uid = (uid_t)luax_check_int(L, 3, 0, UINT32_MAX);
    gid_t gid = (gid_t)luax_check_int(L, 4, 0, UINT32_MAX);
    if (self->fd < 0)
        return luax_push_closed(L);
    return push_done(L, efr_dir_chown(self->fd, name, uid, gid), "chown", name);
}

/* dir:close() */
static int dir_close_(lua_State *L)
{
    lua_settop(L, 1);
    efr_close(&check_dir(L, 1)->fd);
    return 0;
}

static int dir_tostring(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushstring(L, check_dir(L, 1)->fd < 0 ? DIR_TYPE " (closed)" : DIR_TYPE);
    return 1;
}

static const luaL_Reg methods[] = {
    {"chmod", dir_chmod_},
    {"chown", dir_chown_},
    {"close", dir_close_},
    {"create", dir_create_},
    {"exchange", dir_exchange_},
    {"list", dir_list_},
    {"mkdir", dir_mkdir_},
    {"move", dir_move_},
    {"open", dir_open_at},
    {"read", dir_read_},
    {"readlink", dir_readlink_},
    {"remove", dir_remove_},
    {"remove_tree", dir_remove_tree_},
    {"rmdir", dir_rmdir_},
    {"stat", dir_stat_},
    {"symlink", dir_symlink_},
    {"xattr", dir_xattr_},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__gc", dir_close_},
    {"__close", dir_close_},
    {"__tostring", dir_tostring},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"open", dir_open_},
    {NULL, NULL},
};

static int luaopen_efr_dir(lua_State *L)
{
    luaL_newmetatable(L, DIR_TYPE);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(dir, "efr.dir", luaopen_efr_dir);
