/* The file that a line outside is started by: what is whole is taken, anything else is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "outside.h"

#define NONCE "0123456789abcdef0123456789abcdef"

static const char GOOD[] = "efr-outside\0"
                           "1\0"
                           "nonce\0" NONCE "\0"
                           "shell\0"
                           "/bin/zsh\0"
                           "end";

static int parse(const char *bytes, size_t len)
{
    struct outside outside;
    char *copy = malloc(len ? len : 1); /* so that a read behind the end is seen */
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    int result = outside_parse(&outside, copy, len);
    free(copy);
    return result;
}

static void takes_what_is_whole(void **state)
{
    (void)state;
    struct outside outside;
    assert_int_equal(outside_parse(&outside, GOOD, sizeof GOOD), 0);
    assert_string_equal(outside.nonce, NONCE);
    assert_string_equal(outside.shell, "/bin/zsh");
}

static void takes_no_part(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof GOOD; len++)
        assert_int_equal(parse(GOOD, len), -1);
    char longer[sizeof GOOD + 1] = {0};
    memcpy(longer, GOOD, sizeof GOOD);
    assert_int_equal(parse(longer, sizeof longer), -1);
}

static void takes_no_other(void **state)
{
    (void)state;
    /* Each place of a wrong byte: a word, the nonce, the slash of the path. */
    static const size_t places[] = {0, 12, 14, 20, 53, 59, 68};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char other[sizeof GOOD];
        memcpy(other, GOOD, sizeof GOOD);
        other[places[i]] = 'X';
        assert_int_equal(parse(other, sizeof other), -1);
    }
    assert_int_equal(parse("efr-plan\0001\0end", 15), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_is_whole),
        cmocka_unit_test(takes_no_part),
        cmocka_unit_test(takes_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
