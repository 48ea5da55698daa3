/*
 * Module efr.fs: files by path. One primitive a function; which path is allowed is the
 * caller's business. Loop thread only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "fs.h"
#include "luax.h"
#include "util.h"

#define READ_MAX_BYTES ((lua_Integer)1 << 30)
#define READ_DEFAULT_BYTES ((lua_Integer)64 << 20)

/* true, or the error of errno about the path at argument 1. */
static int push_result(lua_State *L, int rc, const char *what)
{
    if (rc == 0) {
        lua_pushboolean(L, 1);
        return 1;
    }
    int errnum = errno;
    struct efr_err err;
    efr_err_errno(&err, errnum, "%s %s", what, lua_tostring(L, 1));
    return luax_push_err(L, &err);
}

static mode_t check_mode(lua_State *L, int arg, mode_t def)
{
    return (mode_t)luax_opt_int(L, arg, def, 0, 07777);
}

/* ---- whole files ---- */

static void release_buf(void *ptr)
{
    efr_buf_finish(ptr);
    free(ptr);
}

static int read_file(lua_State *L, bool real)
{
    lua_settop(L, 2);
    const char *path = luax_check_path(L, 1);
    lua_Integer max = luax_opt_int(L, 2, READ_DEFAULT_BYTES, 0, READ_MAX_BYTES);
    void **slot = luax_guard(L, release_buf);
    struct efr_buf *buf = xmalloc(sizeof(*buf));
    efr_buf_init(buf, true); /* it may be a file with a key */
    *slot = buf;
    struct efr_err err;
    if (efr_fs_read(path, (size_t)max, real, buf, &err) != 0)
        return luax_push_err(L, &err);
    lua_pushlstring(L, buf->data ? buf->data : "", buf->len);
    return 1;
}

/* read_file(path, max) */
static int fs_read_file(lua_State *L)
{
    return read_file(L, false);
}

/* read_real(path, max) */
static int fs_read_real(lua_State *L)
{
    return read_file(L, true);
}

/* write_atomic(path, bytes, mode) */
static int fs_write_atomic(lua_State *L)
{
    lua_settop(L, 3);
    struct efr_fs_write how = {0};
    const char *path = luax_check_path(L, 1);
    how.data = luaL_checklstring(L, 2, &how.len_bytes);
    how.mode = check_mode(L, 3, 0600);
    struct efr_err err;
    return luax_push_ok(L, efr_fs_write(path, &how, &err), &err);
}

/* write_real(path, bytes, options) */
static int fs_write_real(lua_State *L)
{
    lua_settop(L, 3);
    struct efr_fs_write how = {.real = true, .mode = 0644};
    const char *path = luax_check_path(L, 1);
    how.data = luaL_checklstring(L, 2, &how.len_bytes);
    if (!lua_isnil(L, 3)) {
        luaL_checktype(L, 3, LUA_TTABLE);
        how.mode = (mode_t)luax_field_int(L, 3, "mode", 0644, 07777);
        how.keep = luax_field_bool(L, 3, "keep");
    }
    struct efr_err err;
    return luax_push_ok(L, efr_fs_write(path, &how, &err), &err);
}

/* ---- what is there ---- */

static int push_stat(lua_State *L, const struct stat *st)
{
    lua_createtable(L, 0, 9);
    lua_pushstring(L, efr_fs_type_name(st->st_mode));
    lua_setfield(L, -2, "type");
    luax_set_int(L, "mode", st->st_mode & 07777);
    luax_set_int(L, "uid", st->st_uid);
    luax_set_int(L, "gid", st->st_gid);
    luax_set_int(L, "size", st->st_size);
    luax_set_int(L, "mtime_us",
                 (lua_Integer)st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000);
    luax_set_int(L, "dev", (lua_Integer)st->st_dev);
    luax_set_int(L, "ino", (lua_Integer)st->st_ino);
    luax_set_int(L, "nlink", (lua_Integer)st->st_nlink);
    return 1;
}

/* stat(path) */
static int fs_stat(lua_State *L)
{
    lua_settop(L, 1);
    struct stat st;
    if (stat(luax_check_path(L, 1), &st) != 0)
        return push_result(L, -1, "stat");
    return push_stat(L, &st);
}

/* lstat(path) */
static int fs_lstat(lua_State *L)
{
    lua_settop(L, 1);
    struct stat st;
    if (lstat(luax_check_path(L, 1), &st) != 0)
        return push_result(L, -1, "stat");
    return push_stat(L, &st);
}

/* realpath(path) */
static int fs_realpath(lua_State *L)
{
    lua_settop(L, 1);
    const char *path = luax_check_path(L, 1);
    void **slot = luax_guard(L, free);
    *slot = realpath(path, NULL);
    if (!*slot)
        return push_result(L, -1, "resolve");
    lua_pushstring(L, *slot);
    return 1;
}

/* readlink(path) */
static int fs_readlink(lua_State *L)
{
    lua_settop(L, 1);
    char target[4096];
    ssize_t n = readlink(luax_check_path(L, 1), target, sizeof(target));
    if (n < 0)
        return push_result(L, -1, "read link");
    lua_pushlstring(L, target, (size_t)n);
    return 1;
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

static void release_dir(void *ptr)
{
    (void)closedir(ptr);
}

/* readdir(path, max): entries without "." and "..", in no order, at most max. */
static int fs_readdir(lua_State *L)
{
    lua_settop(L, 2);
    const char *path = luax_check_path(L, 1);
    lua_Integer max = luaL_optinteger(L, 2, LUA_MAXINTEGER);
    void **slot = luax_guard(L, release_dir);
    DIR *dir = opendir(path); /* close-on-exec */
    if (!dir)
        return push_result(L, -1, "read directory");
    *slot = dir;
    lua_newtable(L);
    struct dirent *entry;
    lua_Integer count = 0;
    while (errno = 0, count < max && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
            continue;
        const char *type = entry_type(dir, entry);
        if (!type) /* gone meanwhile */
            continue;
        lua_createtable(L, 0, 2);
        lua_pushstring(L, name);
        lua_setfield(L, -2, "name");
        lua_pushstring(L, type);
        lua_setfield(L, -2, "type");
        lua_rawseti(L, -2, ++count);
    }
    if (errno != 0)
        return push_result(L, -1, "read directory");
    return 1;
}

/* check_private_dir(path) */
static int fs_check_private_dir(lua_State *L)
{
    lua_settop(L, 1);
    struct efr_err err;
    int rc = efr_fs_check_private_dir(luax_check_path(L, 1), &err);
    return luax_push_ok(L, rc, &err);
}

/* ---- changes ---- */

/* mkdir(path, mode) */
static int fs_mkdir(lua_State *L)
{
    lua_settop(L, 2);
    return push_result(L, mkdir(luax_check_path(L, 1), check_mode(L, 2, 0777)),
                       "make directory");
}

/* mkdirs(path, mode) */
static int fs_mkdirs(lua_State *L)
{
    lua_settop(L, 2);
    struct efr_err err;
    int rc = efr_fs_mkdirs(luax_check_path(L, 1), check_mode(L, 2, 0777), &err);
    return luax_push_ok(L, rc, &err);
}

/* mkdirs_real(path, mode) */
static int fs_mkdirs_real(lua_State *L)
{
    lua_settop(L, 2);
    struct efr_err err;
    int rc = efr_fs_mkdirs_real(luax_check_path(L, 1), check_mode(L, 2, 0777), &err);
    return luax_push_ok(L, rc, &err);
}

/* unlink(path) */
static int fs_unlink(lua_State *L)
{
    lua_settop(L, 1);
    return push_result(L, unlink(luax_check_path(L, 1)), "remove");
}

/* rmdir(path) */
static int fs_rmdir(lua_State *L)
{
    lua_settop(L, 1);
    return push_result(L, rmdir(luax_check_path(L, 1)), "remove directory");
}

/* rename(from, to) */
static int fs_rename(lua_State *L)
{
    lua_settop(L, 2);
    return push_result(L, rename(luax_check_path(L, 1), luax_check_path(L, 2)), "rename");
}

/* symlink(target, path) */
static int fs_symlink(lua_State *L)
{
    lua_settop(L, 2);
    return push_result(L, symlink(luax_check_path(L, 1), luax_check_path(L, 2)),
                       "make a link to");
}

/* chmod(path, mode) */
static int fs_chmod(lua_State *L)
{
    lua_settop(L, 2);
    mode_t mode = (mode_t)luax_check_int(L, 2, 0, 07777);
    return push_result(L, chmod(luax_check_path(L, 1), mode), "set the mode of");
}

/* rmtree(path) */
static int fs_rmtree(lua_State *L)
{
    lua_settop(L, 1);
    struct efr_err err;
    return luax_push_ok(L, efr_fs_rmtree(luax_check_path(L, 1), &err), &err);
}

static int luaopen_efr_fs(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"check_private_dir", fs_check_private_dir},
        {"chmod", fs_chmod},
        {"lstat", fs_lstat},
        {"mkdir", fs_mkdir},
        {"mkdirs", fs_mkdirs},
        {"mkdirs_real", fs_mkdirs_real},
        {"read_file", fs_read_file},
        {"read_real", fs_read_real},
        {"readdir", fs_readdir},
        {"readlink", fs_readlink},
        {"realpath", fs_realpath},
        {"rename", fs_rename},
        {"rmdir", fs_rmdir},
        {"rmtree", fs_rmtree},
        {"stat", fs_stat},
        {"symlink", fs_symlink},
        {"unlink", fs_unlink},
        {"write_atomic", fs_write_atomic},
        {"write_real", fs_write_real},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(fs, "efr.fs", luaopen_efr_fs);
