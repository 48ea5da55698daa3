/*
 * Locks and the service manager: see sys.h. Main thread only.
 */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "util.h"

#define LOCK_POLL_MS 5
#define LISTEN_FIRST 3
#define LISTEN_MAX 64

/* Whether the path still names the file that we locked. */
static int still_there(const char *path, int fd)
{
    struct stat mine;
    struct stat named;
    return fstat(fd, &mine) == 0 && stat(path, &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* Tries once. Returns the descriptor, or -1 with errno (EWOULDBLOCK: try again). */
static int try_lock(const char *path)
{
    CLEANUP_FD int fd =
        open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (fd < 0 && errno == EISDIR)
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return -1;
    if (!still_there(path, fd)) {
        errno = EWOULDBLOCK;
        return -1;
    }
    return steal_fd(&fd);
}

int efr_lock_file(const char *path, int wait_ms, struct efr_err *err)
{
    int64_t end_us = efr_mono_us() + (int64_t)wait_ms * 1000;
    for (;;) {
        int fd = try_lock(path);
        if (fd >= 0)
            return fd;
        if (errno != EWOULDBLOCK)
            return efr_err_errno(err, errno, "lock %s", path);
        if (efr_mono_us() >= end_us)
            return efr_err_set(err, "EWOULDBLOCK", "lock %s: another process holds it",
                               path);
        struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
    }
}

int efr_notify(const char *text, size_t len_bytes, struct efr_err *err)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || (path[0] != '/' && path[0] != '@'))
        return 0;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t path_len = strlen(path);
    if (path_len >= sizeof(addr.sun_path))
        return efr_err_errno(err, ENAMETOOLONG, "notify socket");
    memcpy(addr.sun_path, path, path_len);
    if (path[0] == '@')
        addr.sun_path[0] = '\0';
    socklen_t addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_len);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return efr_err_errno(err, errno, "notify socket");
    if (sendto(fd, text, len_bytes, MSG_NOSIGNAL, (const struct sockaddr *)&addr,
               addr_len) < 0)
        return efr_err_errno(err, errno, "notify the service manager");
    return 0;
}

static int env_number(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || !*text)
        return -1;
    long value = strtol(text, &end, 10);
    return *end == '\0' && value >= 0 && value <= 1 << 30 ? (int)value : -1;
}

int efr_listen_fds(void)
{
    int count = env_number("LISTEN_FDS");
    int mine = env_number("LISTEN_PID") == getpid();
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDNAMES");
    if (!mine || count <= 0 || count > LISTEN_MAX)
        return 0;
    for (int fd = LISTEN_FIRST; fd < LISTEN_FIRST + count; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0)
            return 0;
    }
    return count;
}
