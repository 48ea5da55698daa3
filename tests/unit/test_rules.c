/*
 * Unit tests of host/rules.c: what is left to the process of the user's Lua rules once it is
 * locked, should its code ever escape from Lua. Each check runs in a child, because the lock
 * cannot be taken back. What the Lua side can do: spec/rules.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rules.h"

/* exit_group by number: the sanitizers wrap _exit in calls that the room refuses. */
static void leave(int code)
{
    (void)syscall(SYS_exit_group, code);
}

static void must_fail(long result, int code)
{
    if (result >= 0)
        leave(code);
}

/* One number for each attempt: the test names the one that worked. */
static void attempts(pid_t parent)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/x"};
    char *none[] = {NULL};
    int pair[2];
    must_fail(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY), 1);
    must_fail(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY), 2);
    must_fail(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0), 3);
    must_fail(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0), 4);
    must_fail(syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, pair), 5);
    must_fail(syscall(SYS_connect, EFR_RULES_SOCKET_FD, &address, sizeof(address)), 6);
    must_fail(syscall(SYS_execve, "/bin/true", none, none), 7);
    must_fail(syscall(SYS_execveat, AT_FDCWD, "/bin/true", none, none, 0), 8);
    must_fail(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), 9);
    must_fail(syscall(SYS_kill, parent, 0), 10);
    must_fail(syscall(SYS_ptrace, PTRACE_ATTACH, parent, 0, 0), 11);
    must_fail(syscall(SYS_dup, EFR_RULES_SOCKET_FD), 12);
    must_fail(syscall(SYS_memfd_create, "x", 0), 13);
    must_fail(syscall(SYS_unlinkat, AT_FDCWD, "/tmp/x", 0), 14);
    must_fail(syscall(SYS_sendmsg, EFR_RULES_SOCKET_FD, NULL, 0), 15);
    must_fail(syscall(SYS_recvmsg, EFR_RULES_SOCKET_FD, NULL, 0), 16);
    must_fail(syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, NULL), 17);
    /* Descriptors that were open before are gone, also the page. */
    must_fail(syscall(SYS_read, STDIN_FILENO, pair, 0), 18);
    must_fail(syscall(SYS_write, STDERR_FILENO, "x", 1), 19);
    must_fail(syscall(SYS_read, EFR_RULES_PAGE_FD, pair, 0), 20);
    if (syscall(SYS_write, EFR_RULES_SOCKET_FD, "x", 1) != 1)
        leave(21);
    leave(0);
}

static void test_nothing_is_reachable(void **state)
{
    (void)state;
    int fds[2];
    pid_t parent = getpid();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pid_t child = fork();
    if (child == 0) {
        char message[256] = "";
        int page = memfd_create("page", MFD_CLOEXEC);
        /* High numbers first: 3 and 4 may be in use. */
        int high = fcntl(fds[0], F_DUPFD_CLOEXEC, 20);
        int high_page = fcntl(page, F_DUPFD_CLOEXEC, 20);
        if (dup2(high, EFR_RULES_SOCKET_FD) < 0 || dup2(high_page, EFR_RULES_PAGE_FD) < 0)
            _exit(90);
        if (efr_rules_lock(message, sizeof(message)) != 0)
            _exit(91);
        attempts(parent);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_reachable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
