/* See bwrap.h. Between the launcher and bubblewrap stands a watcher: until bubblewrap has written
 * the id maps its child waits for it without an end, also when it was killed meanwhile. The watcher
 * inherits that child and ends it. Bubblewrap gets no environment: it is a program with shared libraries. What it and
 * pid 1 need are descriptors and files in memory; its command line shows nothing. */
#include "bwrap.h"

#include "bounds.h"
#include "bwrap_args.h"
#include "landlock.h"
#include "util.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define STATUS_BYTES 4096
#define NUMBER_BYTES 16
#define SELF_BYTES 40

/* Everything that bubblewrap is started with. */
struct start {
    const struct bwrap *bwrap;
    const struct bwrap_args *args;
    int program;  /* O_PATH of bubblewrap */
    int launcher; /* of efr-sbx, for inner */
    int args_fd;
    int policy_fd;
    int errors_fd;
    int status_fd;
};

/* A program with rights of its own, or one that somebody else can change, builds no call. */
static int open_program(const char *path)
{
    char name[SELF_BYTES];
    struct stat st;
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, 0);
    if (fd < 0)
        die_errno("open %s", path);
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        die("%s is not a program", path);
    if (st.st_uid != 0)
        die("%s does not belong to root", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        die("%s can be changed by others", path);
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if ((st.st_mode & (S_ISUID | S_ISGID)) ||
        getxattr(name, "security.capability", NULL, 0) >= 0)
        die("%s has rights of its own (set-user-id); the unprivileged build is needed",
            path);
    return steal_fd(&fd);
}

/* Room for one descriptor per mount; pid 1 puts the limit back. */
static void raise_open_files(struct rlimit *before)
{
    struct rlimit all;
    if (getrlimit(RLIMIT_NOFILE, before) < 0)
        die_errno("limit of open files");
    all = *before;
    all.rlim_cur = all.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &all) < 0)
        die_errno("limit of open files");
}

static int memory_of(const char *bytes, size_t len)
{
    CLEANUP_FD int fd = memfd_create("efr-bwrap", MFD_CLOEXEC);
    if (fd < 0 || write_all(fd, bytes, len) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        die_errno("arguments");
    return steal_fd(&fd);
}

static void pass(int fd)
{
    if (fd >= 0 && fcntl(fd, F_SETFD, 0) < 0)
        die_errno("pass descriptor %d", fd);
}

static void pass_all(const struct start *start)
{
    const struct policy *policy = &start->bwrap->policy;
    const int fds[] = {
        start->launcher,         start->args_fd,         start->policy_fd,
        start->status_fd,        policy->init.status_fd, policy->init.lifeline_fd,
        policy->init.records_fd, policy->stderr_fd,      policy->lock_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        pass(fds[i]);
    for (size_t i = 0; i < start->args->fd_count; i++)
        pass(start->args->fds[i]);
}

static void run_bwrap(const struct start *start, pid_t watcher) __attribute__((noreturn));

static void run_bwrap(const struct start *start, pid_t watcher)
{
    char args[NUMBER_BYTES];
    char policy[NUMBER_BYTES];
    char self[SELF_BYTES];
    char *const none[] = {NULL};
    char *const *environment = none;
#ifdef EFR_SBX_TEST_UNSAFE
    environment = environ; /* names the form, for inner */
#endif
    (void)snprintf(args, sizeof args, "%d", start->args_fd);
    (void)snprintf(policy, sizeof policy, "%d", start->policy_fd);
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", start->launcher);
    const char *argv[] = {"bwrap", "--args",      args,   "--", self,
                          "inner", "--policy-fd", policy, NULL};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != watcher)
        die("the launcher is gone");
    cgroup_enter(start->bwrap->cgroup);
    bounds_out_of_memory();
    pass_all(start);
    if (dup2(start->errors_fd, STDERR_FILENO) < 0)
        die_errno("standard error");
    (void)syscall(SYS_execveat, start->program, "", argv, environment, AT_EMPTY_PATH);
    die_errno("execute bubblewrap");
}

/* Ends every child of this process: bubblewrap, or what it left behind. */
static void end_children(void)
{
    char text[1024];
    do {
        CLEANUP_FD int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
        ssize_t len = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);
        text[len < 0 ? 0 : len] = '\0';
        char *at = text;
        for (long pid = strtol(at, &at, 10); pid > 0; pid = strtol(at, &at, 10))
            (void)kill((pid_t)pid, SIGKILL);
    } while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* Waits for the end of bubblewrap or of the launcher, whose end of the lifeline closes then. */
static void watch(const struct start *start, int lifeline) __attribute__((noreturn));

static void watch(const struct start *start, int lifeline)
{
    sigset_t all;
    pid_t self = getpid();
    /* As pid 1 of the native backend: a signal to the group must not end half of a call. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        die_errno("subreaper");
    pid_t pid = fork();
    if (pid < 0)
        die_errno("fork");
    if (pid == 0)
        run_bwrap(start, self);
    int ended = (int)syscall(SYS_pidfd_open, pid, 0);
    int launcher = fcntl(lifeline, F_DUPFD_CLOEXEC, 3);
    if (ended < 0 || launcher < 0 || dup2(ended, 0) < 0 || dup2(launcher, 1) < 0 ||
        syscall(SYS_close_range, 2U, ~0U, 0) < 0) {
        end_children();
        _exit(EFR_EXIT_SETUP);
    }
    struct pollfd fds[] = {{.fd = 0, .events = POLLIN}, {.fd = 1}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        continue;
    if (!fds[0].revents)
        (void)kill(pid, SIGKILL);
    end_children();
    _exit(0);
}

static int open_self(void)
{
    int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    if (fd < 0)
        die_errno("open the launcher");
    return fd;
}

static void fill_policy(struct policy *policy, const struct bwrap_args *args,
                        const struct plan *plan)
{
    policy->entries = args->entries;
    policy->entry_count = plan->mount_count;
    policy->environment = environ;
    policy->waits = args->overlays;
    policy->max_abi = landlock_abi();
    policy_namespaces(policy->namespaces);
    policy->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (policy->stderr_fd < 0)
        die_errno("standard error");
}

static void child_failed(const char *text)
{
    say("%s", text);
    _exit(EFR_EXIT_SETUP);
}

void bwrap_start(struct bwrap *bwrap, const struct init_args *init,
                 const char *plan_bytes, size_t plan_len, int lock_fd, int lifeline)
{
    struct bwrap_args args;
    int errors[2];
    int status[2];
    struct policy *policy = &bwrap->policy;
    stage("bubblewrap");
    *bwrap = (struct bwrap){.pid = -1, .cgroup = bwrap->cgroup};
    CLEANUP_FD int program = open_program(init->plan->bwrap);
    CLEANUP_FD int launcher = open_self();
    *policy = (struct policy){.init = *init,
                              .plan_bytes = plan_bytes,
                              .plan_len = plan_len,
                              .lock_fd = lock_fd};
    raise_open_files(&policy->open_files);
    if (pipe2(errors, O_CLOEXEC) < 0 || pipe2(status, O_CLOEXEC) < 0)
        die_errno("pipe");
    bwrap_args_build(&args, init->plan, init->terminal, status[1]);
    stage("bubblewrap");
    fill_policy(policy, &args, init->plan);
    CLEANUP_FD int args_fd = memory_of(args.bytes, args.used);
    CLEANUP_FD int policy_fd = policy_write(policy);
    struct start start = {.bwrap = bwrap,
                          .args = &args,
                          .program = program,
                          .launcher = launcher,
                          .args_fd = args_fd,
                          .policy_fd = policy_fd,
                          .errors_fd = errors[1],
                          .status_fd = status[1]};
    bwrap->pid = fork();
    if (bwrap->pid < 0)
        die_errno("fork");
    if (bwrap->pid == 0) {
        die_sink(child_failed);
        (void)close(lifeline);
        watch(&start, init->lifeline_fd);
    }
    bwrap->errors = errors[0];
    bwrap->status = status[0];
    bwrap->entries = args.entries;
    args.entries = NULL;
    policy->entries = bwrap->entries;
    bwrap_args_finish(&args);
    (void)close(errors[1]);
    (void)close(status[1]);
    (void)close(policy->stderr_fd);
    (void)setrlimit(RLIMIT_NOFILE, &policy->open_files);
}

pid_t bwrap_init_pid(const struct bwrap *bwrap)
{
    static const char KEY[] = "\"child-pid\":";
    char text[STATUS_BYTES];
    size_t used = 0;
    while (used < sizeof text - 1) {
        ssize_t n = read(bwrap->status, text + used, sizeof text - 1 - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        used += (size_t)n;
        text[used] = '\0';
        if (strchr(text, '\n') || strchr(text, '}'))
            break;
    }
    text[used] = '\0';
    const char *at = strstr(text, KEY);
    long pid = at ? strtol(at + sizeof KEY - 1, NULL, 10) : 0;
    if (pid <= 1 || pid > INT_MAX)
        die("bubblewrap does not name the first process of the call");
    return (pid_t)pid;
}

void bwrap_explain(const struct bwrap *bwrap, char *text, size_t text_bytes)
{
    char said[600];
    ssize_t len = -1;
    if (fcntl(bwrap->errors, F_SETFL, O_NONBLOCK) == 0)
        len = read(bwrap->errors, said, sizeof said - 1);
    said[len < 0 ? 0 : len] = '\0';
    said[strcspn(said, "\n")] = '\0';
    const char *words = strncmp(said, "bwrap: ", 7) == 0 ? said + 7 : said;
    if (*words)
        (void)snprintf(text, text_bytes, "bubblewrap: %s", words);
    else
        (void)snprintf(text, text_bytes, "pid 1: it ended without a report");
}
