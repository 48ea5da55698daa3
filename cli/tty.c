/* See tty.h. The saved state lies in static memory because signal handlers need it. */
#include "tty.h"

#include "err.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

struct farewell {
    int fd;
    size_t len_bytes;
    char text[TTY_FAREWELL_MAX];
};

static struct {
    int fd;
    struct termios termios;
    int discipline;
    int exclusive;
} saved = {.fd = -1};

static volatile sig_atomic_t is_saved;

/* Two texts: the handler reads the current one while the other is filled. */
static struct farewell farewells[2] = {{.fd = -1}, {.fd = -1}};
static volatile sig_atomic_t farewell_current;

static const int deadly[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM, SIGILL,
                             SIGABRT, SIGBUS, SIGFPE,  SIGSEGV};

/* The terminal is ours to put back when our group is in the foreground, or a group that has ended:
 * a command can leave that behind. Else the shell has it, and it stays as it is. */
static int is_ours(int fd)
{
    pid_t group = tcgetpgrp(fd);

    return group < 0 || group == getpgrp() || (kill(-group, 0) != 0 && errno == ESRCH);
}

/* Only async-signal-safe calls. */
static int put_back(int flush)
{
    sigset_t ttou;
    sigset_t before;
    int rc = 0;

    if (!is_ours(saved.fd))
        return 0;
    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    sigprocmask(SIG_BLOCK, &ttou, &before);
    (void)tcsetpgrp(saved.fd, getpgrp());
    (void)ioctl(saved.fd, TIOCSETD, &saved.discipline);
    (void)ioctl(saved.fd, saved.exclusive ? TIOCEXCL : TIOCNXCL);
    (void)tcflow(saved.fd, TCOON);
    if (tcsetattr(saved.fd, TCSANOW, &saved.termios) != 0)
        rc = -1;
    if (flush)
        (void)tcflush(saved.fd, TCIFLUSH);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void last_words(void)
{
    const struct farewell *bye = &farewells[farewell_current];

    if (bye->fd >= 0 && bye->len_bytes > 0 && is_ours(bye->fd))
        (void)!write(bye->fd, bye->text, bye->len_bytes);
    if (is_saved)
        (void)put_back(0);
}

static void on_deadly(int sig)
{
    last_words();
    /* SA_RESETHAND made the default action current; it runs when this handler returns. */
    (void)raise(sig);
}

static void on_exit_process(void)
{
    if (is_saved)
        (void)put_back(0);
}

/* A signal that the parent chose to ignore (nohup) stays ignored. */
static void watch_deadly(void)
{
    static int done;
    struct sigaction act = {.sa_handler = on_deadly, .sa_flags = (int)SA_RESETHAND};
    struct sigaction old;

    if (done)
        return;
    done = 1;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(deadly[i], &act, NULL);
    }
    (void)atexit(on_exit_process);
}

int tty_size(int fd, int *cols, int *lines, struct efr_err *err)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) != 0)
        return efr_err_errno(err, errno, "size of the terminal");
    *cols = size.ws_col > 0 ? size.ws_col : 80;
    *lines = size.ws_row > 0 ? size.ws_row : 24;
    return 0;
}

int tty_save(int fd, struct efr_err *err)
{
    if (is_saved)
        return 0;
    if (tcgetattr(fd, &saved.termios) != 0)
        return efr_err_errno(err, errno, "modes of the terminal");
    if (ioctl(fd, TIOCGETD, &saved.discipline) != 0)
        return efr_err_errno(err, errno, "line discipline of the terminal");
    if (ioctl(fd, TIOCGEXCL, &saved.exclusive) != 0)
        saved.exclusive = 0;
    saved.fd = fd;
    is_saved = 1;
    watch_deadly();
    return 0;
}

int tty_set_mode(enum tty_mode mode, struct efr_err *err)
{
    struct termios next = saved.termios;

    if (!is_saved)
        return efr_err_errno(err, EINVAL, "mode of the terminal (nothing was saved)");
    next.c_lflag &= (tcflag_t) ~(ECHO | ECHOE | ECHOK | ECHONL);
    if (mode == TTY_MODE_KEYS) {
        next.c_lflag &= (tcflag_t)~ICANON;
        next.c_cc[VMIN] = 0;
        next.c_cc[VTIME] = 0;
    }
    if (mode == TTY_MODE_RAW) {
        cfmakeraw(&next);
        next.c_oflag = saved.termios.c_oflag;
        next.c_cc[VMIN] = 0;
        next.c_cc[VTIME] = 0;
    }
    if (tcsetattr(saved.fd, TCSANOW, &next) != 0)
        return efr_err_errno(err, errno, "mode of the terminal");
    return 0;
}

int tty_restore(int flush, struct efr_err *err)
{
    if (!is_saved)
        return 0;
    is_saved = 0;
    if (put_back(flush) != 0)
        return efr_err_errno(err, errno, "putting the terminal back");
    return 0;
}

int tty_flush_input(int fd, struct efr_err *err)
{
    if (tcflush(fd, TCIFLUSH) != 0)
        return efr_err_errno(err, errno, "unread input of the terminal");
    return 0;
}

int tty_foreground(int fd)
{
    return tcgetpgrp(fd) == getpgrp();
}

int tty_farewell(int fd, const char *text, size_t len_bytes, struct efr_err *err)
{
    struct farewell *next = &farewells[!farewell_current];

    if (len_bytes > sizeof(next->text))
        return efr_err_errno(err, EMSGSIZE, "farewell");
    next->fd = fd;
    next->len_bytes = len_bytes;
    memcpy(next->text, text, len_bytes);
    farewell_current = !farewell_current;
    watch_deadly();
    return 0;
}

ssize_t tty_read(int fd, char *buf, size_t len_bytes, struct efr_err *err)
{
    ssize_t count;

    do {
        count = read(fd, buf, len_bytes);
    } while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return 0;
    if (count < 0)
        return efr_err_errno(err, errno, "read of the input");
    return count;
}

int tty_write(int fd, const char *text, size_t len_bytes, struct efr_err *err)
{
    while (len_bytes > 0) {
        ssize_t count = write(fd, text, len_bytes);
        if (count < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
        } else if (count < 0 && errno != EINTR) {
            return efr_err_errno(err, errno, "write");
        } else if (count > 0) {
            text += count;
            len_bytes -= (size_t)count;
        }
    }
    return 0;
}
