/*
 * Unit tests of host/sys: locks between open files, the notify socket, passed descriptors.
 */
#include "unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "err.h"
#include "sys.h"
#include "util.h"

static void test_lock(void **state)
{
    (void)state;
    struct efr_err err;
    int fd = efr_lock_file("lock", 0, &err);
    assert_true(fd >= 0);
    assert_int_equal(efr_lock_file("lock", 0, &err), -1);
    assert_string_equal(err.code, "EWOULDBLOCK");
    int64_t start_us = efr_mono_us();
    assert_int_equal(efr_lock_file("lock", 20, &err), -1);
    assert_true(efr_mono_us() - start_us >= 20000);
    /* a lock whose file was removed protects nothing: the next one is another file */
    assert_int_equal(unlink("lock"), 0);
    int other = efr_lock_file("lock", 0, &err);
    assert_true(other >= 0);
    efr_close(&fd);
    efr_close(&other);
    fd = efr_lock_file("lock", 0, &err);
    assert_true(fd >= 0);
    efr_close(&fd);
    assert_int_equal(symlink("lock", "link"), 0);
    assert_int_equal(efr_lock_file("link", 0, &err), -1);
    assert_string_equal(err.code, "ELOOP");
    assert_int_equal(efr_lock_file("none/lock", 0, &err), -1);
    assert_string_equal(err.code, "ENOENT");
}

static void test_notify(void **state)
{
    struct efr_err err;
    char buf[32] = "";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/n", (const char *)*state);
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(efr_notify("READY=1", 7, &err), 0);
    setenv("NOTIFY_SOCKET", addr.sun_path, 1);
    assert_int_equal(efr_notify("READY=1", 7, &err), -1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(efr_notify("READY=1", 7, &err), 0);
    assert_int_equal(recv(fd, buf, sizeof(buf), 0), 7);
    assert_string_equal(buf, "READY=1");
    efr_close(&fd);
    unsetenv("NOTIFY_SOCKET");
}

static void test_listen_fds(void **state)
{
    (void)state;
    char pid[16];
    assert_int_equal(efr_listen_fds(), 0);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", "1", 1); /* meant for another process */
    assert_int_equal(efr_listen_fds(), 0);
    assert_null(getenv("LISTEN_FDS"));
    int fd = dup2(0, 3);
    assert_int_equal(fd, 3);
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", pid, 1);
    assert_int_equal(efr_listen_fds(), 1);
    assert_int_equal(fcntl(3, F_GETFD), FD_CLOEXEC);
    assert_null(getenv("LISTEN_PID"));
    setenv("LISTEN_FDS", "1x", 1);
    setenv("LISTEN_PID", pid, 1);
    assert_int_equal(efr_listen_fds(), 0);
    close(3);
}

#define WITH_DIR(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, unit_dir_setup, unit_dir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_lock),
        WITH_DIR(test_notify),
        WITH_DIR(test_listen_fds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
