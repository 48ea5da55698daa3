/* The environment filter: patterns, kept names, values with a password. */
#include "env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool matches(const char *pattern, const char *name, bool any_case)
{
    return env_matches(pattern, name, strlen(name), any_case);
}

static void patterns(void **state)
{
    (void)state;
    assert_true(matches("A", "A", false));
    assert_false(matches("A", "a", false));
    assert_true(matches("a", "A", true));
    assert_true(matches("*", "", false));
    assert_true(matches("A*", "A", false));
    assert_true(matches("*TOKEN*", "MY_TOKEN_X", false));
    assert_true(matches("*_KEY", "A_KEY_KEY", false));
    assert_false(matches("*_KEY", "A_KEY_B", false));
    assert_false(matches("", "A", false));
    assert_false(matches("A*B", "ACCC", false));
    assert_true(matches("A*B*C", "AxBxBxC", false));
    assert_false(matches("A?", "AB", false));
}

static bool holds(char **list, const char *entry)
{
    for (; *list; list++)
        if (strcmp(*list, entry) == 0)
            return true;
    return false;
}

static void filter(void **state)
{
    (void)state;
    const char *unset[] = {"EFR_*"};
    const char *secret[] = {"*TOKEN*"};
    const char *keep[] = {"KEPT_TOKEN", "KEPT_URL"};
    const char *set[] = {"NEW", "1", "OLD", "2"};
    const char *defaults[] = {"PLAIN", "no", "NEW", "9", "A_TOKEN", "3", "PLAI", "4"};
    struct plan plan = {.unset = {unset, 1},
                        .secret = {secret, 1},
                        .keep = {keep, 2},
                        .set = {set, 4},
                        .defaults = {defaults, 8}};
    char from[][40] = {"EFR_X=1",      "a_token=1",          "KEPT_TOKEN=1",
                       "OLD=1",        "PLAIN=yes",          "URL=x://u:p@h",
                       "URL2=x://u@h", "KEPT_URL=x://u:p@h", "BAD\xff=1",
                       "\xc3\xa4=1",   "no equals",          "=x",
                       "TIME=12:30@x", "TWO=a://b c://u:p@h"};
    char *list[sizeof from / sizeof *from + 1] = {NULL};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        list[i] = from[i];
    char **result = env_build(&plan, list);
    static const char *const wanted[] = {
        "KEPT_TOKEN=1", "PLAIN=yes", "URL2=x://u@h", "KEPT_URL=x://u:p@h", "\xc3\xa4=1",
        "TIME=12:30@x", "NEW=1",     "OLD=2",        "A_TOKEN=3",          "PLAI=4"};
    size_t count = 0;
    for (char **at = result; *at; at++)
        count++;
    assert_int_equal(count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < count; i++)
        assert_true(holds(result, wanted[i]));
    for (char **at = result; *at; at++)
        free(*at);
    free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
