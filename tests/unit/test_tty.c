/* tty: the terminal is as it was after every kind of exit. Each check runs in a child that leads a
 * session on a terminal of its own; the parent looks at what is left. */
#include "err.h"
#include "tty.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

struct terminal {
    int master;
    int slave;
    struct termios before;
};

static void open_terminal(struct terminal *t)
{
    char name[128];

    t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(t->master >= 0);
    assert_int_equal(grantpt(t->master), 0);
    assert_int_equal(unlockpt(t->master), 0);
    assert_int_equal(ptsname_r(t->master, name, sizeof(name)), 0);
    t->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(t->slave >= 0);
    assert_int_equal(tcgetattr(t->slave, &t->before), 0);
}

/* Runs act in a child on the terminal and gives its wait status. */
static int run(struct terminal *t, void (*act)(int fd))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        (void)setsid();
        if (ioctl(t->slave, TIOCSCTTY, 0) != 0)
            _exit(99);
        act(t->slave);
        _exit(98);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void assert_as_before(struct terminal *t)
{
    struct termios now;
    int exclusive = -1;

    assert_int_equal(tcgetattr(t->slave, &now), 0);
    assert_int_equal(now.c_lflag, t->before.c_lflag);
    assert_int_equal(now.c_iflag, t->before.c_iflag);
    assert_int_equal(now.c_oflag, t->before.c_oflag);
    assert_int_equal(now.c_cc[VMIN], t->before.c_cc[VMIN]);
    assert_int_equal(ioctl(t->slave, TIOCGEXCL, &exclusive), 0);
    assert_int_equal(exclusive, 0);
}

static void close_terminal(struct terminal *t)
{
    (void)close(t->master);
    (void)close(t->slave);
}

static void take_keys(int fd)
{
    struct termios now;

    if (tty_save(fd, NULL) != 0 || tty_set_mode(TTY_MODE_KEYS, NULL) != 0)
        _exit(97);
    if (tcgetattr(fd, &now) != 0 || (now.c_lflag & (ICANON | ECHO)) != 0)
        _exit(96);
    if (tty_farewell(fd, "BYE", 3, NULL) != 0)
        _exit(95);
}

static void die_of_term(int fd)
{
    take_keys(fd);
    (void)raise(SIGTERM);
}

/* Every key is bytes, output is as before. */
static void die_in_raw_mode(int fd)
{
    struct termios before;
    struct termios now;

    take_keys(fd);
    if (tcgetattr(fd, &before) != 0 || tty_set_mode(TTY_MODE_RAW, NULL) != 0 ||
        tcgetattr(fd, &now) != 0)
        _exit(94);
    if ((now.c_lflag & (ICANON | ECHO | ISIG | IEXTEN)) != 0 ||
        (now.c_iflag & (ICRNL | IXON)) != 0)
        _exit(93);
    if (now.c_oflag != before.c_oflag || now.c_cc[VMIN] != 0)
        _exit(92);
    (void)raise(SIGTERM);
}

static void die_of_abort(int fd)
{
    take_keys(fd);
    abort();
}

static void deadly_signals(void **state)
{
    (void)state;
    static const struct {
        void (*act)(int fd);
        int signal;
    } cases[] = {
        {die_of_term, SIGTERM}, {die_in_raw_mode, SIGTERM}, {die_of_abort, SIGABRT}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct terminal t;
        char said[8] = "";

        open_terminal(&t);
        int status = run(&t, cases[i].act);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), cases[i].signal);
        assert_as_before(&t);
        assert_int_equal(read(t.master, said, sizeof(said)), 3);
        assert_memory_equal(said, "BYE", 3);
        close_terminal(&t);
    }
}

static void leave(int fd)
{
    take_keys(fd);
    exit(0);
}

static void plain_exit(void **state)
{
    (void)state;
    struct terminal t;

    open_terminal(&t);
    assert_int_equal(run(&t, leave), 0);
    assert_as_before(&t);
    close_terminal(&t);
}

/* What a command of `efr run` can leave behind. */
static void spoil_and_restore(int fd)
{
    struct termios raw;

    if (tty_save(fd, NULL) != 0 || tcgetattr(fd, &raw) != 0)
        _exit(97);
    cfmakeraw(&raw);
    if (tcsetattr(fd, TCSANOW, &raw) != 0 || ioctl(fd, TIOCEXCL) != 0 ||
        tcflow(fd, TCOOFF) != 0)
        _exit(96);
    if (tty_restore(1, NULL) != 0)
        _exit(95);
    /* Output flows again: this would wait for ever otherwise. */
    if (tty_write(fd, "ok", 2, NULL) != 0)
        _exit(94);
    _exit(tty_restore(1, NULL) == 0 ? 0 : 93);
}

static void spoiled_terminal(void **state)
{
    (void)state;
    struct terminal t;

    open_terminal(&t);
    assert_int_equal(write(t.master, "unread\n", 7), 7);
    assert_int_equal(run(&t, spoil_and_restore), 0);
    assert_as_before(&t);
    int unread = -1;
    assert_int_equal(ioctl(t.slave, FIONREAD, &unread), 0);
    assert_int_equal(unread, 0);
    close_terminal(&t);
}

static void refusals(void **state)
{
    (void)state;
    struct efr_err err;
    static const char text[TTY_FAREWELL_MAX + 1];
    int cols;
    int lines;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    assert_int_equal(tty_farewell(1, text, sizeof(text), &err), -1);
    assert_string_equal(err.code, "EMSGSIZE");
    assert_int_equal(tty_save(null, &err), -1);
    assert_string_equal(err.code, "ENOTTY");
    assert_int_equal(tty_size(null, &cols, &lines, &err), -1);
    assert_int_equal(tty_set_mode(TTY_MODE_QUIET, &err), -1);
    assert_int_equal(tty_restore(0, &err), 0);
    assert_int_equal(tty_foreground(null), 0);
    (void)close(null);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadly_signals),
        cmocka_unit_test(plain_exit),
        cmocka_unit_test(spoiled_terminal),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
