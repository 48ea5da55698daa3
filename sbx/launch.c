/* See launch.h. */
#include "launch.h"

#include "bwrap.h"
#include "cgroup.h"
#include "channel.h"
#include "init.h"
#include "landlock.h"
#include "layers.h"
#include "ns.h"
#include "overlay.h"
#include "path_floors.h"
#include "plan.h"
#include "report.h"
#include "util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct report report = {.dir = -1, .exit_code = -1};
static struct cgroup cgroup = {.parent = -1, .dir = -1};

/* The call while it is started and followed. */
struct call {
    struct init_args args;
    const char *plan_bytes; /* borrowed */
    size_t plan_len;
    int lifeline;       /* write end */
    struct bwrap bwrap; /* pid -1: the native backend */
    struct layers layers;
};

/* A failure of the launcher itself: reported like one of pid 1. */
static void fail(const char *text)
{
    die_sink(NULL);
    (void)snprintf(report.setup_error, sizeof report.setup_error, "%s", text);
    say("efr-sbx: setup failed: %s", text);
    cgroup_remove(&cgroup);
    _exit(report_finish(&report));
}

static void check_descriptors(void)
{
    if (syscall(SYS_close_range, 3U, ~0U, 0) < 0)
        die_errno("close_range");
    for (int fd = 0; fd <= 2; fd++) {
        struct stat st;
        if (fstat(fd, &st) < 0) {
            if (open("/dev/null", O_RDWR | O_CLOEXEC) != fd || fcntl(fd, F_SETFD, 0) < 0)
                die_errno("descriptor %d", fd);
            continue;
        }
        /* Below a directory of the host there is no mask and no pin: its mounts are the host's. */
        if (S_ISDIR(st.st_mode))
            die("descriptor %d is a directory of the host", fd);
        /* A socket of the host's network would be a way out, but for a connected pair. */
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        int domain = 0;
        socklen_t domain_len = sizeof domain;
        if (!S_ISSOCK(st.st_mode))
            continue;
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0 ||
            domain != AF_UNIX || getpeername(fd, (struct sockaddr *)&peer, &len) < 0)
            die("descriptor %d is a socket of the host", fd);
    }
}

static char *read_plan(int dir, size_t *len_bytes)
{
    CLEANUP_FD int fd =
        openat(dir, "plan", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        die_errno("open plan");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        die("plan is not a file of this user");
    if (st.st_size > PLAN_MAX_BYTES)
        die("plan is larger than %d bytes", PLAN_MAX_BYTES);
    char *bytes = xcalloc(1, (size_t)st.st_size + 1);
    ssize_t len = read_full(fd, bytes, (size_t)st.st_size + 1);
    if (len < 0)
        die_errno("read plan");
    *len_bytes = (size_t)len;
    return bytes;
}

/* An empty or relative entry would run programs of the directory the command stands in. */
static void check_path_variable(void)
{
    const char *entry = getenv("PATH");
    while (entry) {
        if (*entry != '/')
            die("PATH has an empty or relative entry");
        entry = strchr(entry, ':');
        if (entry)
            entry++;
    }
}

static void check_before(struct plan *plan)
{
    stage("plan");
    if (plan->uid != getuid() || plan->uid != geteuid())
        die("the plan is for uid %u", plan->uid);
    stage("environment");
    check_path_variable();
    path_floors_add(plan, getenv("PATH"));
    stage("landlock");
    int abi = landlock_abi();
    report.landlock_abi = abi < 0 ? 0 : abi;
    report.landlock_erratum =
        landlock_sees_moved_directories() ? 0 : LANDLOCK_ERRATUM_MOVED;
    if (abi < 2)
        die("Landlock is off or too old (ABI %d, 2 is needed: Linux 5.19, "
            "lsm=...,landlock)",
            abi);
}

static int make_memory_file(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        die_errno("memfd_create");
    return fd;
}

/* Finds the terminal among the standard descriptors. */
static void find_terminal(struct init_args *args, char *path, size_t path_bytes)
{
    args->terminal_fd = -1;
    for (int fd = 0; fd <= 2 && args->terminal_fd < 0; fd++)
        if (isatty(fd) && ttyname_r(fd, path, path_bytes) == 0)
            args->terminal_fd = fd;
    if (args->terminal_fd < 0)
        return;
    args->terminal = path;
    args->foreground = tcgetpgrp(args->terminal_fd) == getpgrp();
}

static void take_terminal(const struct init_args *args, pid_t group)
{
    sigset_t block;
    sigset_t old;
    (void)sigemptyset(&block);
    (void)sigaddset(&block, SIGTTOU);
    (void)sigprocmask(SIG_BLOCK, &block, &old);
    (void)tcsetpgrp(args->terminal_fd, group);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The command was stopped: the launcher stops in its place, as a job of the shell does, and
 * continues it when the shell continues the launcher. */
static void follow_stop(struct init_args *args, int signal, int lifeline)
{
    pid_t group = -1;
    if (args->terminal_fd >= 0) {
        group = tcgetpgrp(args->terminal_fd);
        if (args->foreground)
            take_terminal(args, getpgrp());
    }
    (void)raise(signal);
    if (args->terminal_fd >= 0 && tcgetpgrp(args->terminal_fd) == getpgrp()) {
        args->foreground = true;
        if (group > 0)
            take_terminal(args, group);
    }
    (void)write_all(lifeline, "c", 1);
}

/* Bubblewrap's call waits until the overlays are made. */
static void add_layers(struct call *call, const char *number)
{
    uint64_t mounts = strtoull(number, NULL, 10);
    call->layers.lifeline = call->lifeline;
    layers_start(&call->layers, &call->bwrap.policy, bwrap_init_pid(&call->bwrap), mounts,
                 call->args.deletes_fd);
    (void)write_all(call->lifeline, "g", 1);
}

static void take_message(struct call *call, const struct message *m)
{
    switch (m->kind) {
    case MESSAGE_STARTED:
        report_started(&report);
        break;
    case MESSAGE_STOPPED:
        follow_stop(&call->args, m->value, call->lifeline);
        break;
    case MESSAGE_EXITED:
        report.exit_code = m->value;
        break;
    case MESSAGE_KILLED:
        report.signal = m->value;
        break;
    case MESSAGE_LAUNCH_ERROR:
        report.exit_code = m->value;
        (void)snprintf(report.launch_error, sizeof report.launch_error, "%s", m->text);
        break;
    case MESSAGE_WAITING:
        add_layers(call, m->text);
        break;
    default:
        (void)snprintf(report.setup_error, sizeof report.setup_error, "%s", m->text);
        break;
    }
}

/* Pid 1 has said nothing: somebody ended it. */
static void explain_silence(const struct call *call)
{
    char *text = report.setup_error;
    if (cgroup_out_of_memory(&cgroup)) {
        unsigned long long mib = call->args.plan->max_memory_bytes >> 20;
        (void)snprintf(text, sizeof report.setup_error,
                       "memory: the call reached its limit of %llu MiB "
                       "(sandbox.max_memory_mib), and all of it was ended",
                       mib);
        if (!report.started)
            return;
        say("efr-sbx: %s", text);
        text[0] = '\0';
        report.signal = SIGKILL;
    } else if (call->bwrap.pid >= 0) {
        bwrap_explain(&call->bwrap, text, sizeof report.setup_error);
    } else {
        (void)snprintf(text, sizeof report.setup_error, "%s",
                       "pid 1: it ended without a report");
    }
}

static void follow(struct call *call, int status, pid_t child)
{
    struct init_args *args = &call->args;
    struct message message;
    while (read_full(status, &message, sizeof message) == sizeof message) {
        message.text[sizeof message.text - 1] = '\0';
        take_message(call, &message);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    layers_finish(&call->layers);
    if (args->terminal_fd >= 0 && args->foreground)
        take_terminal(args, getpgrp());
    if (report.exit_code < 0 && !report.signal && !report.setup_error[0])
        explain_silence(call);
    cgroup_remove(&cgroup);
}

/* Starts the call with the backend of the plan and returns the process to wait for. */
static pid_t start_call(struct call *call, int lock, const int *launcher_ends)
{
    const struct plan *plan = call->args.plan;
    cgroup_make(&cgroup, plan);
    if (plan->bwrap) {
        call->bwrap.cgroup = &cgroup;
        bwrap_start(&call->bwrap, &call->args, call->plan_bytes, call->plan_len, lock,
                    call->lifeline);
        return call->bwrap.pid;
    }
    pid_t child = ns_clone(!plan->host_network, cgroup.dir);
    if (child == 0) {
        cgroup_forget(&cgroup);
        (void)close(launcher_ends[0]);
        (void)close(launcher_ends[1]);
        (void)close(report.dir);
        init_run(&call->args);
    }
    return child;
}

static int run_plan(const struct plan *plan, const char *bytes, size_t len)
{
    char terminal[128];
    int status[2];
    int lifeline[2];
    struct call call = {
        .args = {.plan = plan, .records_fd = -1, .deletes_fd = -1, .gid = getegid()},
        .plan_bytes = bytes,
        .plan_len = len,
        .bwrap = {.pid = -1},
        .layers = {.pid = -1},
    };
    struct init_args *args = &call.args;
    stage("start");
    (void)sigprocmask(SIG_SETMASK, NULL, &args->mask);
    find_terminal(args, terminal, sizeof terminal);
    if (plan->records)
        args->records_fd = make_memory_file("efr-records");
    if (plan->layers)
        args->deletes_fd = make_memory_file("efr-deletes");
    if (pipe2(status, O_CLOEXEC) < 0 || pipe2(lifeline, O_CLOEXEC) < 0)
        die_errno("pipe");
    stage("tool caches");
    /* Pid 1 inherits it, so it is held until both have ended. */
    CLEANUP_FD int lock = overlays_lock(plan);
    args->status_fd = status[1];
    args->lifeline_fd = lifeline[0];
    call.lifeline = lifeline[1];
    pid_t child = start_call(&call, lock, (int[]){status[0], lifeline[1]});
    (void)close(status[1]);
    (void)close(lifeline[0]);
    follow(&call, status[0], child);
    report_records(&report, args->records_fd);
    report_deletes(&report, args->deletes_fd);
    if (report.setup_error[0])
        say("efr-sbx: setup failed: %s", report.setup_error);
    if (report.launch_error[0])
        say("efr-sbx: %s", report.launch_error);
    return report_finish(&report);
}

/* The launcher ends with the shell that started it, and the call with the launcher: a command that
 * ignores SIGHUP and holds the terminal's foreground would keep the hang-up from both. */
static void die_with_parent(void)
{
    pid_t parent = getppid();
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        die_errno("parent death signal");
    if (getppid() != parent)
        die("the process that started the launcher is gone");
}

int launch_run(const char *call_dir)
{
    struct plan plan;
    char message[400];
    size_t len = 0;
    die_sink(fail);
    stage("parent");
    die_with_parent();
    stage("descriptors");
    check_descriptors();
    stage("call directory");
    report.dir = report_open_dir(call_dir);
    CLEANUP_FREE char *bytes = read_plan(report.dir, &len);
    stage("plan");
    int parsed = plan_parse(&plan, bytes, len, message, sizeof message);
    report.nonce = plan.nonce;
    if (parsed < 0)
        die("%s", message);
    check_before(&plan);
    int result = run_plan(&plan, bytes, len);
    plan_finish(&plan);
    return result;
}
