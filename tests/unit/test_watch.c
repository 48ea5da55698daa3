/*
 * Unit tests of host/watch: real changes of a private directory, seen on the loop. Not covered
 * here: the Lua binding (spec/host/watch_spec.lua).
 */
#include "unit.h"

#include <fcntl.h>
#include <uv.h>

#include "err.h"
#include "watch.h"

struct seen {
    struct efr_watch *watch;
    int count, last_id;
    int kinds[EFR_WATCH_OVERFLOW + 1];
    char names[512];
    int destroy_at; /* destroy the watch at this event; 0 = never */
};

static void note(void *arg, int id, enum efr_watch_kind kind, const char *name)
{
    struct seen *seen = arg;
    seen->count++;
    seen->last_id = id;
    seen->kinds[kind]++;
    size_t used = strlen(seen->names);
    (void)snprintf(seen->names + used, sizeof(seen->names) - used, "%s ",
                   name ? name : "-");
    if (seen->count == seen->destroy_at)
        efr_watch_destroy(seen->watch);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static struct efr_watch *start(uv_loop_t *loop, struct seen *seen)
{
    struct efr_err err = {0};
    assert_int_equal(uv_loop_init(loop), 0);
    seen->watch = efr_watch_create(loop, note, seen, &err);
    assert_non_null(seen->watch);
    return seen->watch;
}

static void finish(uv_loop_t *loop, struct seen *seen)
{
    efr_watch_destroy(seen->watch);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

/* inotify queues an event before the system call that makes it returns. */
static void test_kinds(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct seen seen = {0};
    struct efr_err err = {0};
    struct efr_watch *watch = start(&loop, &seen);
    assert_int_equal(mkdir("d", 0700), 0);
    int id = efr_watch_add(watch, "d", &err);
    assert_true(id > 0);
    assert_int_equal(efr_watch_add(watch, "d", &err), id);
    touch("d/a");
    assert_int_equal(rename("d/a", "d/b"), 0);
    assert_int_equal(symlink("x", "d/l"), 0);
    assert_int_equal(unlink("d/b"), 0);
    assert_int_equal(unlink("d/l"), 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_string_equal(seen.names, "a a a b l b l ");
    assert_int_equal(seen.kinds[EFR_WATCH_CREATE], 2);
    assert_int_equal(seen.kinds[EFR_WATCH_WRITE], 1);
    assert_int_equal(seen.kinds[EFR_WATCH_MOVE], 2);
    assert_int_equal(seen.kinds[EFR_WATCH_DELETE], 2);
    assert_int_equal(seen.last_id, id);
    assert_int_equal(rmdir("d"), 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(seen.kinds[EFR_WATCH_GONE] >= 1);
    assert_int_equal(efr_watch_remove(watch, id, &err), -1);
    assert_string_equal(err.code, "EINVAL");
    finish(&loop, &seen);
}

static void test_failures(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct seen seen = {0};
    struct efr_err err = {0};
    struct efr_watch *watch = start(&loop, &seen);
    assert_int_equal(efr_watch_add(watch, "missing", &err), -1);
    assert_string_equal(err.code, "ENOENT");
    touch("file");
    assert_int_equal(efr_watch_add(watch, "file", &err), -1);
    assert_string_equal(err.code, "ENOTDIR");
    finish(&loop, &seen);
}

static void test_destroyed_in_its_callback(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct seen seen = {.destroy_at = 2};
    struct efr_err err = {0};
    struct efr_watch *watch = start(&loop, &seen);
    assert_true(efr_watch_add(watch, ".", &err) > 0);
    for (int i = 0; i < 3; i++)
        touch((const char *[]){"p", "q", "r"}[i]);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(seen.count, 2);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* The kernel keeps max_queued_events; what comes after them is told as lost. */
static void test_overflow(void **state)
{
    (void)state;
    long limit = 0;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &limit), 1);
    assert_in_range(limit, 1, 10000000); /* more would fill memory, not a queue */
    (void)fclose(file);
    uv_loop_t loop;
    struct seen seen = {0};
    struct efr_err err = {0};
    struct efr_watch *watch = start(&loop, &seen);
    assert_true(efr_watch_add(watch, ".", &err) > 0);
    touch("a");
    touch("b");
    for (long i = 0; i < limit; i += 2) { /* equal events in a row count once */
        assert_int_equal(rename("a", "c"), 0);
        assert_int_equal(rename("c", "a"), 0);
    }
    while (!seen.kinds[EFR_WATCH_OVERFLOW] && seen.count < 2 * limit + 100)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(seen.kinds[EFR_WATCH_OVERFLOW], 1);
    assert_int_equal(seen.last_id, -1);
    finish(&loop, &seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kinds, unit_dir_setup, unit_dir_teardown),
        cmocka_unit_test_setup_teardown(test_failures, unit_dir_setup, unit_dir_teardown),
        cmocka_unit_test_setup_teardown(test_destroyed_in_its_callback, unit_dir_setup,
                                        unit_dir_teardown),
        cmocka_unit_test_setup_teardown(test_overflow, unit_dir_setup, unit_dir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
