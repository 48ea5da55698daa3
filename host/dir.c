/*
 * Directories held open: see dir.h. Any thread.
 */
#include "dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "err.h"
#include "fs.h"
#include "util.h"

static int open_below(int dir_fd, const char *path, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_BENEATH |
                   RESOLVE_NO_XDEV,
    };
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

int efr_dir_open(const char *path)
{
    return efr_fs_open_real(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

int efr_dir_open_at(int dir_fd, const char *path)
{
    return open_below(dir_fd, path, O_RDONLY | O_DIRECTORY);
}

int efr_dir_stat(int dir_fd, const char *path, struct stat *st)
{
    CLEANUP_FD int fd = open_below(dir_fd, path, O_PATH | O_NOFOLLOW);
    return fd < 0 ? -1 : fstat(fd, st);
}

int efr_dir_open_file(int dir_fd, const char *path)
{
    return open_below(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
}

ssize_t efr_dir_read_link(int dir_fd, const char *path, char *text, size_t text_bytes)
{
    CLEANUP_FD int fd = open_below(dir_fd, path, O_PATH | O_NOFOLLOW);
    return fd < 0 ? -1 : readlinkat(fd, "", text, text_bytes);
}

int efr_dir_read(int dir_fd, const char *path, size_t max_bytes, struct efr_buf *out,
                 struct efr_err *err)
{
    CLEANUP_FD int fd = efr_dir_open_file(dir_fd, path);
    if (fd < 0)
        return efr_err_errno(err, errno, "open %s", path);
    return efr_fs_read_regular(fd, path, max_bytes, out, err);
}

int efr_dir_create(int dir_fd, const char *name, const char *data, size_t len_bytes,
                   mode_t mode)
{
    CLEANUP_FD int fd =
        openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    while (len_bytes > 0) {
        ssize_t n = write(fd, data, len_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            goto out;
        data += n;
        len_bytes -= (size_t)n;
    }
    if (fchmod(fd, mode) == 0 && fsync(fd) == 0)
        return 0;
out:;
    int saved = errno;
    (void)unlinkat(dir_fd, name, 0);
    errno = saved;
    return -1;
}

int efr_dir_move(int from_fd, const char *from, int to_fd, const char *to)
{
    return renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE);
}

int efr_dir_exchange(int one_fd, const char *one, int other_fd, const char *other)
{
    return renameat2(one_fd, one, other_fd, other, RENAME_EXCHANGE);
}

/* The kernels of Debian 12 have no chmod that takes a name and follows no link. */
int efr_dir_chmod(int dir_fd, const char *name, mode_t mode)
{
    char link[32];
    struct stat st;
    CLEANUP_FD int fd = open_below(dir_fd, name, O_PATH | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    if (S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return chmod(link, mode);
}

int efr_dir_chown(int dir_fd, const char *name, uid_t uid, gid_t gid)
{
    return fchownat(dir_fd, name, uid, gid, AT_SYMLINK_NOFOLLOW);
}
