/*
 * What lies in a directory that is held open: every path is relative to its descriptor, no
 * component of it may be a link or lead out of the directory or onto another mount. So what
 * others swap meanwhile leads nowhere else. Knows no policy. Any thread.
 */
#ifndef EFR_DIR_H
#define EFR_DIR_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct efr_buf;
struct efr_err;

/* Opens a directory by its path; no component may be a link. Returns a descriptor or -1 with
 * errno set. */
int efr_dir_open(const char *path);

/* The same below dir_fd; "." is the directory itself, with a position of its own. */
int efr_dir_open_at(int dir_fd, const char *path);

/* What path is; a link is described itself. Returns 0 or -1 with errno set. */
int efr_dir_stat(int dir_fd, const char *path, struct stat *st);

/* Opens a file for reading, without waiting for a fifo; what it is must be asked of the descriptor.
 * Returns a descriptor or -1 with errno set. */
int efr_dir_open_file(int dir_fd, const char *path);

/* The text of a link, without a terminator. Returns its length, cut to text_bytes, or -1 with errno
 * set. */
ssize_t efr_dir_read_link(int dir_fd, const char *path, char *text, size_t text_bytes);

/* Appends a regular file to out; all else is EFR_NOT_REGULAR, more than max bytes EFR_TOO_BIG.
 * Never waits for a fifo. */
int efr_dir_read(int dir_fd, const char *path, size_t max_bytes, struct efr_buf *out,
                 struct efr_err *err);

/* Makes a file of exactly this mode; an existing entry is EEXIST. name is one component. */
int efr_dir_create(int dir_fd, const char *name, const char *data, size_t len_bytes,
                   mode_t mode);

/* Moves an entry into another directory; an entry that is there already is EEXIST. A link is
 * moved itself. Both names are one component. Returns 0 or -1 with errno set. */
int efr_dir_move(int from_fd, const char *from, int to_fd, const char *to);

/* Swaps two entries at once. Both names are one component. */
int efr_dir_exchange(int one_fd, const char *one, int other_fd, const char *other);

/* Sets the permissions of a file or directory; a link is ELOOP. */
int efr_dir_chmod(int dir_fd, const char *name, mode_t mode);

/* Sets owner and group, of a link itself. */
int efr_dir_chown(int dir_fd, const char *name, uid_t uid, gid_t gid);

#endif
