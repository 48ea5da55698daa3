/* The plan parser: the golden plan that the Lua side makes too, and refusals. */
#include "plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONCE "0123456789abcdef0123456789abcdef"
#define HEAD                                                                             \
    "efr-plan\0"                                                                         \
    "1\0nonce\0" NONCE "\0uid\0"                                                         \
    "1000\0cwd\0/p\0tmp\0/s\0"
#define MOUNTS "private\0/tmp\0private\0/var/tmp\0runtime\0/run/user/1\0"
#define TAIL "arg\0true\0end\0"

static void golden_plan(void **state)
{
    (void)state;
    static char bytes[65536];
    const char *source = getenv("EFR_SOURCE");
    char path[500];
    char message[400] = "";
    struct plan plan;
    (void)snprintf(path, sizeof path, "%s/tests/golden/sbx/plan", source ? source : ".");
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    for (size_t i = 0; i < len; i++)
        if (bytes[i] == '\n')
            bytes[i] = '\0';
    assert_int_equal(plan_parse(&plan, bytes, len, message, sizeof message), 0);
    assert_string_equal(plan.cwd, "/home/u/p/app");
    assert_string_equal(plan.runtime, "/run/user/1000");
    assert_int_equal(plan.uid, 1000);
    assert_true(plan.records);
    assert_string_equal(plan.argv.items[0], "/usr/bin/zsh");
    assert_null(plan.argv.items[plan.argv.count]);
    assert_int_equal(plan.mounts[plan.mount_count - 1].kind, MOUNT_FLOOR);
    assert_string_equal(plan.layers, "/home/u/.local/state/efr/sandbox/c1");
    assert_string_equal(plan.layers_name, "k1");
    assert_true(plan.keeps_layers);
    size_t overlays = 0;
    for (size_t i = 0; i < plan.mount_count; i++) {
        if (plan.mounts[i].kind != MOUNT_OVERLAY)
            continue;
        overlays++;
        if (strcmp(plan.mounts[i].path, "/home/u/.npm") == 0)
            assert_string_equal(plan.mounts[i].layer, "home%u%.npm");
        else
            assert_null(plan.mounts[i].layer);
    }
    assert_int_equal(overlays, 2);
    assert_string_equal(plan.move.items[0], "CCACHE_DIR");
    assert_string_equal(plan.move.items[1], "/home/u/.cache/ccache");
    plan_finish(&plan);
}

static const struct refusal {
    const char *bytes;
    size_t len;
    const char *message;
} REFUSALS[] = {
#define ROW(text, why)                                                                   \
    {                                                                                    \
        text, sizeof(text) - 1, why                                                      \
    }
    ROW("", "not a plan"),
    ROW("efr-plan\0", "this launcher reads plans of version 1"),
    ROW("efr-plan\0"
        "1",
        "this launcher reads plans of version 1"),
    ROW(HEAD MOUNTS "arg\0true\0", "the plan has no end"),
    ROW(HEAD MOUNTS "arg\0true\0end", "the plan has no end"),
    ROW(HEAD MOUNTS TAIL "x", "bytes after the end of the plan"),
    ROW(HEAD MOUNTS "end\0", "no command"),
    ROW(HEAD MOUNTS "arg\0\0end\0", "no command"),
    ROW(HEAD TAIL, "nonce, cwd, tmp or runtime is missing"),
    ROW(HEAD "private\0/tmp\0runtime\0/r/u\0" TAIL,
        "/tmp and /var/tmp are not both private"),
    ROW(HEAD MOUNTS "set\0A\0", "set has too few fields"),
    ROW(HEAD MOUNTS "set\0A=B\0c\0" TAIL, "set: not a variable name: A=B"),
    ROW(HEAD MOUNTS "overlay\0/a\0tmp\0" TAIL, "overlay before layers"),
    ROW(HEAD "layers\0/l\0k\0overlay\0/a\0..\0" TAIL, "overlay: not a plain name: .."),
    ROW(HEAD "layers\0/l\0k\0overlay\0/a\0b/c\0" TAIL, "overlay: not a plain name: b/c"),
    ROW(HEAD "layers\0/l\0\0" TAIL, "layers: not a plain name: "),
    ROW(HEAD "layers\0/l/../x\0k\0" TAIL,
        "layers is not an absolute, normal path: /l/../x"),
    ROW(HEAD "layers\0/l\0k\0layers\0/l\0k\0" TAIL, "layers is given twice"),
    ROW(HEAD "layers\0/l\0k\0overlay\0/dev/shm\0tmp\0" TAIL,
        "/dev/shm lies in a tree of the kernel"),
    ROW(HEAD "layers\0/l\0k\0root\0/a\0overlay\0/b\0tmp\0" TAIL,
        "mounts are not sorted at /b"),
    ROW(HEAD MOUNTS "move\0\0/x\0" TAIL, "move: not a variable name: "),
    ROW(HEAD MOUNTS "default\0A=\0/x\0" TAIL, "default: not a variable name: A="),
    ROW(HEAD "bwrap\0bwrap\0" TAIL, "bwrap is not an absolute, normal path: bwrap"),
    ROW(HEAD "bwrap\0/b\0bwrap\0/c\0" TAIL, "bwrap is given twice"),
    ROW(HEAD MOUNTS "records\0yes\0" TAIL, "records is not 1"),
    ROW(HEAD "root\0/a/\0" TAIL, "not an absolute, normal path: /a/"),
    ROW(HEAD "root\0/a//b\0" TAIL, "not an absolute, normal path: /a//b"),
    ROW(HEAD "root\0/a/.\0" TAIL, "not an absolute, normal path: /a/."),
    ROW(HEAD "root\0a\0" TAIL, "not an absolute, normal path: a"),
    ROW(HEAD "mask\0/dev/null\0" TAIL, "/dev/null lies in a tree of the kernel"),
    ROW(HEAD "private\0/home\0" TAIL, "/home: only /tmp and /var/tmp are private"),
    ROW(HEAD "root\0/tmp\0" TAIL, "/tmp: only /tmp and /var/tmp are private"),
    ROW(HEAD "root\0/a/b\0root\0/a\0" TAIL, "mounts are not sorted at /a"),
    ROW(HEAD "floor\0/a\0mask\0/b\0" TAIL, "mounts are not sorted at /b"),
    ROW(HEAD "grant\0/a\0pin\0/b\0" TAIL, "mounts are not sorted at /b"),
    ROW(HEAD "floor\0/a\0socket\0/b\0" TAIL, "mounts are not sorted at /b"),
    ROW(HEAD "grant\0/\0" TAIL, "/ cannot be a write root, mask or floor"),
    ROW(HEAD "device\0/dev\0" TAIL, "device: not below /dev: /dev"),
    ROW(HEAD "device\0/dev/../a\0" TAIL, "device: not below /dev: /dev/../a"),
    ROW(HEAD "device\0/dev/shm/a\0" TAIL, "device: the call has its own: /dev/shm/a"),
    ROW(HEAD "network\0none\0" TAIL, "network is not host, or given twice"),
    ROW(HEAD "network\0host\0network\0host\0" TAIL,
        "network is not host, or given twice"),
    ROW(HEAD "userns\0yes\0" TAIL, "userns is not 1, or given twice"),
    ROW(HEAD "limit\0memory\0"
             "1\0" TAIL,
        "unknown limit: memory"),
    ROW(HEAD "cgroup\0/c\0a/b\0" TAIL, "cgroup: not a plain name: a/b"),
    ROW(HEAD "cgroup\0c\0a\0" TAIL, "cgroup is not an absolute, normal path: c"),
    ROW(HEAD "cgroup\0/c\0a\0cgroup\0/c\0b\0" TAIL, "cgroup is given twice"),
    ROW(HEAD MOUNTS "limit\0memory_bytes\0"
                    "1\0" TAIL,
        "a limit of memory without a cgroup"),
    ROW(HEAD "limit\0processes\0-1\0" TAIL, "limit: not a number above 0: -1"),
    ROW(HEAD "limit\0processes\0"
             "1x\0" TAIL,
        "limit: not a number above 0: 1x"),
    ROW(HEAD "limit\0processes\0"
             "99999999999999999999\0" TAIL,
        "limit: not a number above 0: 99999999999999999999"),
    ROW(HEAD "limit\0processes\0"
             "1\0limit\0processes\0"
             "1\0" TAIL,
        "limit processes is given twice"),
    ROW(HEAD "uid\0"
             "01x\0" TAIL,
        "uid is not a number"),
    ROW(HEAD "uid\0-1\0" TAIL, "uid is not a number"),
    ROW(HEAD "uid\0"
             "99999999999\0" TAIL,
        "uid is not a number"),
};

static void refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++) {
        struct plan plan;
        char message[400] = "";
        assert_int_equal(plan_parse(&plan, REFUSALS[i].bytes, REFUSALS[i].len, message,
                                    sizeof message),
                         -1);
        assert_string_equal(message, REFUSALS[i].message);
        plan_finish(&plan);
    }
}

static void below(void **state)
{
    (void)state;
    assert_true(path_below("/a/b", "/a"));
    assert_true(path_below("/a", "/"));
    assert_false(path_below("/a", "/a"));
    assert_false(path_below("/ab", "/a"));
    assert_false(path_below("/", "/"));
}

static void grants(void **state)
{
    (void)state;
    static const char BYTES[] = HEAD "root\0/a\0" MOUNTS "grant\0/u/v\0socket\0/u/s\0"
                                     "device\0/dev/kvm\0network\0host\0userns\0"
                                     "1\0limit\0open_files\0"
                                     "9\0pass\0TOKEN\0" TAIL;
    char message[400] = "";
    struct plan plan;
    /* MOUNTS holds /run/user/1, which is deeper than what follows. */
    assert_int_equal(plan_parse(&plan, BYTES, sizeof BYTES - 1, message, sizeof message),
                     -1);
    plan_finish(&plan);
    static const char SORTED[] =
        HEAD "private\0/tmp\0root\0/a\0private\0/var/tmp\0grant\0/u/v\0socket\0/u/w\0"
             "runtime\0/run/user/1\0"
             "device\0/dev/kvm\0network\0host\0userns\0"
             "1\0limit\0open_files\0"
             "9\0pass\0TOKEN\0" TAIL;
    assert_int_equal(
        plan_parse(&plan, SORTED, sizeof SORTED - 1, message, sizeof message), 0);
    assert_true(plan.host_network && plan.userns);
    assert_int_equal(plan.max_open_files, 9);
    assert_string_equal(plan.devices.items[0], "/dev/kvm");
    assert_string_equal(plan.pass.items[0], "TOKEN");
    /* A floor goes behind everything of its depth. */
    assert_int_equal(plan_add(&plan, MOUNT_FLOOR, "/a/bin"), 0);
    assert_int_equal(plan_add(&plan, MOUNT_FLOOR, "/a/b/c/d"), 0);
    assert_string_equal(plan.mounts[5].path, "/a/bin");
    assert_string_equal(plan.mounts[6].path, "/run/user/1");
    assert_string_equal(plan.mounts[7].path, "/a/b/c/d");
    plan_finish(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_plan),
        cmocka_unit_test(refusals),
        cmocka_unit_test(below),
        cmocka_unit_test(grants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
