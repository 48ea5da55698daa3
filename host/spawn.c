/*
 * Starting programs: see spawn.h. Main thread only. Between fork and execve only
 * async-signal-safe calls are made, because other threads may hold locks.
 */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "fs.h"
#include "util.h"

#define LIMITS_MAX 16
#define SAFE_FD_MIN 64 /* sources are moved above every target first */

enum stage {
    STAGE_PID, /* no failure: the value is the pid of the daemon */
    STAGE_SESSION,
    STAGE_FDS,
    STAGE_CWD,
    STAGE_FORK,
    STAGE_EXEC,
};

static const char *const stage_names[] = {
    "pid of", "session of", "descriptors of", "directory of", "fork for", "execute",
};

/* What a child tells us through the pipe; less than PIPE_BUF, so it is one piece. */
struct report {
    int stage;
    int value;
};

struct limit {
    int resource;
    struct rlimit value;
};

struct job {
    const struct efr_spawn *what;
    int report_fd;
    struct limit limits[LIMITS_MAX];
    size_t limit_count;
};

/* ---- in the child ---- */

static void tell(const struct job *job, enum stage stage, int value)
{
    struct report report = {.stage = (int)stage, .value = value};
    ssize_t n = write(job->report_fd, &report, sizeof(report));
    (void)n;
}

static void reset_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &action, NULL);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int source_of(const struct efr_spawn *what, int target)
{
    for (size_t i = 0; i < what->fd_count; i++) {
        if (what->fds[i].target == target)
            return what->fds[i].source;
    }
    return EFR_SPAWN_NULL;
}

static int place_fd(int target, int source)
{
    int fd = source;
    if (source == EFR_SPAWN_NULL)
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fd == target) /* dup2 would leave the close-on-exec flag */
        return fcntl(fd, F_SETFD, 0);
    return dup2(fd, target) < 0 ? -1 : 0;
}

/* Gives the child its descriptors. All others, also the report pipe, close on exec. */
static int place_fds(struct job *job)
{
    const struct efr_spawn *what = job->what;
    int moved[EFR_SPAWN_FDS_MAX];
    int report_fd = fcntl(job->report_fd, F_DUPFD_CLOEXEC, SAFE_FD_MIN);
    if (report_fd < 0 || close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        return -1;
    job->report_fd = report_fd;
    for (size_t i = 0; i < what->fd_count; i++) {
        moved[i] = what->fds[i].source;
        if (moved[i] != EFR_SPAWN_NULL)
            moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, SAFE_FD_MIN);
        if (moved[i] < 0 && what->fds[i].source != EFR_SPAWN_NULL)
            return -1;
    }
    for (size_t i = 0; i < what->fd_count; i++) {
        if (place_fd(what->fds[i].target, moved[i]) != 0)
            return -1;
    }
    for (int fd = 0; fd <= 2; fd++) {
        if (source_of(what, fd) == EFR_SPAWN_NULL && place_fd(fd, EFR_SPAWN_NULL) != 0)
            return -1;
    }
    return 0;
}

static void run_child(struct job *job) __attribute__((noreturn));

static void run_child(struct job *job)
{
    const struct efr_spawn *what = job->what;
    enum stage stage = STAGE_FDS;
    if (place_fds(job) != 0)
        goto out;
    for (size_t i = 0; i < job->limit_count; i++)
        (void)setrlimit((__rlimit_resource_t)job->limits[i].resource,
                        &job->limits[i].value);
    stage = STAGE_SESSION;
    if (what->setsid ? setsid() < 0 : what->pgrp && setpgid(0, 0) != 0)
        goto out;
    stage = STAGE_CWD;
    if (what->cwd && chdir(what->cwd) != 0)
        goto out;
    if (what->umask_bits >= 0)
        (void)umask((mode_t)what->umask_bits);
    reset_signals();
    stage = STAGE_EXEC;
    (void)execve(what->path, what->argv, what->env);
out:
    tell(job, stage, errno);
    _exit(127);
}

static void run_middle(struct job *job) __attribute__((noreturn));

/* The process between us and a daemon: leads the session, starts it and ends, so that the
 * daemon is nobody's child and cannot take a controlling terminal by accident. */
static void run_middle(struct job *job)
{
    if (setsid() < 0) {
        tell(job, STAGE_SESSION, errno);
        _exit(127);
    }
    pid_t pid = fork();
    if (pid == 0)
        run_child(job);
    if (pid < 0)
        tell(job, STAGE_FORK, errno);
    else
        tell(job, STAGE_PID, pid);
    _exit(0);
}

/* ---- in the parent ---- */

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Reads reports until the other end is closed by execve or exit. Returns whether a step
 * failed; *pid is set by STAGE_PID. */
static int read_reports(int fd, const struct efr_spawn *what, pid_t *pid,
                        struct efr_err *err)
{
    struct report report;
    int failed = 0;
    for (;;) {
        ssize_t n = read(fd, &report, sizeof(report));
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof(report))
            return failed;
        if (report.stage == STAGE_PID) {
            *pid = report.value;
            continue;
        }
        failed = 1;
        efr_err_errno(err, report.value, "%s %s", stage_names[report.stage], what->path);
    }
}

static pid_t fork_job(struct job *job, void (*child)(struct job *job),
                      struct efr_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return efr_err_errno(err, errno, "pipe for %s", job->what->path);
    CLEANUP_FD int read_end = ends[0];
    CLEANUP_FD int write_end = ends[1];
    job->report_fd = write_end;
    /* No handler of ours may run in the child. */
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        child(job);
    int errnum = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return efr_err_errno(err, errnum, "fork for %s", job->what->path);
    efr_close(&write_end);
    pid_t result = pid;
    int failed = read_reports(read_end, job->what, &result, err);
    if (failed || child != run_child)
        reap(pid);
    return failed ? -1 : result;
}

pid_t efr_spawn(const struct efr_spawn *what, struct efr_err *err)
{
    struct job job = {.what = what};
    return fork_job(&job, run_child, err);
}

/* ---- limits of a daemon ---- */

static const struct {
    const char *name; /* as in /proc/PID/limits */
    int resource;
} limit_names[] = {
    {"Max cpu time", RLIMIT_CPU},           {"Max file size", RLIMIT_FSIZE},
    {"Max data size", RLIMIT_DATA},         {"Max stack size", RLIMIT_STACK},
    {"Max core file size", RLIMIT_CORE},    {"Max resident set", RLIMIT_RSS},
    {"Max processes", RLIMIT_NPROC},        {"Max open files", RLIMIT_NOFILE},
    {"Max address space", RLIMIT_AS},       {"Max locked memory", RLIMIT_MEMLOCK},
    {"Max msgqueue size", RLIMIT_MSGQUEUE},
};

static void add_limit(struct job *job, int resource, const char *text)
{
    struct limit limit = {.resource = resource};
    if (getrlimit((__rlimit_resource_t)resource, &limit.value) != 0)
        return;
    char *end = NULL;
    errno = 0;
    rlim_t soft = strtoull(text, &end, 10);
    if (end == text) /* "unlimited" */
        soft = RLIM_INFINITY;
    if (limit.value.rlim_max != RLIM_INFINITY && soft > limit.value.rlim_max)
        soft = limit.value.rlim_max;
    limit.value.rlim_cur = soft;
    job->limits[job->limit_count++] = limit;
}

/* Lines are "%-25s %-20s ...". A system that hides the file leaves the limits as they
 * are. */
static void load_limits(struct job *job)
{
    struct efr_buf buf;
    efr_buf_init(&buf, false);
    if (efr_fs_read("/proc/1/limits", 65536, false, &buf, NULL) == 0) {
        efr_buf_putc(&buf, '\0');
        for (size_t i = 0; i < sizeof(limit_names) / sizeof(limit_names[0]); i++) {
            const char *line = strstr(buf.data, limit_names[i].name);
            if (line && strnlen(line, 26) == 26)
                add_limit(job, limit_names[i].resource, line + 26);
        }
    }
    efr_buf_finish(&buf);
}

pid_t efr_spawn_daemon(const struct efr_spawn *what, struct efr_err *err)
{
    struct efr_spawn daemon = *what;
    daemon.umask_bits = 077;
    daemon.setsid = false; /* the process between us leads the session */
    daemon.pgrp = true;
    struct job job = {.what = &daemon};
    load_limits(&job);
    return fork_job(&job, run_middle, err);
}
