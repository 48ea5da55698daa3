/* See selftest.h. Every check is one guarantee of a call: it passes only on the exact answer. */
#include "selftest.h"

#include "util.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#define MAX_MASKED 8
#define CHECK_SECONDS 5
/* Lower numbers may be processes of the call: its PID namespace counts from 1. */
#define FIRST_FOREIGN_PID 64
#define NAME "/.efr-self-test"
#define SKIPPED "skipped"

/* What the caller prepared outside, from the arguments; NULL or 0: not given. */
static struct {
    const char *write;              /* a write root */
    const char *outside;            /* a directory outside of every root */
    const char *masked[MAX_MASKED]; /* paths that hold something outside */
    size_t masked_count;
    const char *socket;   /* where a host process listens, in the write root */
    const char *abstract; /* the same for an abstract name */
    const char *cache;    /* a tool cache that the call may write */
    const char *terminal; /* any word: the call has a terminal */
    pid_t pid;            /* a process of this user outside */
} facts;

static const char *current = "start";

/* ---- answers ---- */

/* 0 for success of an attempt, or the errno that stopped it. */
static int outcome(long result)
{
    return result < 0 ? errno : 0;
}

/* NULL when the answer is the expected one (0: it must work), else what was seen. */
static const char *want(int seen, int expected)
{
    if (seen == expected)
        return NULL;
    const char *name = seen ? strerrorname_np(seen) : "it worked";
    return name ? name : "an unknown error";
}

static int open_outcome(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    int result = outcome(fd);
    if (fd >= 0)
        (void)close(fd);
    return result;
}

/* Tries to make a file below dir, and takes it away again. */
static int create_outcome(const char *dir)
{
    CLEANUP_FREE char *path = xasprintf("%s" NAME, dir);
    int result = open_outcome(path, O_WRONLY | O_CREAT);
    if (result == 0)
        (void)unlink(path);
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

static int connect_outcome(const char *path, size_t len, bool abstract)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t start = abstract ? 1 : 0;
    if (start + len >= sizeof name.sun_path)
        return ENAMETOOLONG;
    memcpy(name.sun_path + start, path, len);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + start + len);
    return outcome(
        connect(fd, (const struct sockaddr *)&name, abstract ? size : size + 1));
}

/* ---- files ---- */

static const char *write_inside(void)
{
    const char *seen = want(create_outcome("/tmp"), 0);
    return seen || !facts.write ? seen : want(create_outcome(facts.write), 0);
}

static const char *write_outside(void)
{
    const char *seen = want(create_outcome("/etc"), EROFS);
    return seen || !facts.outside ? seen : want(create_outcome(facts.outside), EROFS);
}

/* The mount of this node is writable and its mode lets everybody write: only Landlock says no. */
static const char *write_landlock_only(void)
{
    return want(open_outcome("/dev/urandom", O_WRONLY), EACCES);
}

static const char *empty_dir(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return want(errno, 0);
    const char *seen = NULL;
    const struct dirent *entry;
    while (!seen && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            seen = "its content shows";
    (void)closedir(dir);
    return seen ? seen : want(create_outcome(path), EROFS);
}

static const char *empty_file(const char *path)
{
    char byte;
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return want(errno, 0);
    if (read(fd, &byte, 1) != 0)
        return "its content shows";
    return want(open_outcome(path, O_WRONLY), EACCES);
}

static const char *mask_empty(void)
{
    struct stat st;
    if (facts.masked_count == 0)
        return SKIPPED;
    for (size_t i = 0; i < facts.masked_count; i++) {
        const char *path = facts.masked[i];
        if (lstat(path, &st) < 0 && errno == ENOENT)
            continue; /* hidden with the directory above it */
        if (lstat(path, &st) < 0)
            return want(errno, 0);
        const char *seen = S_ISDIR(st.st_mode) ? empty_dir(path) : empty_file(path);
        if (seen)
            return seen;
    }
    return NULL;
}

/* The file stays, so that the caller sees whether it came into the real cache. */
static const char *cache_write(void)
{
    if (!facts.cache)
        return SKIPPED;
    CLEANUP_FREE char *path = xasprintf("%s" NAME, facts.cache);
    return want(open_outcome(path, O_WRONLY | O_CREAT), 0);
}

/* The first file is this process's own, so that the mount alone can refuse. */
static const char *proc_sys(void)
{
    const char *seen = want(open_outcome("/proc/self/oom_score_adj", O_WRONLY), EROFS);
    if (seen)
        return seen;
    /* The machine's root alone may write it, by its mode. */
    int result = open_outcome("/proc/sys/kernel/core_pattern", O_WRONLY);
    return result == EACCES ? NULL : want(result, EROFS);
}

static const char *setuid_file(void)
{
    CLEANUP_FREE char *path = xasprintf("%s" NAME, facts.write ? facts.write : "/tmp");
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    if (fd < 0)
        return want(errno, 0);
    const char *seen = want(outcome(fchmod(fd, 04700)), EPERM);
    (void)unlink(path);
    return seen;
}

/* ---- sockets ---- */

static const char *unix_socket(void)
{
    const char *path = facts.socket ? facts.socket : "/dev/null";
    return want(connect_outcome(path, strlen(path), false), EACCES);
}

static const char *abstract_socket(void)
{
    const char *name = facts.abstract ? facts.abstract : "efr-self-test";
    return want(connect_outcome(name, strlen(name), true), ECONNREFUSED);
}

/* The broker lets a call reach what it made itself. */
static const char *own_socket(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "/tmp" NAME};
    (void)unlink(name.sun_path);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&name, sizeof name) < 0 ||
        listen(fd, 1) < 0)
        return want(errno, 0);
    const char *seen =
        want(connect_outcome(name.sun_path, strlen(name.sun_path), false), 0);
    (void)unlink(name.sun_path);
    return seen;
}

static const char *tcp(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(9)};
    (void)inet_pton(AF_INET, "192.0.2.1", &name.sin_addr);
    CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return want(errno, 0);
    return want(outcome(connect(fd, (const struct sockaddr *)&name, sizeof name)),
                ENETUNREACH);
}

static const char *vsock(void)
{
    return want(socket_outcome(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT);
}

static const char *unix_dgram(void)
{
    return want(socket_outcome(AF_UNIX, SOCK_DGRAM, 0), EPROTONOSUPPORT);
}

static const char *mptcp(void)
{
    return want(socket_outcome(AF_INET, SOCK_STREAM, 262), EPROTONOSUPPORT);
}

/* ---- processes ---- */

/* With pid 1 and this process alone in sight, nothing else can be named. */
static const char *signal_outside(void)
{
    const char *seen = want(outcome(kill(-1, 0)), ESRCH);
    if (seen || facts.pid < FIRST_FOREIGN_PID)
        return seen;
    return want(outcome(kill(facts.pid, 0)), ESRCH);
}

static const char *proc_environ(void)
{
    const char *seen = want(open_outcome("/proc/1/environ", O_RDONLY), EACCES);
    if (seen || facts.pid < FIRST_FOREIGN_PID)
        return seen;
    CLEANUP_FREE char *path = xasprintf("/proc/%d/environ", facts.pid);
    return want(open_outcome(path, O_RDONLY), ENOENT);
}

static const char *trace_child(void)
{
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    int result = outcome(ptrace(PTRACE_SEIZE, child, NULL, NULL));
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    return want(result, 0);
}

/* SIGKILL to the first process of a namespace from inside has no effect; were it otherwise, this
 * call would end here without a report. */
static const char *pid1_untouched(void)
{
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    (void)kill(1, SIGKILL);
    const char *seen = want(outcome(ptrace(PTRACE_SEIZE, 1, NULL, NULL)), EPERM);
    if (!seen)
        seen = want(outcome(process_vm_readv(1, &part, 1, &part, 1, 0)), EPERM);
    if (!seen)
        seen = want(open_outcome("/proc/1/mem", O_RDONLY), EACCES);
    if (seen)
        return seen;
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    if (pidfd < 0)
        return want(errno, 0);
    return want(outcome(syscall(SYS_pidfd_getfd, pidfd, 0, 0)), EPERM);
}

/* ---- rights ---- */

static const char *nested_userns(void)
{
    const char *seen = want(outcome(unshare(CLONE_NEWUSER)), EPERM);
    if (seen)
        return seen;
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return want(outcome(pid), EPERM);
}

static const char *no_capability(void)
{
    static const char *const SETS[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    char text[4096] = "";
    CLEANUP_FD int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read_full(fd, text, sizeof text - 1) < 0)
        return want(errno, 0);
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "%s:\t0000000000000000\n", SETS[i]);
        if (!strstr(text, line))
            return SETS[i];
    }
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? NULL : "no_new_privs is off";
}

static const char *io_uring(void)
{
    return want(outcome(syscall(SYS_io_uring_setup, 1, NULL)), ENOSYS);
}

/* ---- terminal ---- */

static const char *other_pts(void)
{
    DIR *dir = opendir("/dev/pts");
    if (!dir)
        return want(errno, 0);
    const char *seen = NULL;
    const struct dirent *entry;
    while (!seen && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "ptmx") != 0)
            seen = "a terminal shows";
    (void)closedir(dir);
    return seen;
}

static const char *tiocsti(void)
{
    return want(outcome(ioctl(STDIN_FILENO, TIOCSTI, "x")), EPERM);
}

static const char *tty(void)
{
    if (!facts.terminal)
        return SKIPPED;
    if (!isatty(STDIN_FILENO))
        return want(errno, 0);
    if (tcgetpgrp(STDIN_FILENO) != getpgrp())
        return "it is not in the foreground";
    return want(open_outcome("/dev/tty", O_RDWR), 0);
}

/* ---- the list ---- */

static const struct check {
    const char *name;
    const char *(*run)(void); /* NULL: it holds; SKIPPED; else what was seen */
} CHECKS[] = {
    {"write_inside", write_inside},
    {"write_outside", write_outside},
    {"write_landlock_only", write_landlock_only},
    {"mask_empty", mask_empty},
    {"unix_socket", unix_socket},
    {"abstract_socket", abstract_socket},
    {"signal_outside", signal_outside},
    {"proc_environ", proc_environ},
    {"tcp", tcp},
    {"io_uring", io_uring},
    {"vsock", vsock},
    {"nested_userns", nested_userns},
    {"other_pts", other_pts},
    {"tiocsti", tiocsti},
    {"tty", tty},
    {"cache_write", cache_write},
    {"unix_dgram", unix_dgram},
    {"mptcp", mptcp},
    {"ptrace_child", trace_child},
    {"pid1_untouched", pid1_untouched},
    {"proc_sys", proc_sys},
    {"setuid_file", setuid_file},
    {"no_capability", no_capability},
    {"own_socket", own_socket},
};

static int read_facts(int argc, char **argv)
{
    const struct {
        const char *name;
        const char **place;
    } options[] = {
        {"--write", &facts.write},   {"--outside", &facts.outside},
        {"--socket", &facts.socket}, {"--abstract", &facts.abstract},
        {"--cache", &facts.cache},   {"--terminal", &facts.terminal},
    };
    if (argc % 2 != 0)
        return -1;
    for (int i = 0; i < argc; i += 2) {
        bool known = false;
        for (size_t k = 0; k < sizeof options / sizeof *options && !known; k++) {
            known = strcmp(argv[i], options[k].name) == 0;
            if (known)
                *options[k].place = argv[i + 1];
        }
        if (strcmp(argv[i], "--pid") == 0)
            facts.pid = (pid_t)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--masked") == 0 && facts.masked_count < MAX_MASKED)
            facts.masked[facts.masked_count++] = argv[i + 1];
        else if (!known)
            return -1;
    }
    return 0;
}

static void on_alarm(int signal)
{
    static const char WORDS[] = " FAILED: no answer in time\n";
    (void)signal;
    (void)!write(STDOUT_FILENO, current, strlen(current));
    (void)!write(STDOUT_FILENO, WORDS, sizeof WORDS - 1);
    _exit(1);
}

int selftest_run(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_alarm};
    int failed = 0;
    if (read_facts(argc, argv) < 0) {
        say("usage: efr-sbx self-test [--write DIR] [--outside DIR] [--masked PATH]... "
            "[--socket PATH] [--abstract NAME] [--pid N] [--cache DIR] [--terminal yes]");
        return 2;
    }
    (void)sigaction(SIGALRM, &action, NULL);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        current = CHECKS[i].name;
        (void)alarm(CHECK_SECONDS);
        const char *seen = CHECKS[i].run();
        (void)alarm(0);
        bool skipped = seen && strcmp(seen, SKIPPED) == 0;
        if (!seen || skipped) {
            (void)printf("%s %s\n", current, skipped ? SKIPPED : "ok");
            continue;
        }
        (void)printf("%s FAILED: %s\n", current, seen);
        failed = 1;
    }
    return failed;
}
