/*
 * Units of sbx/keep: the one line of /proc that the keeper reads, with the names that a process may give itself.
 * What the keeper ends: tests/e2e/kill.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "keep.h"

#define REST "4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4294967298 23 24\n"

static void reads_parent_state_and_start(void **state)
{
    (void)state;
    static const char *const names[] = {"zsh", "", ") Z 1 (", "a b)", "9) 9", "\xff\n)("};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char line[256];
        struct keep_stat stat = {0};
        (void)snprintf(line, sizeof(line), "77 (%s) T %s", names[i], REST);
        assert_true(keep_parse_stat(line, &stat));
        assert_int_equal(stat.state, 'T');
        assert_int_equal(stat.parent, 4);
        assert_true(stat.start_ticks == 4294967298u);
    }
}

static void refuses_what_is_no_stat_line(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",      "77",          "77 (zsh",      "77 (zsh)",
        "77 ()", "77 (zsh) S ", "77 (zsh) S 1", "77 (z) S 1 2 x 4"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct keep_stat stat = {0};
        assert_false(keep_parse_stat(lines[i], &stat));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_parent_state_and_start),
        cmocka_unit_test(refuses_what_is_no_stat_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
