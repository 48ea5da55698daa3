/*
 * Unit tests of host/log: levels, prefixes, one line per line, control characters.
 */
#include "unit.h"

#include <fcntl.h>

#include "log.h"

static char output[16384];

/* What fn writes to the log. */
static const char *logged(void (*fn)(void), int journal)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    efr_log_setup("efr-test", ends[1], EFR_LOG_INFO, journal);
    fn();
    close(ends[1]);
    size_t used = 0;
    ssize_t n;
    while ((n = read(ends[0], output + used, sizeof(output) - used - 1)) > 0)
        used += (size_t)n;
    output[used] = '\0';
    close(ends[0]);
    return output;
}

static void three_levels(void)
{
    efr_logf(EFR_LOG_ERROR, "bad %d", 1);
    efr_logf(EFR_LOG_INFO, "told");
    efr_logf(EFR_LOG_DEBUG, "hidden");
}

static void test_levels(void **state)
{
    (void)state;
    assert_string_equal(logged(three_levels, 1), "<3>bad 1\n<6>told\n");
    assert_int_equal(efr_log_level_of("warn"), EFR_LOG_WARN);
    assert_int_equal(efr_log_level_of("trace"), EFR_LOG_TRACE);
    assert_int_equal(efr_log_level_of("loud"), -1);
}

static void test_time(void **state)
{
    (void)state;
    const char *text = logged(three_levels, 0);
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[23], 'Z');
    assert_non_null(strstr(text, "Z efr-test error: bad 1\n"));
}

static void raised_limit(void)
{
    efr_log_limit(EFR_LOG_TRACE);
    efr_logf(EFR_LOG_TRACE, "now");
}

static void test_limit(void **state)
{
    (void)state;
    assert_string_equal(logged(raised_limit, 1), "<7>now\n");
}

static void odd_text(void)
{
    static const char text[] = "one\n\ntwo\x1b[31m\t\x00!\n";
    efr_log_text(EFR_LOG_WARN, text, sizeof(text) - 1);
    efr_log_text(EFR_LOG_WARN, "", 0);
}

static void test_lines(void **state)
{
    (void)state;
    assert_string_equal(logged(odd_text, 1), "<4>one\n<4>two\\x1b[31m\t\\x00!\n");
}

static void long_line(void)
{
    char text[9000];
    memset(text, '\x01', sizeof(text));
    efr_log_text(EFR_LOG_WARN, text, sizeof(text));
}

static void test_long_line(void **state)
{
    (void)state;
    size_t len = strlen(logged(long_line, 1));
    assert_in_range(len, 4000, 4096);
    assert_int_equal(output[len - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),    cmocka_unit_test(test_time),
        cmocka_unit_test(test_limit),     cmocka_unit_test(test_lines),
        cmocka_unit_test(test_long_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
