/*
 * Reading and writing files: see fs.h. Any thread.
 */
#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "util.h"

#define READ_STEP_BYTES 65536

int efr_fs_open_real(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

const char *efr_fs_type_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "file";
    case S_IFDIR:
        return "dir";
    case S_IFLNK:
        return "link";
    case S_IFSOCK:
        return "socket";
    case S_IFIFO:
        return "fifo";
    case S_IFCHR:
        return "char";
    default:
        return "block";
    }
}

/* ---- reading ---- */

static int too_big(const char *path, size_t max_bytes, struct efr_err *err)
{
    return efr_err_set(err, "EFR_TOO_BIG", "read %s: larger than %zu bytes", path,
                       max_bytes);
}

static int read_all(int fd, const char *path, size_t max_bytes, struct efr_buf *out,
                    struct efr_err *err)
{
    size_t start = out->len;
    for (;;) {
        char *at = efr_buf_reserve(out, READ_STEP_BYTES);
        ssize_t n = read(fd, at, READ_STEP_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return efr_err_errno(err, errno, "read %s", path);
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        if (out->len - start > max_bytes)
            return too_big(path, max_bytes, err);
    }
}

static int read_fd(int fd, const char *path, size_t max_bytes, struct efr_buf *out,
                   struct efr_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return efr_err_errno(err, errno, "stat %s", path);
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((size_t)st.st_size > max_bytes)
            return too_big(path, max_bytes, err);
        (void)efr_buf_reserve(out, (size_t)st.st_size + READ_STEP_BYTES);
    }
    return read_all(fd, path, max_bytes, out, err);
}

int efr_fs_read_regular(int fd, const char *path, size_t max_bytes, struct efr_buf *out,
                        struct efr_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return efr_err_errno(err, errno, "stat %s", path);
    if (!S_ISREG(st.st_mode))
        return efr_err_set(err, "EFR_NOT_REGULAR", "read %s: not a regular file", path);
    return read_fd(fd, path, max_bytes, out, err);
}

int efr_fs_read(const char *path, size_t max_bytes, bool real, struct efr_buf *out,
                struct efr_err *err)
{
    /* O_NONBLOCK: a fifo in place of the file must not hang us. */
    int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
    CLEANUP_FD int fd = real ? efr_fs_open_real(AT_FDCWD, path, flags | O_NONBLOCK, 0)
                             : open(path, flags);
    if (fd < 0)
        return efr_err_errno(err, errno, "open %s", path);
    return real ? efr_fs_read_regular(fd, path, max_bytes, out, err)
                : read_fd(fd, path, max_bytes, out, err);
}

/* ---- writing ---- */

static int write_all(int fd, const char *data, size_t len_bytes)
{
    while (len_bytes > 0) {
        ssize_t n = write(fd, data, len_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        len_bytes -= (size_t)n;
    }
    return 0;
}

/* Splits path into its parent (written to dir) and its last name (returned, borrowed). */
static const char *split(const char *path, char *dir, size_t dir_size,
                         struct efr_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t dir_len = slash ? (size_t)(slash - path) : 0;
    if (dir_len >= dir_size || strlen(name) > NAME_MAX) {
        efr_err_errno(err, ENAMETOOLONG, "write %s", path);
        return NULL;
    }
    if (!*name || !strcmp(name, ".") || !strcmp(name, "..")) {
        efr_err_errno(err, EISDIR, "write %s", path);
        return NULL;
    }
    if (!slash)
        (void)snprintf(dir, dir_size, ".");
    else if (dir_len == 0)
        (void)snprintf(dir, dir_size, "/");
    else
        (void)snprintf(dir, dir_size, "%.*s", (int)dir_len, path);
    return name;
}

/* Takes over the mode and the owner of the file that is replaced. */
static int keep_identity(int dir_fd, const char *name, int fd, mode_t *mode)
{
    struct stat old;
    struct stat mine;
    if (fstatat(dir_fd, name, &old, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : -1;
    if (!S_ISREG(old.st_mode)) {
        errno = 0;
        return -1;
    }
    *mode = old.st_mode & 0777;
    if (fstat(fd, &mine) != 0)
        return -1;
    if (old.st_uid == mine.st_uid && old.st_gid == mine.st_gid)
        return 0;
    return fchown(fd, old.st_uid, old.st_gid);
}

/* Fills the temporary file and gives it the name. Returns -1 with *err set. */
static int fill_and_rename(int dir_fd, int fd, const char *temp, const char *name,
                           const struct efr_fs_write *how, struct efr_err *err)
{
    mode_t mode = how->mode;
    if (how->keep && keep_identity(dir_fd, name, fd, &mode) != 0) {
        if (errno == 0)
            return efr_err_set(err, "EFR_NOT_REGULAR", "write %s: not a regular file",
                               name);
        return efr_err_errno(err, errno, "keep mode and owner of %s", name);
    }
    if (write_all(fd, how->data, how->len_bytes) != 0)
        return efr_err_errno(err, errno, "write %s", name);
    if (fchmod(fd, mode) != 0)
        return efr_err_errno(err, errno, "set the mode of %s", name);
    if (fsync(fd) != 0)
        return efr_err_errno(err, errno, "sync %s", name);
    if (renameat(dir_fd, temp, dir_fd, name) != 0)
        return efr_err_errno(err, errno, "rename to %s", name);
    return 0;
}

int efr_fs_write(const char *path, const struct efr_fs_write *how, struct efr_err *err)
{
    char dir[4096];
    const char *name = split(path, dir, sizeof(dir), err);
    if (!name)
        return -1;
    int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    CLEANUP_FD int dir_fd =
        how->real ? efr_fs_open_real(AT_FDCWD, dir, flags, 0) : open(dir, flags);
    if (dir_fd < 0)
        return efr_err_errno(err, errno, "open %s", dir);
    uint64_t id;
    char temp[64];
    efr_random(&id, sizeof(id));
    (void)snprintf(temp, sizeof(temp), ".efr.%016llx.tmp", (unsigned long long)id);
    CLEANUP_FD int fd =
        openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return efr_err_errno(err, errno, "write beside %s", path);
    if (fill_and_rename(dir_fd, fd, temp, name, how, err) != 0) {
        (void)unlinkat(dir_fd, temp, 0);
        return -1;
    }
    /* The new content is in place; that the name lasts is the disk's part. */
    if (fsync(dir_fd) != 0 && errno != EINVAL)
        return efr_err_errno(err, errno, "sync %s", dir);
    return 0;
}

/* ---- directories ---- */

static int make_one(const char *path, mode_t mode, struct efr_err *err)
{
    struct stat st;
    if (mkdir(path, mode) == 0)
        return 0;
    int errnum = errno;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return efr_err_errno(err, errnum, "make directory %s", path);
}

int efr_fs_mkdirs(const char *path, mode_t mode, struct efr_err *err)
{
    char part[4096];
    size_t len = strlen(path);
    if (len >= sizeof(part))
        return efr_err_errno(err, ENAMETOOLONG, "make directory %s", path);
    memcpy(part, path, len + 1);
    for (size_t i = 1; i < len; i++) {
        if (part[i] != '/' || part[i - 1] == '/')
            continue;
        part[i] = '\0';
        if (make_one(part, mode, err) != 0)
            return -1;
        part[i] = '/';
    }
    return make_one(path, mode, err);
}

/* Opens the directory name in dir_fd, which it makes when it is missing. */
static int enter_or_make(int dir_fd, const char *name, mode_t mode)
{
    int fd = efr_fs_open_real(dir_fd, name, O_PATH | O_DIRECTORY, 0);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    bool made = mkdirat(dir_fd, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return -1;
    fd = efr_fs_open_real(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0 && made && fchmod(fd, mode) != 0) {
        int errnum = errno;
        (void)close(fd);
        errno = errnum;
        return -1;
    }
    return fd;
}

int efr_fs_mkdirs_real(const char *path, mode_t mode, struct efr_err *err)
{
    char part[4096];
    size_t len = strlen(path);
    if (len >= sizeof(part))
        return efr_err_errno(err, ENAMETOOLONG, "make directory %s", path);
    memcpy(part, path, len + 1);
    CLEANUP_FD int fd =
        efr_fs_open_real(AT_FDCWD, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY, 0);
    char *rest = NULL;
    for (char *name = strtok_r(part, "/", &rest); fd >= 0 && name;
         name = strtok_r(NULL, "/", &rest)) {
        int next = enter_or_make(fd, name, mode);
        int errnum = errno;
        (void)close(fd);
        fd = next;
        errno = errnum;
    }
    return fd < 0 ? efr_err_errno(err, errno, "make directory %s", path) : 0;
}

int efr_fs_check_private_dir(const char *path, struct efr_err *err)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return efr_err_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return efr_err_errno(err, ENOTDIR, "%s", path);
    if (st.st_uid != geteuid())
        return efr_err_set(err, "EFR_NOT_PRIVATE", "%s belongs to user %u", path,
                           st.st_uid);
    if (st.st_mode & 077)
        return efr_err_set(err, "EFR_NOT_PRIVATE", "%s is open to others (mode %04o)",
                           path, st.st_mode & 07777);
    return 0;
}
