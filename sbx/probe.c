/* See probe.h. */
#include "probe.h"

#include "landlock.h"
#include "launch.h"
#include "util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SOCKET_NAME "socket"

/* A path has no limit of length this way: the address is relative to the directory. */
static int listen_in(const char *dir)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = SOCKET_NAME};
    if (chdir(dir) < 0)
        die_errno("%s", dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof name) < 0 ||
        listen(fd, 1) < 0)
        die_errno("listen in %s", dir);
    return fd;
}

static int listen_abstract(const char *text)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t len = strlen(text);
    if (len == 0 || len + 1 >= sizeof name.sun_path)
        die("the abstract name is empty or too long");
    memcpy(name.sun_path + 1, text, len);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, size) < 0 || listen(fd, 1) < 0)
        die_errno("listen on an abstract name");
    return fd;
}

static void take_terminal(int slave)
{
    if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || dup2(slave, STDIN_FILENO) < 0)
        die_errno("terminal");
}

int probe_run(const char *call_dir, const char *dir, const char *name, int max_abi)
{
    int status;
    pid_t parent = getpid();
    stage("probe");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        die_errno("parent death signal");
    CLEANUP_FD int by_path = listen_in(dir);
    CLEANUP_FD int by_name = listen_abstract(name);
    CLEANUP_FD int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || unlockpt(master) < 0)
        die_errno("open a terminal");
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0)
        die_errno("open a terminal");
    pid_t child = fork();
    if (child < 0)
        die_errno("fork");
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
            _exit(EFR_EXIT_SETUP);
        take_terminal(slave);
        landlock_cap(max_abi);
        exit(launch_run(call_dir));
    }
    (void)close(slave);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            die_errno("wait");
    (void)unlink(SOCKET_NAME);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EFR_EXIT_SETUP;
}
