/*
 * Unit tests of host/store and host/sql: real files, the real writer thread, a loop of their
 * own. Not covered here: the Lua binding (spec/host/store_spec.lua) and speed (tests/bench).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store.h"

#define RESULTS_MAX 2048

struct fixture {
    char dir[64];
    char path[96];
    uv_loop_t loop;
    struct store *store;
    /* what was reported, in order */
    int n;
    int tag[RESULTS_MAX];
    char code[RESULTS_MAX][32];
    int64_t changes[RESULTS_MAX];
    int close_at; /* the tag whose report closes the store */
};

struct tagged {
    struct fixture *fx;
    int tag;
};

static struct tagged tags[RESULTS_MAX];

/* -- fixture ---------------------------------------------------------------------- */

static void remove_file(struct fixture *fx, const char *name)
{
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->dir, name);
    (void)unlink(path);
}

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));

    assert_non_null(fx);
    (void)snprintf(fx->dir, sizeof(fx->dir), "/tmp/efr-test-store-XXXXXX");
    assert_non_null(mkdtemp(fx->dir));
    (void)snprintf(fx->path, sizeof(fx->path), "%s/db.sqlite", fx->dir);
    assert_int_equal(uv_loop_init(&fx->loop), 0);
    fx->close_at = -1;
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    static const char *const names[] = {"db.sqlite", "db.sqlite-wal", "db.sqlite-shm",
                                        "copy.sqlite"};
    struct fixture *fx = *state;

    store_close(fx->store);
    uv_run(&fx->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fx->loop), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        remove_file(fx, names[i]);
    assert_int_equal(rmdir(fx->dir), 0); /* no other file is left */
    free(fx);
    return 0;
}

static void open_store(struct fixture *fx)
{
    struct efr_err err = {0};

    fx->store = store_open(fx->path, &err);
    if (fx->store == NULL)
        fail_msg("open: %s", err.text);
}

static void open_with_table(struct fixture *fx)
{
    struct efr_err err = {0};

    open_store(fx);
    assert_int_equal(store_script(fx->store,
                                  "CREATE TABLE t (id INTEGER PRIMARY KEY, v ANY) STRICT;"
                                  "PRAGMA user_version=7;",
                                  &err),
                     0);
    assert_int_equal(store_start(fx->store, &fx->loop, &err), 0);
}

static void close_store(struct fixture *fx)
{
    store_close(fx->store);
    fx->store = NULL;
    uv_run(&fx->loop, UV_RUN_DEFAULT);
}

static void on_done(void *arg, const struct store_result *result)
{
    struct tagged *tagged = arg;
    struct fixture *fx = tagged->fx;

    fx->tag[fx->n] = tagged->tag;
    fx->changes[fx->n] = result->n_changes > 0 ? result->changes[0].changes : -1;
    (void)snprintf(fx->code[fx->n], sizeof(fx->code[0]), "%s",
                   result->err != NULL ? result->err->code : "");
    fx->n++;
    if (tagged->tag == fx->close_at) {
        struct store *store = fx->store;

        fx->store = NULL;
        store_close(store);
    }
}

static struct sql_value text_value(const char *text)
{
    return (struct sql_value){.type = SQL_TEXT, .text = text, .text_len = strlen(text)};
}

static struct sql_value int_value(int64_t integer)
{
    return (struct sql_value){.type = SQL_INTEGER, .integer = integer};
}

static void add(struct store_batch *batch, const char *text, int64_t expect)
{
    store_batch_add(batch, text, strlen(text), expect);
}

static int hand_over(struct fixture *fx, struct store_batch *batch, int tag, bool durable,
                     struct efr_err *err)
{
    tags[tag] = (struct tagged){.fx = fx, .tag = tag};
    return store_write_take(fx->store, batch, durable, on_done, &tags[tag], err);
}

static void submit(struct fixture *fx, struct store_batch *batch, int tag)
{
    struct efr_err err = {0};

    assert_int_equal(hand_over(fx, batch, tag, false, &err), 0);
}

static struct store_batch *insert_batch(int64_t id, const char *value)
{
    struct store_batch *batch = store_batch_create();

    add(batch, "INSERT INTO t (id, v) VALUES (?, ?)", -1);
    store_batch_bind(batch, int_value(id));
    store_batch_bind(batch, text_value(value));
    return batch;
}

/* Runs the loop until n batches are reported: the handle keeps it alive until then. */
static void wait_for(struct fixture *fx, int n)
{
    while (fx->n < n)
        assert_int_not_equal(uv_run(&fx->loop, UV_RUN_ONCE) == 0 && fx->n < n, 1);
}

static int64_t number(struct fixture *fx, const char *text)
{
    struct efr_err err = {0};
    struct sql *sql = store_reader(fx->store);
    struct sqlite3_stmt *stmt = sql_start(sql, text_value(text), NULL, 0, &err);
    int64_t result;

    if (stmt == NULL || sql_step(sql, stmt, &err) != 1)
        fail_msg("%s: %s", text, err.text);
    result = sql_column(stmt, 0).integer;
    sql_done(stmt);
    return result;
}

/* -- opening ---------------------------------------------------------------------- */

static void test_create_and_reopen(void **state)
{
    struct fixture *fx = *state;
    struct stat st;

    umask(0);
    open_with_table(fx);
    umask(022);
    assert_int_equal(stat(fx->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    submit(fx, insert_batch(1, "one"), 0);
    wait_for(fx, 1);
    close_store(fx);
    open_store(fx);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 1);
    assert_int_equal(number(fx, "PRAGMA user_version"), 7);
}

static void write_file(const char *path, const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static void refused(struct fixture *fx, const char *code)
{
    struct efr_err err = {0};

    assert_null(store_open(fx->path, &err));
    assert_string_equal(err.code, code);
    assert_non_null(strstr(err.text, fx->path));
}

static void test_refuses_what_is_no_database(void **state)
{
    struct fixture *fx = *state;
    char junk[8192];
    char wal[128];
    struct stat st;

    memset(junk, 'x', sizeof(junk));
    write_file(fx->path, junk, sizeof(junk));
    refused(fx, "EFR_DAMAGED");
    assert_int_equal(stat(fx->path, &st), 0);
    assert_int_equal(st.st_size, sizeof(junk));

    write_file(fx->path, "", 0);
    refused(fx, "EFR_DAMAGED");

    assert_int_equal(unlink(fx->path), 0);
    (void)snprintf(wal, sizeof(wal), "%s-wal", fx->path);
    write_file(wal, "log", 3);
    refused(fx, "EFR_DAMAGED");
    assert_int_equal(unlink(wal), 0);

    assert_int_equal(mkdir(fx->path, 0700), 0);
    refused(fx, "EFR_DAMAGED");
    assert_int_equal(rmdir(fx->path), 0);

    (void)snprintf(fx->path, sizeof(fx->path), "%s/none/db.sqlite", fx->dir);
    refused(fx, "ENOENT");
}

static void test_check_finds_damage(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};
    char page[4096];
    int fd;

    open_with_table(fx);
    for (int i = 0; i < 200; i++)
        submit(fx,
               insert_batch(i, "a text that fills some pages of the table in the file"),
               i);
    wait_for(fx, 200);
    assert_int_equal(sql_check(store_reader(fx->store), &err), 0);
    close_store(fx);

    memset(page, 0xa5, sizeof(page));
    fd = open(fx->path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, page, sizeof(page), 2 * 4096), (ssize_t)sizeof(page));
    assert_int_equal(close(fd), 0);
    open_store(fx);
    assert_int_equal(sql_check(store_reader(fx->store), &err), -1);
    assert_string_equal(err.code, "EFR_DAMAGED");
}

static void test_script_is_one_transaction(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_store(fx);
    assert_int_equal(store_script(fx->store,
                                  "CREATE TABLE a (x); PRAGMA user_version=3;"
                                  "INSERT INTO nowhere VALUES (1);",
                                  &err),
                     -1);
    assert_non_null(strstr(err.text, "nowhere"));
    assert_int_equal(number(fx, "SELECT count(*) FROM sqlite_schema"), 0);
    assert_int_equal(number(fx, "PRAGMA user_version"), 0);
    assert_int_equal(store_start(fx->store, &fx->loop, &err), 0);
    assert_int_equal(store_script(fx->store, "SELECT 1", &err), -1);
    assert_string_equal(err.code, "EFR_STATE");
}

static void test_backup(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};
    struct stat st;
    char copy[128];

    open_with_table(fx);
    submit(fx, insert_batch(1, "kept"), 0);
    wait_for(fx, 1);
    (void)snprintf(copy, sizeof(copy), "%s/copy.sqlite", fx->dir);
    write_file(copy, "old", 3);
    assert_int_equal(sql_backup(store_reader(fx->store), copy, &err), 0);
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    close_store(fx);
    assert_int_equal(rename(copy, fx->path), 0);
    open_store(fx);
    assert_int_equal(number(fx, "SELECT count(*) FROM t WHERE v = 'kept'"), 1);
    assert_int_equal(number(fx, "PRAGMA user_version"), 7);

    (void)snprintf(copy, sizeof(copy), "%s/none/copy.sqlite", fx->dir);
    assert_int_equal(sql_backup(store_reader(fx->store), copy, &err), -1);
    assert_string_equal(err.code, "ENOENT");
}

/* -- writing ---------------------------------------------------------------------- */

/* Holds the write lock, so that the writer waits with what it has and the batches that come
 * now meet in one transaction after it. */
static struct sql *hold_writer(struct fixture *fx)
{
    struct efr_err err = {0};
    struct sql *other = sql_open_writer(fx->path, &err);

    assert_non_null(other);
    assert_int_equal(sql_run(other, "BEGIN IMMEDIATE", &err), 0);
    return other;
}

/* Each result comes in order; a failing batch loses all its rows and nobody else's. */
static void test_group_keeps_order_and_isolates_failures(void **state)
{
    struct fixture *fx = *state;
    struct store_batch *bad;
    struct sql *other;

    open_with_table(fx);
    other = hold_writer(fx);
    for (int i = 0; i < 60; i++) {
        if (i % 3 != 1) {
            submit(fx, insert_batch(i, "fine"), i);
            continue;
        }
        bad = insert_batch(1000 + i, "goes away");
        add(bad, "INSERT INTO t (id, v) VALUES (0, 'a second one')", -1);
        submit(fx, bad, i);
    }
    sql_close(other);
    wait_for(fx, 60);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(fx->tag[i], i);
        assert_string_equal(fx->code[i], i % 3 == 1 ? "EFR_CONSTRAINT" : "");
    }
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 40);
    assert_int_equal(number(fx, "SELECT count(*) FROM t WHERE id >= 1000"), 0);
}

static void test_expected_changes(void **state)
{
    struct fixture *fx = *state;
    struct store_batch *batch = insert_batch(2, "not kept");

    open_with_table(fx);
    submit(fx, insert_batch(1, "waits"), 0);
    add(batch, "UPDATE t SET v = 'answered' WHERE v = 'gone'", 1);
    submit(fx, batch, 1);
    batch = store_batch_create();
    add(batch, "UPDATE t SET v = 'answered' WHERE v = 'waits'", 1);
    submit(fx, batch, 2);
    wait_for(fx, 3);
    assert_string_equal(fx->code[0], "");
    assert_string_equal(fx->code[1], "EFR_CONFLICT");
    assert_string_equal(fx->code[2], "");
    assert_int_equal(fx->changes[2], 1);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 1);
}

static void test_bad_statements(void **state)
{
    static const char *const texts[] = {"INSERT INTO t VALUES (1, 2); SELECT 1", "",
                                        "  ; ", "NONSENSE",
                                        "INSERT INTO t VALUES (?, ?)"};
    struct fixture *fx = *state;

    open_with_table(fx);
    for (int i = 0; i < 5; i++) {
        struct store_batch *batch = store_batch_create();

        add(batch, texts[i], -1);
        submit(fx, batch, i);
    }
    submit(fx, insert_batch(1, "fine"), 5);
    wait_for(fx, 6);
    for (int i = 0; i < 5; i++)
        assert_string_equal(fx->code[i], "EFR_SQL");
    assert_string_equal(fx->code[5], "");
}

static void test_inbox_is_bounded(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_with_table(fx);
    for (int i = 0; i < STORE_INBOX_MAX; i++)
        submit(fx, insert_batch(i, "x"), i);
    assert_int_equal(hand_over(fx, insert_batch(5000, "x"), 2000, false, &err), -1);
    assert_string_equal(err.code, "EFR_BUSY");
    wait_for(fx, STORE_INBOX_MAX);
    submit(fx, insert_batch(5001, "x"), 2001);
    wait_for(fx, STORE_INBOX_MAX + 1);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), STORE_INBOX_MAX + 1);
}

/* The pragma's value seen from inside the batch tells how its commit will be. */
static void test_durable_flag(void **state)
{
    static const char note[] =
        "INSERT INTO t (id, v) SELECT ?, synchronous FROM pragma_synchronous";
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_with_table(fx);
    for (int i = 0; i < 3; i++) {
        struct store_batch *batch = store_batch_create();

        add(batch, note, 1);
        store_batch_bind(batch, int_value(i));
        assert_int_equal(hand_over(fx, batch, i, i == 1, &err), 0);
        wait_for(fx, i + 1);
    }
    assert_int_equal(number(fx, "SELECT v FROM t WHERE id = 0"), 1); /* NORMAL */
    assert_int_equal(number(fx, "SELECT v FROM t WHERE id = 1"), 2); /* FULL */
    assert_int_equal(number(fx, "SELECT v FROM t WHERE id = 2"), 1);
}

static void test_values_are_exact(void **state)
{
    struct fixture *fx = *state;
    struct store_batch *batch = store_batch_create();
    static const char insert[] = "INSERT INTO t (v) VALUES (?)";
    struct sql_value zeros = {.type = SQL_TEXT, .text = "a\0b", .text_len = 3};
    struct sql_value empty = {.type = SQL_TEXT, .text = NULL, .text_len = 0};
    struct sql_value real = {.type = SQL_REAL, .real = 0.5};
    struct sql_value null = {.type = SQL_NULL};
    struct sql_value values[] = {
        int_value(INT64_MIN), int_value(INT64_MAX), zeros, empty, real, null};

    open_with_table(fx);
    for (int i = 0; i < 6; i++) {
        add(batch, insert, 1);
        store_batch_bind(batch, values[i]);
    }
    submit(fx, batch, 0);
    wait_for(fx, 1);
    assert_string_equal(fx->code[0], "");
    assert_true(number(fx, "SELECT v FROM t WHERE id = 1") == INT64_MIN);
    assert_true(number(fx, "SELECT v FROM t WHERE id = 2") == INT64_MAX);
    assert_int_equal(
        number(fx, "SELECT length(CAST(v AS BLOB)) FROM t WHERE id = 3 AND typeof(v) = "
                   "'text'"),
        3);
    assert_int_equal(number(fx, "SELECT v = '' FROM t WHERE id = 4"), 1);
    assert_int_equal(number(fx, "SELECT v = 0.5 FROM t WHERE id = 5"), 1);
    assert_int_equal(number(fx, "SELECT v IS NULL FROM t WHERE id = 6"), 1);
}

static void test_more_statements_than_the_cache_holds(void **state)
{
    struct fixture *fx = *state;
    char text[64];

    open_with_table(fx);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            struct store_batch *batch = store_batch_create();

            (void)snprintf(text, sizeof(text), "INSERT INTO t (v) VALUES (%d)", i);
            add(batch, text, 1);
            submit(fx, batch, i);
            (void)snprintf(text, sizeof(text), "SELECT %d", i);
            assert_int_equal(number(fx, text), i);
        }
        wait_for(fx, 300 * (round + 1));
    }
    assert_int_equal(number(fx, "SELECT sum(v) FROM t"), 2 * 299 * 150);
}

/* -- a disk that is full ---------------------------------------------------------- */

/* SQLite gives up the whole transaction when the file cannot grow. The batches beside the
 * one that was too big are kept all the same, and order holds. */
static void test_full_hits_only_the_batch_that_is_too_big(void **state)
{
    struct fixture *fx = *state;
    struct store_batch *batch = store_batch_create();
    struct sql *other;

    open_with_table(fx);
    add(batch, "PRAGMA max_page_count=20", -1);
    submit(fx, batch, 0);
    wait_for(fx, 1);
    other = hold_writer(fx);
    submit(fx, insert_batch(1, "occupies the writer"), 1);
    submit(fx, insert_batch(2, "before"), 2);
    batch = store_batch_create();
    add(batch, "INSERT INTO t (id, v) VALUES (3, hex(zeroblob(200000)))", -1);
    submit(fx, batch, 3);
    submit(fx, insert_batch(4, "after"), 4);
    sql_close(other);
    wait_for(fx, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(fx->tag[i], i);
        assert_string_equal(fx->code[i], i == 3 ? "EFR_FULL" : "");
    }
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 3);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A write that the kernel refuses at commit: all of the group fails, and the writer works
 * again once there is space. */
static void test_failed_commit_fails_the_group_and_the_writer_lives(void **state)
{
    struct fixture *fx = *state;
    struct stat st;
    char wal[128];

    (void)signal(SIGXFSZ, SIG_IGN);
    open_with_table(fx);
    submit(fx, insert_batch(1, "before"), 0);
    wait_for(fx, 1);
    (void)snprintf(wal, sizeof(wal), "%s-wal", fx->path);
    assert_int_equal(stat(wal, &st), 0);

    limit_file_size((rlim_t)st.st_size + 100);
    submit(fx, insert_batch(2, "lost"), 1);
    submit(fx, insert_batch(3, "lost"), 2);
    wait_for(fx, 3);
    limit_file_size(RLIM_INFINITY);
    for (int i = 1; i < 3; i++)
        assert_true(strcmp(fx->code[i], "EFR_FULL") == 0 ||
                    strcmp(fx->code[i], "EFR_IO") == 0);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 1);

    submit(fx, insert_batch(4, "again"), 3);
    wait_for(fx, 4);
    assert_string_equal(fx->code[3], "");
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 2);
}

/* -- reading and closing ---------------------------------------------------------- */

static void test_read_transaction_is_a_snapshot(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_with_table(fx);
    assert_int_equal(store_end_read(fx->store, &err), -1);
    assert_int_equal(store_begin_read(fx->store, &err), 0);
    assert_int_equal(store_begin_read(fx->store, &err), -1);
    assert_string_equal(err.code, "EFR_STATE");
    submit(fx, insert_batch(1, "later"), 0);
    wait_for(fx, 1);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 0);
    assert_int_equal(store_end_read(fx->store, &err), 0);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 1);
}

static void test_reader_cannot_write(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_with_table(fx);
    assert_int_equal(sql_run(store_reader(fx->store), "DELETE FROM t", &err), -1);
    assert_non_null(strstr(err.text, "readonly"));
}

static void test_close_drains(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_with_table(fx);
    for (int i = 0; i < 200; i++)
        submit(fx, insert_batch(i, "x"), i);
    store_close(fx->store);
    assert_int_equal(fx->n, 200); /* reported before close returned */
    assert_int_equal(hand_over(fx, insert_batch(500, "x"), 500, false, &err), -1);
    assert_string_equal(err.code, "EFR_CLOSED");
    close_store(fx);
    open_store(fx);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 200);
}

static void test_close_from_a_report(void **state)
{
    struct fixture *fx = *state;

    open_with_table(fx);
    fx->close_at = 3;
    for (int i = 0; i < 50; i++)
        submit(fx, insert_batch(i, "x"), i);
    wait_for(fx, 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(fx->tag[i], i);
        assert_string_equal(fx->code[i], "");
    }
    uv_run(&fx->loop, UV_RUN_DEFAULT);
    open_store(fx);
    assert_int_equal(number(fx, "SELECT count(*) FROM t"), 50);
}

static void test_write_needs_a_started_writer(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    open_store(fx);
    assert_int_equal(hand_over(fx, insert_batch(1, "x"), 0, false, &err), -1);
    assert_string_equal(err.code, "EFR_STATE");
    assert_int_equal(fx->n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_create_and_reopen),
        TEST(test_refuses_what_is_no_database),
        TEST(test_check_finds_damage),
        TEST(test_script_is_one_transaction),
        TEST(test_backup),
        TEST(test_group_keeps_order_and_isolates_failures),
        TEST(test_expected_changes),
        TEST(test_bad_statements),
        TEST(test_inbox_is_bounded),
        TEST(test_durable_flag),
        TEST(test_values_are_exact),
        TEST(test_more_statements_than_the_cache_holds),
        TEST(test_full_hits_only_the_batch_that_is_too_big),
        TEST(test_failed_commit_fails_the_group_and_the_writer_lives),
        TEST(test_read_transaction_is_a_snapshot),
        TEST(test_reader_cannot_write),
        TEST(test_close_drains),
        TEST(test_close_from_a_report),
        TEST(test_write_needs_a_started_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
