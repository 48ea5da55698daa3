/* See keep.h. The shell is the reaper of what its commands leave behind, so all that a call started
 * is below it, whatever session it made or parent it lost, as long as the shell lives. */
#include "keep.h"

#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

enum {
    PROCESSES_MAX = 8192, /* in one round; there are more rounds */
    ROUNDS_MAX = 2000,
    STOP_MS = 1000,
    GRACE_MS = 1000,
    LAST_MS = 5000,
};

/* A process and the parent it was found under. */
struct found {
    pid_t pid, parent;
};

static struct found found[PROCESSES_MAX];
static size_t found_count;

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int open_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void signal_process(int pidfd, int signum)
{
    (void)syscall(SYS_pidfd_send_signal, pidfd, signum, NULL, 0);
}

/* Waits for the end of a process; a zombie has ended. */
static bool has_ended(int pidfd, int64_t timeout_ms)
{
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
    return poll(&poll_fd, 1, timeout_ms > 0 ? (int)timeout_ms : 0) > 0;
}

bool keep_parse_stat(const char *text, struct keep_stat *stat)
{
    /* PID (NAME) STATE PARENT ... START: the name may hold anything, also ")". */
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return false;
    stat->state = at[2];
    at += 3;
    for (int field = 4; field <= 22; field++) {
        char *end;
        unsigned long long value = strtoull(at, &end, 10);
        if (end == at)
            return false;
        if (field == 4)
            stat->parent = (pid_t)value;
        stat->start_ticks = value;
        at = end;
    }
    return true;
}

static bool read_stat(pid_t pid, struct keep_stat *stat)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);
    if (len < 0)
        return false;
    text[len] = '\0';
    return keep_parse_stat(text, stat);
}

/* Adds the children that one thread of a process has. */
static void add_children(pid_t parent, const char *thread)
{
    static char text[65536];
    char path[96];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)parent,
                   thread);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);
    if (len < 0)
        return;
    text[len] = '\0';
    char *at = text, *end;
    for (long pid; found_count < PROCESSES_MAX && (pid = strtol(at, &end, 10)) > 0;
         at = end)
        found[found_count++] = (struct found){.pid = (pid_t)pid, .parent = parent};
}

static void add_all_children(pid_t parent)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    DIR *threads = opendir(path);
    if (!threads)
        return;
    for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
        if (entry->d_name[0] != '.')
            add_children(parent, entry->d_name);
    (void)closedir(threads);
}

/* Fills found with what descends from the call. An older child of the shell belongs to a call that
 * is over, and so does all below it. */
static void find_call(pid_t shell, uint64_t since_ticks)
{
    found_count = 0;
    add_all_children(shell);
    size_t kept = 0;
    for (size_t i = 0; i < found_count; i++) {
        struct keep_stat stat;
        if (read_stat(found[i].pid, &stat) && stat.start_ticks >= since_ticks)
            found[kept++] = found[i];
    }
    found_count = kept;
    for (size_t i = 0; i < found_count; i++)
        add_all_children(found[i].pid);
}

/* Signals one that was found. The descriptor comes before the check of the parent, so the number
 * cannot have changed hands. False: it had ended already. */
static bool signal_found(const struct found *one, int signum)
{
    CLEANUP_FD int pidfd = open_process(one->pid);
    if (pidfd < 0 || has_ended(pidfd, 0))
        return false;
    struct keep_stat stat;
    if (read_stat(one->pid, &stat) && stat.parent == one->parent)
        signal_process(pidfd, signum);
    return true;
}

int keep_signal_below(pid_t root, int signum)
{
    int alive = 0;
    find_call(root, 0);
    for (size_t i = 0; i < found_count; i++)
        alive += signal_found(&found[i], signum);
    /* One that is stopped hears nothing else. */
    for (size_t i = 0; signum && i < found_count; i++)
        (void)signal_found(&found[i], SIGCONT);
    return alive;
}

/* A fork that is under way when the signal comes still happens, so the stop is waited for. */
static void stop_shell(pid_t shell)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    signal_process(KEEP_SHELL_FD, SIGSTOP);
    int64_t limit = now_ms() + STOP_MS;
    struct keep_stat stat;
    while (read_stat(shell, &stat) && stat.state != 'T' && stat.state != 'Z' &&
           now_ms() < limit)
        (void)nanosleep(&moment, NULL);
}

static void end_call(pid_t shell, uint64_t begin_ns)
{
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    /* A stopped shell runs nothing more of the line, and reaps nobody: its children's numbers stay. */
    stop_shell(shell);
    int alive = 1;
    for (int round = 0; alive && round < ROUNDS_MAX; round++) {
        alive = 0;
        find_call(shell, begin_ns / tick_ns);
        for (size_t i = 0; i < found_count; i++)
            alive |= signal_found(&found[i], SIGKILL);
    }
    signal_process(KEEP_SHELL_FD, SIGKILL);
}

/* Signals every process of the session that has not ended, and waits for each until the limit.
 * Returns how many were left. */
static int signal_session(pid_t session, int signum, int64_t limit)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return 0;
    int left = 0;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        CLEANUP_FD int pidfd = pid > 1 ? open_process(pid) : -1;
        if (pidfd < 0 || getsid(pid) != session || has_ended(pidfd, 0))
            continue;
        signal_process(pidfd, signum);
        signal_process(pidfd, SIGCONT);
        left += !has_ended(pidfd, limit - now_ms());
    }
    (void)closedir(proc);
    return left;
}

static void end_session(pid_t session)
{
    int64_t last = now_ms() + LAST_MS;
    (void)close(KEEP_MASTER_FD);
    /* All hear of it before anybody is waited for. */
    int left = signal_session(session, SIGHUP, 0);
    if (left > 0)
        left = signal_session(session, 0, now_ms() + GRACE_MS);
    while (left > 0 && now_ms() < last)
        left = signal_session(session, SIGKILL, last);
}

/* Nobody's terminal, and no signal that is meant for a group. */
static void stand_aside(void)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP};
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)sigaction(ignored[i], &action, NULL);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int keep_run(pid_t shell)
{
    uint64_t begin_ns = KEEP_NO_CALL, message;
    stand_aside();
    for (;;) {
        ssize_t len = read_full(STDIN_FILENO, &message, sizeof message);
        if (len != sizeof message)
            break;
        if (message == KEEP_DISMISS)
            return 0;
        begin_ns = message;
    }
    if (begin_ns != KEEP_NO_CALL && !has_ended(KEEP_SHELL_FD, 0))
        end_call(shell, begin_ns);
    end_session(shell);
    return 0;
}
