/*
 * Unit tests of host/util: release at scope end, identifiers, clocks.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>

#include "util.h"

static void test_fd_release(void **state)
{
    (void)state;
    int seen;
    {
        CLEANUP_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        seen = fd;
    }
    assert_int_equal(fcntl(seen, F_GETFD), -1);
    int kept;
    {
        CLEANUP_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        kept = steal_fd(&fd);
        assert_int_equal(fd, -1);
    }
    assert_true(fcntl(kept, F_GETFD) >= 0);
    errno = EPIPE;
    efr_close(&kept);
    assert_int_equal(errno, EPIPE);
    assert_int_equal(kept, -1);
    efr_close(&kept);
}

static void test_memory_release(void **state)
{
    (void)state;
    char *kept;
    {
        CLEANUP_FREE char *text = xstrdup("kept"); /* the sanitizer sees a leak */
        CLEANUP_FREE char *gone = xmemdup("gone", 5);
        assert_string_equal(gone, "gone");
        kept = steal_ptr(&text);
        assert_null(text);
    }
    assert_string_equal(kept, "kept");
    free(kept);
    free(xmemdup(NULL, 0));
}

static void test_wipe(void **state)
{
    (void)state;
    char secret[8] = "secret";
    efr_wipe(secret, sizeof(secret));
    for (size_t i = 0; i < sizeof(secret); i++)
        assert_int_equal(secret[i], 0);
    efr_wipe(NULL, 0);
}

static void test_uuid(void **state)
{
    (void)state;
    char before[37];
    char after[37];
    efr_uuid7(before);
    assert_int_equal(strlen(before), 36);
    assert_int_equal(before[14], '7');
    assert_non_null(strchr("89ab", before[19]));
    for (int i = 0; i < 36; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23)
            assert_int_equal(before[i], '-');
        else
            assert_non_null(strchr("0123456789abcdef", before[i]));
    }
    int64_t start_us = efr_now_us();
    while (efr_now_us() - start_us < 2000)
        continue;
    efr_uuid7(after);
    assert_true(strncmp(before, after, 13) < 0); /* ordered by time */
}

static void test_clocks(void **state)
{
    (void)state;
    int64_t mono_us = efr_mono_us();
    assert_true(efr_mono_us() >= mono_us);
    assert_true(efr_now_us() > 1600000000000000);
}

static void test_random(void **state)
{
    (void)state;
    unsigned char a[600] = {0};
    unsigned char b[600] = {0};
    efr_random(a, sizeof(a));
    efr_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fd_release), cmocka_unit_test(test_memory_release),
        cmocka_unit_test(test_wipe),       cmocka_unit_test(test_uuid),
        cmocka_unit_test(test_clocks),     cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
