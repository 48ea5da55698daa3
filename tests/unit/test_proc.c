/*
 * Unit tests of host/spawn and host/proc: real children, no descriptor of ours in them, the
 * end seen on the loop. Not covered here: the Lua binding (spec/host/proc_spec.lua).
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <uv.h>

#include "err.h"
#include "proc.h"
#include "spawn.h"
#include "util.h"

static char *no_env[] = {NULL};

/* Runs a shell text with its output in a pipe and gives what it wrote. */
static const char *shell(const char *text, void (*set)(struct efr_spawn *what))
{
    static char output[4096];
    int ends[2];
    struct efr_err err = {0};
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, xstrdup(text), NULL};
    struct efr_spawn what = {
        .path = "/bin/sh", .argv = argv, .env = no_env, .umask_bits = -1};
    what.fds[0] = (struct efr_spawn_fd){.target = 1, .source = ends[1]};
    what.fd_count = 1;
    if (set)
        set(&what);
    pid_t pid = efr_spawn(&what, &err);
    assert_string_equal(err.text, "");
    assert_true(pid > 0);
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], output + used, sizeof(output) - used - 1)) > 0)
        used += (size_t)n;
    output[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    free(argv[2]);
    return output;
}

static void test_only_named_fds(void **state)
{
    (void)state;
    int stray = dup(0); /* not close-on-exec */
    int low[4];
    for (int i = 0; i < 4; i++)
        low[i] = dup(0);
    assert_string_equal(shell("cd /proc/self/fd; for f in 0 1 2 3 4 5 6 7 8 9; do "
                              "[ -e $f ] && printf %s $f; done",
                              NULL),
                        "012");
    close(stray);
    for (int i = 0; i < 4; i++)
        close(low[i]);
}

static int swap_a;
static int swap_b;

/* Targets that are sources of each other, and a source that is its own target. */
static void set_swapped(struct efr_spawn *what)
{
    what->fds[1] = (struct efr_spawn_fd){.target = swap_a, .source = swap_b};
    what->fds[2] = (struct efr_spawn_fd){.target = swap_b, .source = swap_a};
    what->fd_count = 3;
}

static void test_swapped_fds(void **state)
{
    (void)state;
    swap_a = open("/dev/null", O_RDONLY | O_CLOEXEC);
    swap_b = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    char text[200];
    (void)snprintf(text, sizeof(text), "readlink /proc/$$/fd/%d /proc/$$/fd/%d", swap_a,
                   swap_b);
    assert_string_equal(shell(text, set_swapped), "/dev/zero\n/dev/null\n");
    close(swap_a);
    close(swap_b);
}

static void set_session(struct efr_spawn *what)
{
    what->setsid = true;
    what->umask_bits = 027;
    what->cwd = "/proc";
}

static void test_session_and_signals(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    sigset_t block;
    sigset_t before;
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    const char *text =
        shell("umask; pwd; read -r a b c d e f rest < /proc/$$/stat; "
              "[ $a = $f ] && echo leader; "
              "while read -r k v; do case $k in SigIgn:|SigBlk:) echo $v;; "
              "esac; done < /proc/$$/status",
              set_session);
    assert_string_equal(text,
                        "0027\n/proc\nleader\n0000000000000000\n0000000000000000\n");
    sigprocmask(SIG_SETMASK, &before, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
}

static const char *failure(const char *path, const char *cwd, bool daemon)
{
    static struct efr_err err;
    char *argv[] = {(char[]){"x"}, NULL};
    struct efr_spawn what = {.path = path, .argv = argv, .env = no_env, .cwd = cwd};
    assert_int_equal(daemon ? efr_spawn_daemon(&what, &err) : efr_spawn(&what, &err), -1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(errno, ECHILD);
    return err.text;
}

static void test_failures(void **state)
{
    (void)state;
    assert_string_equal(failure("/none", NULL, false),
                        "execute /none: No such file or directory");
    assert_string_equal(failure("/none", NULL, true),
                        "execute /none: No such file or directory");
    assert_string_equal(failure("/bin/sh", "/none", false),
                        "directory of /bin/sh: No such file or directory");
    assert_string_equal(failure("/etc/passwd", NULL, true),
                        "execute /etc/passwd: Permission denied");
}

struct ended {
    int calls;
    int code;
    int signal;
};

static void on_exit_count(void *arg, int code, int sig)
{
    struct ended *ended = arg;
    ended->calls++;
    ended->code = code;
    ended->signal = sig;
}

static struct efr_proc *start(uv_loop_t *loop, const char *text, struct ended *ended)
{
    struct efr_err err = {0};
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, xstrdup(text), NULL};
    struct efr_spawn what = {
        .path = "/bin/sh", .argv = argv, .env = no_env, .umask_bits = -1};
    struct efr_proc *proc = efr_proc_create(loop, &what, on_exit_count, ended, &err);
    assert_non_null(proc);
    free(argv[2]);
    return proc;
}

static void test_loop(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct efr_err err;
    struct ended exited = {0};
    struct ended killed = {0};
    struct ended dropped = {0};
    assert_int_equal(uv_loop_init(&loop), 0);
    struct efr_proc *a = start(&loop, "exit 7", &exited);
    struct efr_proc *b = start(&loop, "read x < /dev/zero", &killed);
    struct efr_proc *c = start(&loop, "exit 1", &dropped);
    efr_proc_destroy(c); /* is reaped all the same */
    assert_true(efr_proc_running(b));
    assert_int_equal(efr_proc_kill(b, SIGKILL, &err), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(exited.calls, 1);
    assert_int_equal(exited.code, 7);
    assert_int_equal(exited.signal, 0);
    assert_int_equal(killed.calls, 1);
    assert_int_equal(killed.signal, SIGKILL);
    assert_int_equal(dropped.calls, 0);
    assert_false(efr_proc_running(b));
    assert_int_equal(efr_proc_kill(b, SIGKILL, &err), -1);
    assert_string_equal(err.code, "ESRCH");
    efr_proc_destroy(a);
    efr_proc_destroy(b);
    efr_proc_finish_all();
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    while (waitpid(-1, NULL, 0) > 0) /* the dropped one, if the loop ended before it */
        continue;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_named_fds),
        cmocka_unit_test(test_swapped_fds),
        cmocka_unit_test(test_session_and_signals),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
