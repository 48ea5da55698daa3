/*
 * Units of host/pty: a real terminal with small programs. Covers start and failure to
 * start, what a child inherits, output and exit order, putting the terminal back,
 * signals, hang-up. Not covered: zsh (spec/shell).
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "err.h"
#include "pty.h"
#include "util.h"

struct session {
    uv_loop_t loop;
    uv_timer_t limit;
    struct pty *pty;
    char out[1 << 20];
    size_t len;
    const char *until; /* stop the loop when out holds this */
    int exited, exit_code, term_signal;
};

static void on_limit(uv_timer_t *timer)
{
    struct session *s = timer->data;
    fail_msg("no event in 10 s after: %s", s->out);
}

static void on_data(void *user, const char *bytes, size_t len_bytes)
{
    struct session *s = user;
    size_t room = sizeof(s->out) - 1 - s->len;
    size_t n = len_bytes < room ? len_bytes : room;
    memcpy(s->out + s->len, bytes, n);
    s->len += n;
    s->out[s->len] = '\0';
    if (s->until && strstr(s->out, s->until))
        uv_stop(&s->loop);
}

static void on_exit_(void *user, int exit_code, int term_signal)
{
    struct session *s = user;
    s->exited = 1;
    s->exit_code = exit_code;
    s->term_signal = term_signal;
    uv_stop(&s->loop);
}

static struct pty *open_in(struct session *s, const char *script, const char *cwd,
                           struct efr_err *err)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)(uintptr_t)script, NULL};
    char *envp[] = {(char *)"A=b", (char *)"PATH=/usr/bin:/bin", NULL};
    struct pty_spawn spawn = {.path = "/bin/sh",
                              .argv = argv,
                              .envp = envp,
                              .cwd = cwd,
                              .cols = 91,
                              .rows = 17};
    struct pty_events events = {.data = on_data, .exit = on_exit_, .user = s};
    return pty_create(&s->loop, &spawn, &events, err);
}

static void start(struct session *s, const char *script)
{
    struct efr_err err;
    s->pty = open_in(s, script, "/", &err);
    if (!s->pty)
        fail_msg("%s", err.text);
}

static void run_until(struct session *s, const char *text)
{
    s->until = text;
    if (!text || !strstr(s->out, text))
        (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    s->until = NULL;
}

static int setup(void **state)
{
    struct session *s = xcalloc(1, sizeof(*s));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    uv_timer_init(&s->loop, &s->limit);
    s->limit.data = s;
    uv_timer_start(&s->limit, on_limit, 10000, 0);
    *state = s;
    return 0;
}

static int count_fds(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int teardown(void **state)
{
    struct session *s = *state;
    pty_destroy(s->pty);
    s->pty = NULL;
    uv_close((uv_handle_t *)&s->limit, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT); /* ends when the child is reaped too */
    assert_int_equal(uv_loop_close(&s->loop), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    free(s);
    return 0;
}

static void test_output_and_exit(void **state)
{
    struct session *s = *state;
    start(s, "printf one; exit 3");
    run_until(s, NULL);
    assert_true(s->exited);
    assert_string_equal(s->out, "one");
    assert_int_equal(s->exit_code, 3);
    assert_int_equal(s->term_signal, 0);
}

static void test_inherits_nothing(void **state)
{
    struct session *s = *state;
    int leak = dup(0);
    (void)signal(SIGUSR1, SIG_IGN);
    start(
        s,
        "ls /proc/self/fd | wc -l; env; umask; grep SigIgn /proc/self/status; stty size; "
        "ps -o pid=,sid=,tpgid= -p $$ 2>/dev/null; echo end");
    run_until(s, "end");
    (void)signal(SIGUSR1, SIG_DFL);
    close(leak);
    assert_non_null(strstr(s->out, "4\r\n")); /* 0 1 2 and the directory that ls reads */
    assert_non_null(strstr(s->out, "A=b\r\n"));
    assert_null(strstr(s->out, "HOME="));
    assert_non_null(strstr(s->out, "0022\r\n"));
    assert_non_null(strstr(s->out, "SigIgn:\t0000000000000000"));
    assert_non_null(strstr(s->out, "17 91\r\n"));
}

static void test_start_fails(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    int before = count_fds();
    assert_null(open_in(s, "true", "/no/such/dir", &err));
    assert_string_equal(err.code, "ENOENT");
    assert_non_null(strstr(err.text, "/no/such/dir"));
    assert_int_equal(count_fds(), before);
}

static void test_restore(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    start(
        s,
        "printf ready; read x; printf 'got[%s]' \"$x\"; read y; printf 'end[%s]' \"$y\"");
    run_until(s, "ready");
    struct pty_modes modes;
    assert_int_equal(pty_get_modes(s->pty, &modes, &err), 0);
    assert_true(modes.echo && modes.canonical);
    assert_int_equal(pty_write(s->pty, "stale", 5, &err), 0);
    run_until(s, "stale"); /* its echo: the kernel delivers input a moment later */
    assert_int_equal(pty_restore(s->pty, &err), 0);
    assert_int_equal(pty_write(s->pty, "fresh\n", 6, &err), 0);
    run_until(s, "got[fresh]");
    assert_int_equal(pty_write(s->pty, "x\n", 2, &err), 0);
    run_until(s, NULL);
    assert_non_null(strstr(s->out, "end[x]"));
}

static void test_restore_modes(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    struct pty_modes modes;
    start(
        s,
        "stty raw -echo cols 5; printf ready; head -c 1 >/dev/null; stty size; exec cat");
    run_until(s, "ready");
    assert_int_equal(pty_get_modes(s->pty, &modes, &err), 0);
    assert_false(modes.echo || modes.canonical);
    assert_int_equal(pty_restore(s->pty, &err), 0);
    assert_int_equal(pty_get_modes(s->pty, &modes, &err), 0);
    assert_true(modes.echo && modes.canonical);
    assert_int_equal(pty_write(s->pty, "z\n", 2, &err), 0);
    run_until(s, "17 91");
}

static void resume_again(uv_timer_t *timer)
{
    struct session *s = timer->data;
    struct efr_err err;
    assert_int_equal(pty_resume_output(s->pty, &err), 0);
}

static void test_flow(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    start(s, "printf ready; read x; echo after");
    run_until(s, "ready");
    assert_int_equal(pty_write(s->pty, "\023\n", 2, &err), 0); /* Ctrl+S */
    /* The kernel delivers input a moment later, and only then output stops. */
    uv_timer_t again;
    uv_timer_init(&s->loop, &again);
    again.data = s;
    uv_timer_start(&again, resume_again, 20, 20);
    run_until(s, "after");
    uv_close((uv_handle_t *)&again, NULL);
    (void)uv_run(&s->loop, UV_RUN_NOWAIT);
}

static void test_interrupt(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    start(s, "printf ready; exec sleep 1000");
    run_until(s, "ready");
    assert_int_equal(pty_foreground(s->pty, &err), pty_pid(s->pty));
    assert_int_equal(pty_interrupt(s->pty, &err), 0);
    run_until(s, NULL);
    assert_int_equal(s->term_signal, SIGINT);
    assert_int_equal(pty_kill(s->pty, SIGTERM, &err), -1);
    assert_string_equal(err.code, "ESRCH");
}

static void test_kill_session(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    start(s, "trap '' HUP; sleep 1000 & sleep 1001 & printf ready; wait; echo survived");
    run_until(s, "ready");
    assert_int_equal(pty_kill_session(s->pty, 0, 0, &err), 2);
    assert_int_equal(pty_kill_session(s->pty, SIGKILL, 0, &err), 2);
    run_until(s, "survived");
}

static void test_hangup(void **state)
{
    struct session *s = *state;
    start(s, "printf ready; exec sleep 1000");
    run_until(s, "ready");
    pid_t pid = pty_pid(s->pty);
    pty_destroy(s->pty);
    s->pty = NULL;
    uv_close((uv_handle_t *)&s->limit, NULL);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(kill(pid, 0), -1);
    uv_timer_init(&s->loop, &s->limit);
    s->limit.data = s;
}

static void destroy_in_data(void *user, const char *bytes, size_t len_bytes)
{
    struct session *s = user;
    (void)bytes;
    (void)len_bytes;
    pty_destroy(s->pty);
    s->pty = NULL;
    uv_stop(&s->loop);
}

static void test_destroy_in_callback(void **state)
{
    struct session *s = *state;
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"echo x; sleep 1000", NULL};
    char *envp[] = {NULL};
    struct pty_spawn spawn = {.path = "/bin/sh",
                              .argv = argv,
                              .envp = envp,
                              .cwd = "/",
                              .cols = 80,
                              .rows = 24};
    struct pty_events events = {.data = destroy_in_data, .exit = on_exit_, .user = s};
    struct efr_err err;
    s->pty = pty_create(&s->loop, &spawn, &events, &err);
    assert_non_null(s->pty);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_null(s->pty);
}

static void test_queue_is_bounded(void **state)
{
    struct session *s = *state;
    struct efr_err err;
    start(s, "stty raw -echo; printf ready; sleep 1000");
    run_until(s, "ready");
    static char block[1 << 19];
    memset(block, 'x', sizeof(block));
    int rc = 0;
    for (int i = 0; i < 8 && rc == 0; i++)
        rc = pty_write(s->pty, block, sizeof(block), &err);
    assert_int_equal(rc, -1);
    assert_string_equal(err.code, "EFR_FULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_output_and_exit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_inherits_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start_fails, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restore, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restore_modes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flow, setup, teardown),
        cmocka_unit_test_setup_teardown(test_interrupt, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kill_session, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hangup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_destroy_in_callback, setup, teardown),
        cmocka_unit_test_setup_teardown(test_queue_is_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
