/* efr_confine: what is left to a process in the locked room. Each check runs in a child,
 * because confinement cannot be taken back. */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const int SYSCALLS[] = {
    SYS_read,   SYS_write,  SYS_exit_group, SYS_openat,    SYS_fcntl,     SYS_prctl,
    SYS_socket, SYS_capget, SYS_newfstatat, SYS_getrlimit, SYS_prlimit64,
};

/* Runs check in a confined child that keeps descriptor 9; returns the wait status. */
static int confined(int deny_errno, void (*check)(void))
{
    pid_t child = fork();
    if (child == 0) {
        int devnull = open("/dev/null", O_RDWR | O_CLOEXEC);
        static const int keep[] = {0, 1, 2, 9};
        char message[200] = "";
        if (dup2(devnull, 9) < 0)
            _exit(90);
        struct efr_confine c = {.syscalls = SYSCALLS,
                                .syscall_count = sizeof SYSCALLS / sizeof *SYSCALLS,
                                .keep_fds = keep,
                                .keep_fd_count = 4,
                                .deny_errno = deny_errno};
        if (efr_confine(&c, message, sizeof message) != 0)
            _exit(91);
        check();
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* exit_group by number: the sanitizers wrap _exit in calls that the room refuses. */
static void leave(int code)
{
    (void)syscall(SYS_exit_group, code);
}

static void fail_unless(int good, int code)
{
    if (!good)
        leave(code);
}

static void nothing_is_reachable(void)
{
    fail_unless(open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES, 1);
    fail_unless(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0 && errno == EACCES, 2);
    fail_unless(getenv("PATH") == NULL, 3);
    fail_unless(fcntl(9, F_GETFD) >= 0, 4);
    fail_unless(fcntl(3, F_GETFD) < 0 && errno == EBADF, 5);
    fail_unless(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0, 6);
    fail_unless(syscall(SYS_getpid) < 0 && errno == EPERM, 7);
    leave(0);
}

static void forbidden_call(void)
{
    (void)syscall(SYS_getppid);
}

static void denied_calls_answer(void **state)
{
    (void)state;
    int status = confined(EPERM, nothing_is_reachable);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void without_an_answer_the_process_ends(void **state)
{
    (void)state;
    int status = confined(0, forbidden_call);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    static const int twice[] = {2, 2};
    char message[100] = "";
    struct efr_confine c = {.keep_fds = twice, .keep_fd_count = 2};
    assert_int_equal(efr_confine(&c, message, sizeof message), -1);
    assert_string_equal(message,
                        "confine: descriptors are not ascending: Invalid argument");
    c = (struct efr_confine){.syscalls = SYSCALLS, .syscall_count = 100000};
    assert_int_equal(efr_confine(&c, message, sizeof message), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(denied_calls_answer),
        cmocka_unit_test(without_an_answer_the_process_ends),
        cmocka_unit_test(bad_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
