/*
 * Unit tests of host/buf: growth, consuming, the wiping of secret bytes.
 */
#include "unit.h"

#include "buf.h"

static void test_append(void **state)
{
    (void)state;
    struct efr_buf buf;
    efr_buf_init(&buf, false);
    assert_null(buf.data);
    for (int i = 0; i < 1000; i++) {
        efr_buf_puts(&buf, "ab");
        efr_buf_putc(&buf, 'c');
    }
    efr_buf_append(&buf, NULL, 0);
    assert_int_equal(buf.len, 3000);
    assert_memory_equal(buf.data + 2997, "abc", 3);
    memcpy(efr_buf_reserve(&buf, 5), "12345", 5);
    buf.len += 5;
    assert_memory_equal(buf.data + 3000, "12345", 5);
    efr_buf_finish(&buf);
    efr_buf_finish(&buf);
    assert_null(buf.data);
}

static void test_reserve_of_an_empty_one(void **state)
{
    (void)state;
    struct efr_buf buf;
    efr_buf_init(&buf, false);
    assert_non_null(efr_buf_reserve(&buf, 0));
    efr_buf_finish(&buf);
}

static void test_consume(void **state)
{
    (void)state;
    struct efr_buf buf;
    efr_buf_init(&buf, true);
    efr_buf_puts(&buf, "secret-rest");
    efr_buf_consume(&buf, 7);
    assert_int_equal(buf.len, 4);
    assert_memory_equal(buf.data, "rest\0\0\0\0\0\0\0",
                        11); /* what moved away is wiped */
    efr_buf_consume(&buf, 100);
    assert_int_equal(buf.len, 0);
    assert_memory_equal(buf.data, "\0\0\0\0", 4);
    efr_buf_finish(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_reserve_of_an_empty_one),
        cmocka_unit_test(test_consume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
