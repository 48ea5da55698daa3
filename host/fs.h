/*
 * Files: reading with a limit, atomic writing, opening without following links. All
 * descriptors are close-on-exec. Knows no policy: which path is allowed is decided by the
 * caller. Any thread.
 */
#ifndef EFR_FS_H
#define EFR_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct efr_buf;
struct efr_err;

/* openat2(2) with RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS. Returns a descriptor or
 * -1 with errno set. */
int efr_fs_open_real(int dir_fd, const char *path, int flags, mode_t mode);

/* Appends a whole file to out. More than max bytes is an error EFR_TOO_BIG. With real
 * set, no component may be a link and the file must be regular (EFR_NOT_REGULAR). */
int efr_fs_read(const char *path, size_t max_bytes, bool real, struct efr_buf *out,
                struct efr_err *err);

/* The same from an open descriptor, of a regular file only; path is for the words of errors.
 */
int efr_fs_read_regular(int fd, const char *path, size_t max_bytes, struct efr_buf *out,
                        struct efr_err *err);

struct efr_fs_write {
    const char *data;
    size_t len_bytes;
    mode_t mode; /* of a new file */
    bool real;   /* the parent is opened without following links */
    bool
        keep; /* an existing regular file keeps its mode and owner; all else is refused */
};

/* Writes a temporary file beside path, syncs it and renames it over path. On failure the
 * old file is as it was and no temporary file is left. */
int efr_fs_write(const char *path, const struct efr_fs_write *how, struct efr_err *err);

/* Makes a directory and those above it. An existing directory is fine. */
int efr_fs_mkdirs(const char *path, mode_t mode, struct efr_err *err);

/* The same below a path without links: none is followed, also when another process swaps one
 * in meanwhile. What it makes has exactly this mode, whatever the umask. */
int efr_fs_mkdirs_real(const char *path, mode_t mode, struct efr_err *err);

/* Whether path is a directory of this user that nobody else can read or write. */
int efr_fs_check_private_dir(const char *path, struct efr_err *err);

/* Removes a file or a whole tree. Works on descriptors and follows no link, also when
 * another process changes the tree meanwhile; depth is limited by memory only. A missing
 * path is no error. */
int efr_fs_rmtree(const char *path, struct efr_err *err);

/* The same for an entry of an open directory. name is one component. */
int efr_fs_rmtree_at(int dir_fd, const char *name, struct efr_err *err);

/* "file", "dir", "link", "socket", "fifo", "char" or "block". */
const char *efr_fs_type_name(mode_t mode);

#endif
