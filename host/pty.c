/* See pty.h: what this file owns and must not know stands there. */
#include "pty.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "err.h"
#include "keeper.h"
#include "util.h"

enum {
    READ_SIZE = 65536,
    QUEUE_MAX_BYTES = 1 << 20,
    /* Output that is still read after the program's end: what the terminal can hold, not what a left-over process
     * goes on writing. */
    DRAIN_READS = 64,
};

/* The program's process. It outlives the pty until it is reaped. */
struct leader {
    uv_poll_t poll; /* on pidfd */
    int pidfd;
    pid_t pid;
    int orphan; /* the pty is gone: reap and free */
    struct pty *pty;
};

struct pty {
    uv_poll_t *poll; /* owned; freed by its close callback */
    struct leader *leader;
    struct keeper *keeper; /* owned; NULL: none was asked for */
    struct pty_events events;
    struct termios modes; /* as they were at the start */
    struct winsize size;
    int master;
    int slave;
    int exited;
    int busy;    /* inside a callback */
    int closing; /* pty_destroy was called inside a callback */
    int paused;
    char *queue; /* owned */
    size_t queue_len, queue_cap;
};

static int pidfd_open_(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static int pidfd_send_signal_(int pidfd, int signum)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signum, NULL, 0);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle->data);
}

/* Closes a poll handle whose memory is block. */
static void release_poll(uv_poll_t *poll, void *block)
{
    if (uv_is_closing((uv_handle_t *)poll)) {
        free(block);
        return;
    }
    poll->data = block;
    uv_close((uv_handle_t *)poll, free_handle);
}

static void default_modes(struct termios *modes)
{
    memset(modes, 0, sizeof(*modes));
    modes->c_iflag = ICRNL | IXON | IUTF8;
    modes->c_oflag = OPOST | ONLCR;
    modes->c_cflag = CREAD | CS8 | B38400;
    modes->c_lflag = ISIG | ICANON | IEXTEN | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE;
    modes->c_cc[VINTR] = 003;
    modes->c_cc[VQUIT] = 034;
    modes->c_cc[VERASE] = 0177;
    modes->c_cc[VKILL] = 025;
    modes->c_cc[VEOF] = 004;
    modes->c_cc[VSTART] = 021;
    modes->c_cc[VSTOP] = 023;
    modes->c_cc[VSUSP] = 032;
    modes->c_cc[VREPRINT] = 022;
    modes->c_cc[VDISCARD] = 017;
    modes->c_cc[VWERASE] = 027;
    modes->c_cc[VLNEXT] = 026;
    modes->c_cc[VMIN] = 1;
    cfsetispeed(modes, B38400);
    cfsetospeed(modes, B38400);
}

static void child_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < NSIG; sig++)
        (void)sigaction(sig, &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child between fork and exec: system calls only. Writes errno to report on failure. */
__attribute__((noreturn)) static void child_main(const struct pty_spawn *spawn, int slave,
                                                 int report)
{
    enum { REPORT = 3 };
    child_signals();
    (void)umask(022);
    if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
        goto fail;
    /* What a command leaves behind becomes a child of the shell, so it can be found. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        goto fail;
    /* Above 3 first: dup2 must not overwrite what is still needed. */
    slave = fcntl(slave, F_DUPFD_CLOEXEC, REPORT + 1);
    report = fcntl(report, F_DUPFD_CLOEXEC, REPORT + 1);
    if (slave < 0 || report < 0)
        goto fail;
    for (int fd = 0; fd <= 2; fd++) {
        if (dup2(slave, fd) < 0)
            goto fail;
    }
    if (dup3(report, REPORT, O_CLOEXEC) < 0)
        goto fail;
    report = REPORT;
    if (close_range(REPORT + 1, ~0U, 0) < 0 || chdir(spawn->cwd) < 0)
        goto fail;
    (void)execve(spawn->path, spawn->argv, spawn->envp);
fail:;
    int errnum = errno;
    ssize_t n = write(report, &errnum, sizeof(errnum));
    _exit(n > 0 ? 126 : 127);
}

/* Starts the child. Returns its pid, or -1 with *err set; the child is reaped then. */
static pid_t spawn_child(const struct pty_spawn *spawn, int slave, struct efr_err *err)
{
    CLEANUP_FD int reader = -1;
    CLEANUP_FD int writer = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return efr_err_errno(err, errno, "make a pipe");
    reader = ends[0];
    writer = ends[1];
    /* A handler of ours must not run in the child before its signals are reset. */
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        child_main(spawn, slave, writer);
    int errnum = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0)
        return efr_err_errno(err, errnum, "fork");
    efr_close(&writer);
    ssize_t n;
    do {
        n = read(reader, &errnum, sizeof(errnum));
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return pid;
    if (n != sizeof(errnum))
        errnum = EIO;
    (void)waitpid(pid, NULL, 0);
    return efr_err_errno(err, errnum, "start %s in %s", spawn->path, spawn->cwd);
}

/* Opens master and slave, with the modes and the size they start with. */
static int open_pair(struct pty *pty, struct efr_err *err)
{
    pty->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (pty->master < 0)
        return efr_err_errno(err, errno, "open a terminal");
    int unlock = 0;
    if (ioctl(pty->master, TIOCSPTLCK, &unlock) < 0)
        return efr_err_errno(err, errno, "unlock a terminal");
    /* By descriptor: no path of /dev/pts is resolved. */
    pty->slave = ioctl(pty->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pty->slave < 0)
        return efr_err_errno(err, errno, "open the terminal's other end");
    if (tcsetattr(pty->slave, TCSANOW, &pty->modes) < 0 ||
        ioctl(pty->slave, TIOCSWINSZ, &pty->size) < 0)
        return efr_err_errno(err, errno, "set up a terminal");
    return 0;
}

/* Brackets a callback: it may destroy the pty. Returns 1 when the pty is gone. */
static int leave_callback(struct pty *pty)
{
    pty->busy--;
    if (pty->closing && pty->busy == 0) {
        pty_destroy(pty);
        return 1;
    }
    return pty->closing;
}

static void update_poll(struct pty *pty);

/* Reads once. Returns bytes read, 0 when nothing is there, -1 when the pty is gone. */
static ssize_t read_some(struct pty *pty)
{
    static char bytes[READ_SIZE];
    ssize_t n;
    do {
        n = read(pty->master, bytes, sizeof(bytes));
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    pty->busy++;
    pty->events.data(pty->events.user, bytes, (size_t)n);
    return leave_callback(pty) ? -1 : n;
}

/* Keeps len_bytes of the queue. What leaves it may be a password, so it is overwritten. */
static void wipe_queue(struct pty *pty, size_t len_bytes)
{
    if (pty->queue_len > len_bytes)
        explicit_bzero(pty->queue + len_bytes, pty->queue_len - len_bytes);
    pty->queue_len = len_bytes;
}

static void flush_queue(struct pty *pty)
{
    while (pty->queue_len > 0) {
        ssize_t n = write(pty->master, pty->queue, pty->queue_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        size_t rest = pty->queue_len - (size_t)n;
        memmove(pty->queue, pty->queue + n, rest);
        wipe_queue(pty, rest);
    }
}

static void on_master(uv_poll_t *poll, int status, int events)
{
    struct pty *pty = poll->data;
    if (status < 0)
        return;
    if (events & UV_WRITABLE)
        flush_queue(pty);
    if ((events & UV_READABLE) && read_some(pty) < 0)
        return;
    update_poll(pty);
}

static void update_poll(struct pty *pty)
{
    int events = (pty->paused ? 0 : UV_READABLE) | (pty->queue_len > 0 ? UV_WRITABLE : 0);
    if (events)
        (void)uv_poll_start(pty->poll, events, on_master);
    else
        (void)uv_poll_stop(pty->poll);
}

void pty_pause(struct pty *pty, int paused)
{
    pty->paused = paused;
    if (!pty->closing)
        update_poll(pty);
}

/* Returns 1 when the process has ended. It stays a zombie, so that its pid, which is the session's id
 * too, keeps its meaning until release_leader. */
static int has_ended(struct leader *leader, int *exit_code, int *term_signal)
{
    siginfo_t info = {0};
    *exit_code = 0;
    *term_signal = 0;
    if (waitid(P_PID, (id_t)leader->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return errno == ECHILD;
    if (info.si_pid == 0)
        return 0;
    *(info.si_code == CLD_EXITED ? exit_code : term_signal) = info.si_status;
    return 1;
}

static void release_leader(struct leader *leader)
{
    (void)waitpid(leader->pid, NULL, WNOHANG);
    efr_close(&leader->pidfd);
    release_poll(&leader->poll, leader);
}

static void on_leader(uv_poll_t *poll, int status, int events)
{
    struct leader *leader = poll->data;
    struct pty *pty = leader->pty;
    int exit_code, term_signal;
    (void)status;
    (void)events;
    if (!has_ended(leader, &exit_code, &term_signal))
        return;
    (void)uv_poll_stop(poll);
    if (leader->orphan) {
        release_leader(leader);
        return;
    }
    pty->exited = 1;
    for (int i = 0; i < DRAIN_READS; i++) {
        ssize_t n = read_some(pty);
        if (n < 0)
            return;
        if (n == 0)
            break;
    }
    pty->busy++;
    pty->events.exit(pty->events.user, exit_code, term_signal);
    (void)leave_callback(pty);
}

/* Puts both descriptors on the loop. */
static int watch(struct pty *pty, uv_loop_t *loop, pid_t pid, struct efr_err *err)
{
    struct leader *leader = xcalloc(1, sizeof(*leader));
    leader->pid = pid;
    leader->pty = pty;
    leader->pidfd = pidfd_open_(pid);
    if (leader->pidfd < 0) {
        efr_err_errno(err, errno, "watch process %d", (int)pid);
        free(leader);
        return -1;
    }
    pty->poll = xcalloc(1, sizeof(*pty->poll));
    (void)uv_poll_init(loop, pty->poll, pty->master);
    (void)uv_poll_init(loop, &leader->poll, leader->pidfd);
    pty->poll->data = pty;
    leader->poll.data = leader;
    pty->leader = leader;
    update_poll(pty);
    (void)uv_poll_start(&leader->poll, UV_READABLE, on_leader);
    return 0;
}

static int add_keeper(struct pty *pty, uv_loop_t *loop, const char *program,
                      struct efr_err *err)
{
    if (!program)
        return 0;
    const struct keeper_shell shell = {
        .program = program,
        .master = pty->master,
        .pidfd = pty->leader->pidfd,
        .pid = pty->leader->pid,
    };
    pty->keeper = keeper_create(loop, &shell, err);
    return pty->keeper ? 0 : -1;
}

struct pty *pty_create(uv_loop_t *loop, const struct pty_spawn *spawn,
                       const struct pty_events *events, struct efr_err *err)
{
    struct pty *pty = xcalloc(1, sizeof(*pty));
    pty->master = -1;
    pty->slave = -1;
    pty->events = *events;
    pty->size.ws_col = spawn->cols;
    pty->size.ws_row = spawn->rows;
    default_modes(&pty->modes);
    pid_t pid = open_pair(pty, err) == 0 ? spawn_child(spawn, pty->slave, err) : -1;
    if (pid > 0 && watch(pty, loop, pid, err) == 0) {
        if (add_keeper(pty, loop, spawn->keeper, err) == 0)
            return pty;
        (void)kill(pid, SIGKILL);
        pty_destroy(pty);
        return NULL;
    }
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    efr_close(&pty->master);
    efr_close(&pty->slave);
    free(pty);
    return NULL;
}

void pty_destroy(struct pty *pty)
{
    if (!pty)
        return;
    if (pty->busy > 0) {
        pty->closing = 1;
        return;
    }
    keeper_destroy(pty->keeper);
    struct leader *leader = pty->leader;
    leader->orphan = 1;
    leader->pty = NULL;
    if (pty->exited || uv_is_closing((uv_handle_t *)&leader->poll))
        release_leader(leader);
    if (!uv_is_closing((uv_handle_t *)pty->poll))
        (void)uv_poll_stop(pty->poll);
    release_poll(pty->poll, pty->poll);
    efr_close(&pty->slave);
    efr_close(&pty->master);
    wipe_queue(pty, 0);
    free(pty->queue);
    free(pty);
}

int pty_begin_call(struct pty *pty, struct efr_err *err)
{
    return pty->keeper ? keeper_begin(pty->keeper, err) : 0;
}

void pty_end_call(struct pty *pty)
{
    if (pty->keeper)
        keeper_end(pty->keeper);
}

int pty_leave_call(struct pty *pty, struct efr_err *err)
{
    return pty->keeper ? keeper_leave(pty->keeper, err)
                       : efr_err_set(err, "ESRCH", "the terminal has no keeper");
}

pid_t pty_pid(const struct pty *pty)
{
    return pty->leader->pid;
}

int pty_write(struct pty *pty, const char *bytes, size_t len_bytes, struct efr_err *err)
{
    if (len_bytes > QUEUE_MAX_BYTES - pty->queue_len)
        return efr_err_set(err, "EFR_FULL", "the terminal does not take its input");
    size_t need = pty->queue_len + len_bytes;
    if (need > pty->queue_cap) {
        pty->queue_cap = need + 4096;
        pty->queue = xrealloc(pty->queue, pty->queue_cap);
    }
    memcpy(pty->queue + pty->queue_len, bytes, len_bytes);
    pty->queue_len = need;
    flush_queue(pty);
    update_poll(pty);
    return 0;
}

ssize_t pty_write_keys(struct pty *pty, const char *bytes, size_t len_bytes,
                       struct efr_err *err)
{
    int unread = 0;
    if (ioctl(pty->slave, TIOCINQ, &unread) < 0)
        return efr_err_errno(err, errno, "count the terminal's unread input");
    if (pty->queue_len > 0 || unread >= PTY_KEYS_MAX)
        return 0;
    if (len_bytes > PTY_KEYS_MAX)
        len_bytes = PTY_KEYS_MAX;
    ssize_t n = write(pty->master, bytes, len_bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return efr_err_errno(err, errno, "write to the terminal");
    return n;
}

int pty_resume_output(struct pty *pty, struct efr_err *err)
{
    /* TCOON alone undoes only TCOOFF, not a stop by the stop character; off and on undoes both. */
    if (ioctl(pty->slave, TCXONC, TCOOFF) < 0 || ioctl(pty->slave, TCXONC, TCOON) < 0)
        return efr_err_errno(err, errno, "let the terminal's output flow");
    return 0;
}

int pty_restore(struct pty *pty, struct efr_err *err)
{
    /* Only when it differs: setting it makes a waiting read fail with EAGAIN. */
    const int n_tty = 0;
    int discipline = n_tty;
    if (ioctl(pty->slave, TIOCGETD, &discipline) == 0 && discipline != n_tty)
        (void)ioctl(pty->slave, TIOCSETD, &n_tty);
    (void)ioctl(pty->slave, TIOCNXCL);
    if (pty_resume_output(pty, err) < 0)
        return -1;
    if (tcsetattr(pty->slave, TCSANOW, &pty->modes) < 0)
        return efr_err_errno(err, errno, "put the terminal's modes back");
    if (ioctl(pty->slave, TIOCSWINSZ, &pty->size) < 0)
        return efr_err_errno(err, errno, "put the terminal's size back");
    wipe_queue(pty, 0);
    if (tcflush(pty->slave, TCIFLUSH) < 0)
        return efr_err_errno(err, errno, "throw unread input away");
    return 0;
}

pid_t pty_foreground(const struct pty *pty, struct efr_err *err)
{
    pid_t group = tcgetpgrp(pty->master);
    if (group < 0)
        return efr_err_errno(err, errno, "read the foreground group");
    return group;
}

int pty_get_modes(const struct pty *pty, struct pty_modes *modes, struct efr_err *err)
{
    struct termios now;
    if (tcgetattr(pty->slave, &now) < 0)
        return efr_err_errno(err, errno, "read the terminal's modes");
    modes->echo = (now.c_lflag & ECHO) != 0;
    modes->canonical = (now.c_lflag & ICANON) != 0;
    return 0;
}

int pty_resize(struct pty *pty, unsigned short cols, unsigned short rows,
               struct efr_err *err)
{
    pty->size.ws_col = cols;
    pty->size.ws_row = rows;
    if (ioctl(pty->master, TIOCSWINSZ, &pty->size) < 0)
        return efr_err_errno(err, errno, "set the terminal's size");
    return 0;
}

int pty_interrupt(struct pty *pty, struct efr_err *err)
{
    if (ioctl(pty->master, TIOCSIG, SIGINT) < 0)
        return efr_err_errno(err, errno, "interrupt the foreground group");
    return 0;
}

int pty_kill(struct pty *pty, int signum, struct efr_err *err)
{
    if (pty->exited)
        return efr_err_errno(err, ESRCH, "signal the shell");
    if (pidfd_send_signal_(pty->leader->pidfd, signum) < 0)
        return efr_err_errno(err, errno, "signal the shell");
    return 0;
}

/* Signals pid if it belongs to the session. The descriptor comes first, so the number cannot change hands between the
 * check and the signal. */
static int signal_member(pid_t pid, pid_t session, int signum)
{
    CLEANUP_FD int pidfd = pidfd_open_(pid);
    if (pidfd < 0 || getsid(pid) != session)
        return 0;
    return pidfd_send_signal_(pidfd, signum) == 0;
}

int pty_kill_session(struct pty *pty, int signum, int with_leader, struct efr_err *err)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return efr_err_errno(err, errno, "open /proc");
    int count = 0;
    pid_t session = pty->leader->pid;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end != '\0' || pid <= 1 || (pid == session && !with_leader))
            continue;
        count += signal_member((pid_t)pid, session, signum);
    }
    (void)closedir(proc);
    return count;
}
