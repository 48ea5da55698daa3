/*
 * efr-worker: parses hostile bytes in a locked room. Reads its role, gives everything up
 * (files, network, other programs, environment), then runs the role. Knows no Lua and
 * nothing of efrd but its three descriptors. A process of its own, one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine.h"
#include "screen.h"

#define EXIT_USAGE 2
#define EXIT_NOT_CONFINED 3
#define MEMORY_MAX_BYTES ((uint64_t)256 << 20)

struct role {
    const char *name;
    const int *syscalls; /* what it may call once confined */
    const size_t *syscall_count;
    int (*run)(void); /* returns the exit code */
};

static void say(int fd, const char *text)
{
    ssize_t n = write(fd, text, strlen(text));
    (void)n;
}

/* ---- role check: proves that the room is locked ---- */

static const int check_syscalls[] = {SYS_write, SYS_exit_group, SYS_exit,
                                     SYS_rt_sigreturn};

static const size_t check_syscall_count =
    sizeof(check_syscalls) / sizeof(check_syscalls[0]);

static int try_open(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int try_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* When this one works, the process is false(1), which says nothing and ends with 1. */
static int try_exec(void)
{
    char *argv[] = {(char[]){"false"}, NULL};
    return execve("/bin/false", argv, argv + 1);
}

static int run_check(void)
{
    static const struct {
        const char *name;
        int (*attempt)(void);
    } attempts[] = {
        {"open", try_open},
        {"socket", try_socket},
        {"execve", try_exec},
    };
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        if (attempts[i].attempt() < 0)
            continue;
        say(STDOUT_FILENO, "not confined: ");
        say(STDOUT_FILENO, attempts[i].name);
        say(STDOUT_FILENO, " works\n");
        return 1;
    }
    say(STDOUT_FILENO, "confined: open, socket and execve are refused\n");
    return 0;
}

/* ---- start ---- */

static const struct role roles[] = {
    {"check", check_syscalls, &check_syscall_count, run_check},
    {"screen", screen_syscalls, &screen_syscall_count, screen_run},
};

static const struct role *find_role(const char *name)
{
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (!strcmp(roles[i].name, name))
            return &roles[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct role *role = argc == 2 ? find_role(argv[1]) : NULL;
    if (!role) {
        (void)fprintf(stderr, "efr-worker: %s%s\nefr-worker is started by efrd.\n",
                      argc == 2 ? "unknown role "
                                : "exactly one argument is needed, the role",
                      argc == 2 ? argv[1] : "");
        return EXIT_USAGE;
    }
    static const int keep_fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    struct efr_confine confine = {
        .syscalls = role->syscalls,
        .syscall_count = *role->syscall_count,
        .keep_fds = keep_fds,
        .keep_fd_count = sizeof(keep_fds) / sizeof(keep_fds[0]),
        .deny_errno = EPERM,
        .memory_bytes = MEMORY_MAX_BYTES,
    };
    char message[256] = "";
    if (efr_confine(&confine, message, sizeof(message)) != 0) {
        (void)fprintf(stderr, "efr-worker: cannot confine itself: %s\n", message);
        return EXIT_NOT_CONFINED;
    }
    return role->run();
}
