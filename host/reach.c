/* See reach.h. */
#include "reach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "util.h"

/* The server of a network or FUSE file system is asked, whatever is remembered of it. */
static void look(const char *path)
{
    struct statx info;
    (void)!statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_TYPE, &info);
}

/* Between fork and the end only what a signal handler may call. A deadly signal ends a wait for a
 * server that is gone. */
static void ask(const char *paths, size_t len_bytes, unsigned int seconds, int fd)
{
    const char *end = paths + len_bytes;
    sigset_t none;
    if (dup2(fd, 0) != 0 || close_range(1, ~0U, 0) != 0)
        return;
    (void)signal(SIGALRM, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)alarm(seconds);
    for (const char *path = paths; path < end; path += strlen(path) + 1) {
        look(path);
        if (send(0, "", 1, MSG_NOSIGNAL) != 1)
            return; /* nobody waits any more */
    }
}

int efr_reach_ask(const char *paths, size_t len_bytes, unsigned int seconds,
                  struct efr_err *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return efr_err_errno(err, errno, "socketpair");
    CLEANUP_FD int theirs = fds[1];
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            ask(paths, len_bytes, seconds, theirs);
        _exit(0);
    }
    if (child < 0) {
        int saved = errno;
        (void)close(fds[0]);
        return efr_err_errno(err, saved, "fork");
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return fds[0];
}
