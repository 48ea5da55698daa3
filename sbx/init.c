/* See init.h. */
#include "init.h"

#include "bounds.h"
#include "broker.h"
#include "caps.h"
#include "channel.h"
#include "command.h"
#include "deletes.h"
#include "landlock.h"
#include "mount.h"
#include "ns.h"
#include "seccomp.h"
#include "util.h"

#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h" /* tests/sbx: never in what ships */
#endif

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define MIN_LANDLOCK_ABI 2

static int status_fd = -1;
static int deletes_fd = -1;
static const struct overlays *overlays; /* borrowed */

static void send_message(int kind, int value, const char *text)
{
    struct message message = {.kind = kind, .value = value};
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    (void)write_all(status_fd, &message, sizeof message);
}

static void fail(const char *text)
{
    send_message(MESSAGE_SETUP_ERROR, 0, text);
    _exit(EFR_EXIT_SETUP);
}

static void die_with_launcher(int lifeline)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        die_errno("parent death signal");
    struct pollfd poll_fd = {.fd = lifeline, .events = POLLIN};
    if (poll(&poll_fd, 1, 0) > 0)
        _exit(EFR_EXIT_SETUP); /* the launcher died before the signal was set */
}

static void allow(int rules, int fd, enum landlock_class class, const char *what)
{
    if (landlock_allow(rules, fd, class) < 0)
        die_errno("rule for %s", what);
}

static void allow_path(int rules, const char *path, enum landlock_class class)
{
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, 0);
    if (fd < 0)
        die_errno("open %s", path);
    allow(rules, fd, class, path);
}

static void enter_landlock(const struct init_args *args, struct mount_result *mounts)
{
    static const char *const SINKS[] = {"/dev/null", "/dev/zero", "/dev/full"};
    static const char *const TERMINALS[] = {"/dev/tty", "/dev/pts"};
    CLEANUP_FD int rules = landlock_ruleset(MIN_LANDLOCK_ABI, 0);
    if (rules < 0)
        die_errno("Landlock of ABI %d or later is needed (Linux 5.19, lsm=...,landlock)",
                  MIN_LANDLOCK_ABI);
    allow(rules, mounts->root_fd, LANDLOCK_READ, "/");
    for (size_t i = 0; i < mounts->write_count; i++)
        allow(rules, mounts->write_fds[i], LANDLOCK_WRITE, "a write root");
    for (size_t i = 0; i < sizeof SINKS / sizeof *SINKS; i++)
        allow_path(rules, SINKS[i], LANDLOCK_SINK);
    for (size_t i = 0; i < sizeof TERMINALS / sizeof *TERMINALS; i++)
        allow_path(rules, TERMINALS[i], LANDLOCK_TERMINAL);
    if (args->terminal)
        allow_path(rules, "/dev/console", LANDLOCK_TERMINAL);
    for (size_t i = 0; i < args->plan->devices.count; i++)
        allow_path(rules, args->plan->devices.items[i], LANDLOCK_TERMINAL);
    for (size_t i = 0; i < args->plan->mount_count; i++)
        if (args->plan->mounts[i].kind == MOUNT_SOCKET)
            allow_path(rules, args->plan->mounts[i].path, LANDLOCK_SOCKET);
    if (args->plan->userns)
        allow_path(rules, "/proc", LANDLOCK_PROC); /* id maps; the mounts hold the rest */
    /* The terminals that the command inherits are those of the host: another device file. */
    for (int fd = 0; fd <= 2; fd++)
        if (isatty(fd))
            allow(rules, fd, LANDLOCK_TERMINAL, "an inherited terminal");
#ifdef EFR_SBX_TEST_UNSAFE
    if (unsafe_form("no-landlock"))
        return;
#endif
    if (landlock_enter(rules) < 0)
        die_errno("enter");
}

void init_fence(const struct init_args *args, struct mount_result *mounts)
{
    stage("directory");
    if (chdir(args->plan->cwd) < 0)
        die_errno("%s", args->plan->cwd);
    stage("no_new_privs");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        die_errno("prctl");
    stage("landlock");
    enter_landlock(args, mounts);
    for (size_t i = 0; i < mounts->write_count; i++)
        (void)close(mounts->write_fds[i]);
    (void)close(mounts->root_fd);
}

static void confine_self(const struct plan *plan, uint64_t capabilities)
{
    stage("pid 1");
    if (caps_keep_only(capabilities) < 0)
        die_errno("capabilities");
    /* A change of capabilities clears the death signal. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        die_errno("parent death signal");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        die_errno("non-dumpable");
    if (seccomp_enter_init(plan->uid == 0) < 0)
        die_errno("seccomp");
}

/* The layers are read once nothing can write there any more. */
static void list_deletes(void)
{
    if (deletes_fd < 0 || overlays->made_count == 0)
        return;
    (void)kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    deletes_write(overlays, deletes_fd);
}

static void command_changed(pid_t command, int status)
{
    (void)command;
    if (WIFSTOPPED(status)) {
        send_message(MESSAGE_STOPPED, WSTOPSIG(status), "");
        return;
    }
    if (WIFSIGNALED(status))
        send_message(MESSAGE_KILLED, WTERMSIG(status), "");
    else
        send_message(MESSAGE_EXITED, WEXITSTATUS(status), "");
    list_deletes();
    _exit(0); /* the kernel ends every process of the namespace with its pid 1 */
}

static void reap(pid_t command)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0)
        if (pid == command)
            command_changed(command, status);
}

static void read_lifeline(int fd, pid_t command)
{
    char byte;
    ssize_t n = read(fd, &byte, 1);
    if (n == 0)
        _exit(EFR_EXIT_SETUP); /* the launcher is gone */
    if (n == 1)
        (void)kill(-command, SIGCONT);
}

static void take_exits(int children, pid_t command)
{
    struct signalfd_siginfo info;
    (void)!read(children, &info, sizeof info);
    reap(command);
}

/* What pid 1 waits for while the command runs. */
struct serving {
    int children; /* signalfd of SIGCHLD */
    int listener; /* until the broker's own threads wait there */
    int watch;    /* timer of the broker */
};

static void serve(const struct init_args *args, const struct serving *s, pid_t command)
{
    struct pollfd fds[] = {
        {.fd = s->children, .events = POLLIN},
        {.fd = args->lifeline_fd, .events = POLLIN},
        {.fd = s->watch, .events = POLLIN},
        {.fd = s->listener, .events = POLLIN},
    };
    for (;;) {
        if (poll(fds, 4, -1) < 0) {
            if (errno != EINTR)
                _exit(EFR_EXIT_SETUP);
            continue;
        }
        if (fds[0].revents)
            take_exits(s->children, command);
        if (fds[1].revents)
            read_lifeline(args->lifeline_fd, command);
        if (fds[2].revents)
            broker_wake_orphans();
        /* A listener without callers only hangs up. */
        if (fds[3].revents && (!(fds[3].revents & POLLIN) || broker_serve()))
            fds[3].fd = -1;
    }
}

void init_begin(const struct init_args *args)
{
    sigset_t all;
    status_fd = args->status_fd;
    deletes_fd = args->deletes_fd;
    die_sink(fail);
    stage("start");
    die_with_launcher(args->lifeline_fd);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

void init_wait(const struct init_args *args, const char *text)
{
    char byte;
    ssize_t n;
    send_message(MESSAGE_WAITING, 0, text);
    do
        n = read(args->lifeline_fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(EFR_EXIT_SETUP); /* the launcher is gone, or could not do its part */
}

void init_serve(const struct init_args *args, const struct mount_result *mounts,
                uint64_t capabilities)
{
    overlays = &mounts->overlays;
    stage("start of the command");
    sigset_t child_signal;
    (void)sigemptyset(&child_signal);
    (void)sigaddset(&child_signal, SIGCHLD);
    int children = signalfd(-1, &child_signal, SFD_CLOEXEC);
    if (children < 0)
        die_errno("signalfd");
    struct command command;
    command_fork(&command, args);
    confine_self(args->plan, capabilities);
    struct socket_policy sockets = {.places = mounts->places,
                                    .place_count = mounts->place_count,
                                    .other_roots = args->plan->userns,
                                    .host_network = args->plan->host_network};
    /* Abstract names of the host: a network of the call's own, or Landlock's scope (ABI 6). */
    sockets.refuse_abstract = sockets.host_network && landlock_abi() < 6;
    struct serving serving = {.children = children,
                              .listener = command_listener(&command)};
    serving.watch = broker_start(serving.listener, &sockets);
    int exec_error = command_go(&command);
    if (exec_error) {
        char text[900];
        (void)snprintf(text, sizeof text, "%.700s: %s", args->plan->argv.items[0],
                       strerror(exec_error));
        send_message(MESSAGE_LAUNCH_ERROR, exec_error == ENOENT ? 127 : 126, text);
        _exit(0);
    }
    send_message(MESSAGE_STARTED, 0, "");
    serve(args, &serving, command.pid);
    _exit(EFR_EXIT_SETUP);
}

void init_run(const struct init_args *args)
{
    struct mount_result mounts = {0};
    init_begin(args);
    stage("identity");
    ns_map_ids(args->plan->uid, args->gid);
    bounds_for_call(args->plan);
    bounds_out_of_memory();
    stage("network");
    if (!args->plan->host_network)
        ns_loopback_up();
    mount_all(args->plan, args->terminal, &mounts);
    init_fence(args, &mounts);
    /* With it the broker takes the sockets of programs that are not dumpable. */
    init_serve(args, &mounts, 1ULL << CAP_SYS_PTRACE);
}
