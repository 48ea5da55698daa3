/*
 * Unit tests of host/err: codes, texts, wrapping, truncation.
 */
#include "unit.h"

#include <errno.h>

#include "err.h"

static void test_set(void **state)
{
    (void)state;
    struct efr_err err;
    assert_int_equal(efr_err_set(&err, "EFR_X", "value %d", 7), -1);
    assert_string_equal(err.code, "EFR_X");
    assert_string_equal(err.text, "value 7");
    assert_int_equal(efr_err_set(NULL, "EFR_X", "nobody asks"), -1);
    efr_err_reset(&err);
    assert_string_equal(err.code, "");
    assert_string_equal(err.text, "");
}

static void test_errno(void **state)
{
    (void)state;
    struct efr_err err;
    assert_int_equal(efr_err_errno(&err, ENOENT, "open %s", "x"), -1);
    assert_string_equal(err.code, "ENOENT");
    assert_string_equal(err.text, "open x: No such file or directory");
    efr_err_errno(&err, 4095, "odd");
    assert_string_equal(err.code, "EFR_ERRNO");
}

static void test_wrap(void **state)
{
    (void)state;
    struct efr_err err;
    efr_err_errno(&err, EACCES, "open x");
    assert_int_equal(efr_err_wrap(&err, "read the %s", "rules"), -1);
    assert_string_equal(err.code, "EACCES");
    assert_string_equal(err.text, "read the rules: open x: Permission denied");
}

static void test_truncation(void **state)
{
    (void)state;
    struct efr_err err;
    char text[2000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    efr_err_errno(&err, EACCES, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    efr_err_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_truncation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
