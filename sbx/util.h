/* Small helpers of efr-sbx: one way to fail, allocation, descriptors that close themselves.
 * Owns: the failure message and its stage. Must not know: plans, mounts, policy.
 * Runs in: the launcher, the sandbox's pid 1 and, before exec, the command's process. */
#ifndef EFR_SBX_UTIL_H
#define EFR_SBX_UTIL_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#define EFR_EXIT_SETUP 125 /* the sandbox was not built; nothing of the command ran */

/* Names the step that runs now; every failure message starts with it. text is borrowed. */
void stage(const char *text);

/* Routes failure messages (pid 1 sends them to the launcher). The sink does not return. */
void die_sink(void (*sink)(const char *message));

/* Ends this process through the sink with "STAGE: message"; die_errno adds the errno text. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void die_errno(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Writes one line to standard error, best effort. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Allocation that cannot fail; the result belongs to the caller. */
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size_bytes);
char *xstrdup(const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes all bytes. Returns 0, or -1 with errno set. */
int write_all(int fd, const void *bytes, size_t len_bytes);

/* Reads up to cap_bytes until the end of the file. Returns the length or -1 with errno set. */
ssize_t read_full(int fd, void *bytes, size_t cap_bytes);

/* Opens path below dir (or absolute) as O_PATH with no symbolic link anywhere on it.
 * extra_flags: O_DIRECTORY or 0. Returns -1 with errno set (ELOOP: a link). */
int open_real(int dir, const char *path, int extra_flags);

void cleanup_fd(int *fd);
void cleanup_free(void *pointer);
#define CLEANUP_FD __attribute__((cleanup(cleanup_fd)))
#define CLEANUP_FREE __attribute__((cleanup(cleanup_free)))

/* Moves a descriptor out of an automatic variable. */
static inline int steal_fd(int *fd)
{
    int value = *fd;
    *fd = -1;
    return value;
}

#endif
