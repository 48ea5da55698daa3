/* See selftest.h. */
#include "selftest.h"

#include "util.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Every check returns 0 for success of the attempt, or the errno that stopped it. */
static int outcome(long result)
{
    return result < 0 ? errno : 0;
}

static int open_outcome(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    int result = outcome(fd);
    if (fd >= 0)
        (void)close(fd);
    return result;
}

static int socket_outcome(int family, int type, int protocol)
{
    int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    int result = outcome(fd);
    if (fd >= 0)
        (void)close(fd);
    return result;
}

static int write_inside(void)
{
    int result = open_outcome("/tmp/.efr-self-test", O_WRONLY | O_CREAT);
    (void)unlink("/tmp/.efr-self-test");
    return result;
}

static int write_outside(void)
{
    return open_outcome("/etc/.efr-self-test", O_WRONLY | O_CREAT);
}

static int connect_outside(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/dev/null"};
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return outcome(connect(fd, (const struct sockaddr *)&name, sizeof name));
}

static int tcp_outside(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(9)};
    (void)inet_pton(AF_INET, "192.0.2.1", &name.sin_addr);
    CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return outcome(connect(fd, (const struct sockaddr *)&name, sizeof name));
}

static int proc_environ(void)
{
    return open_outcome("/proc/1/environ", O_RDONLY);
}

static int io_uring(void)
{
    return outcome(syscall(SYS_io_uring_setup, 1, NULL));
}

static int vsock(void)
{
    return socket_outcome(AF_VSOCK, SOCK_STREAM, 0);
}

static int unix_dgram(void)
{
    return socket_outcome(AF_UNIX, SOCK_DGRAM, 0);
}

static int mptcp(void)
{
    return socket_outcome(AF_INET, SOCK_STREAM, 262);
}

static int nested_userns(void)
{
    return outcome(unshare(CLONE_NEWUSER));
}

static int tiocsti(void)
{
    return outcome(ioctl(STDIN_FILENO, TIOCSTI, "x"));
}

static int proc_sys(void)
{
    return open_outcome("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static int setuid_file(void)
{
    return outcome(chmod("/tmp", 04755));
}

static int trace_pid1(void)
{
    return outcome(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}

static int trace_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    int result = outcome(ptrace(PTRACE_SEIZE, child, NULL, NULL));
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    return result;
}

static int no_capability(void)
{
    char text[4096] = "";
    CLEANUP_FD int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read_full(fd, text, sizeof text - 1) < 0)
        return errno;
    static const char *const SETS[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "%s:\t0000000000000000\n", SETS[i]);
        if (!strstr(text, line))
            return ENOTRECOVERABLE;
    }
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : ENOTRECOVERABLE;
}

static const struct check {
    const char *name;
    int (*attempt)(void);
    int expected;    /* errno, 0 = the attempt must succeed */
    int or_expected; /* another means of the same guarantee, or the same again */
} CHECKS[] = {
    {"write_inside", write_inside, 0, 0},
    {"write_outside", write_outside, EROFS, EACCES},
    {"unix_socket", connect_outside, EACCES, EACCES},
    {"tcp", tcp_outside, ENETUNREACH, ENETUNREACH},
    {"proc_environ", proc_environ, EACCES, EACCES},
    {"io_uring", io_uring, ENOSYS, ENOSYS},
    {"vsock", vsock, EAFNOSUPPORT, EAFNOSUPPORT},
    {"unix_dgram", unix_dgram, EPROTONOSUPPORT, EPROTONOSUPPORT},
    {"mptcp", mptcp, EPROTONOSUPPORT, EPROTONOSUPPORT},
    {"nested_userns", nested_userns, EPERM, EPERM},
    {"tiocsti", tiocsti, EPERM, EPERM},
    {"proc_sys", proc_sys, EROFS, EACCES},
    {"setuid_file", setuid_file, EPERM, EPERM},
    {"pid1_untouched", trace_pid1, EPERM, EPERM},
    {"ptrace_child", trace_child, 0, 0},
    {"no_capability", no_capability, 0, 0},
};

int selftest_run(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        int seen = CHECKS[i].attempt();
        if (seen == CHECKS[i].expected || seen == CHECKS[i].or_expected) {
            (void)printf("%s ok\n", CHECKS[i].name);
            continue;
        }
        (void)printf("%s FAILED: %s\n", CHECKS[i].name,
                     seen ? strerrorname_np(seen) : "it worked");
        failed = 1;
    }
    return failed;
}
