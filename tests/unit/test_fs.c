/*
 * Unit tests of host/fs and host/fs_tree on real files. Not covered here: the Lua binding
 * (spec/host/fs_spec.lua).
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "buf.h"
#include "err.h"
#include "fs.h"

static void put(const char *path, const char *text, mode_t mode)
{
    struct efr_fs_write how = {.data = text, .len_bytes = strlen(text), .mode = mode};
    assert_int_equal(efr_fs_write(path, &how, NULL), 0);
}

static char content[256];

static const char *get(const char *path)
{
    struct efr_buf buf;
    struct efr_err err;
    efr_buf_init(&buf, false);
    assert_int_equal(efr_fs_read(path, 200, false, &buf, &err), 0);
    if (buf.len)
        memcpy(content, buf.data, buf.len);
    content[buf.len] = '\0';
    efr_buf_finish(&buf);
    return content;
}

static const char *read_code(const char *path, size_t max, bool real)
{
    static struct efr_err err;
    struct efr_buf buf;
    efr_err_reset(&err);
    efr_buf_init(&buf, true);
    (void)efr_fs_read(path, max, real, &buf, &err);
    efr_buf_finish(&buf);
    return err.code;
}

static int entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static void test_read(void **state)
{
    (void)state;
    put("f", "hello", 0640);
    assert_string_equal(get("f"), "hello");
    assert_string_equal(read_code("f", 5, true), "");
    assert_string_equal(read_code("f", 4, true), "EFR_TOO_BIG");
    assert_string_equal(read_code("none", 4, true), "ENOENT");
    assert_string_equal(read_code(".", 4, true), "EFR_NOT_REGULAR");
    assert_int_equal(symlink("f", "l"), 0);
    assert_string_equal(get("l"), "hello");
    assert_string_equal(read_code("l", 9, true), "ELOOP");
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(symlink("d", "dl"), 0);
    put("d/f", "x", 0600);
    assert_string_equal(read_code("dl/f", 9, true), "ELOOP");
    /* a fifo neither hangs nor is read */
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_string_equal(read_code("fifo", 9, true), "EFR_NOT_REGULAR");
    /* a file without a size is read to its end, and limited */
    assert_string_equal(read_code("/proc/cpuinfo", 1 << 20, true), "");
    assert_string_equal(read_code("/proc/cpuinfo", 10, true), "EFR_TOO_BIG");
}

static void test_write(void **state)
{
    (void)state;
    struct stat st;
    put("f", "one", 0640);
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    put("f", "two", 0600);
    assert_string_equal(get("f"), "two");
    assert_int_equal(symlink("f", "l"), 0);
    put("l", "three", 0600); /* replaces the link, not its target */
    assert_string_equal(get("f"), "two");
    assert_int_equal(lstat("l", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(entries("."), 2); /* no temporary file */
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    put(name, "long", 0600); /* the longest name there is */
    assert_string_equal(get(name), "long");
}

static int write_real(const char *path, bool keep, struct efr_err *err)
{
    struct efr_fs_write how = {
        .data = "new", .len_bytes = 3, .mode = 0644, .real = true, .keep = keep};
    return efr_fs_write(path, &how, err);
}

static void test_write_real(void **state)
{
    (void)state;
    struct efr_err err;
    struct stat st;
    put("f", "old", 0751);
    assert_int_equal(write_real("f", true, &err), 0);
    assert_int_equal(stat("f", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    assert_string_equal(get("f"), "new");
    assert_int_equal(symlink("f", "l"), 0);
    assert_int_equal(write_real("l", true, &err), -1);
    assert_string_equal(err.code, "EFR_NOT_REGULAR");
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(symlink("d", "dl"), 0);
    assert_int_equal(write_real("dl/x", true, &err), -1);
    assert_string_equal(err.code, "ELOOP");
    assert_int_equal(write_real("d/x", true, &err), 0);
    assert_int_equal(write_real("d", false, &err), -1);
    assert_int_equal(write_real("d/..", false, &err), -1);
    assert_int_equal(write_real("d/", false, &err), -1);
    assert_int_equal(write_real("none/x", false, &err), -1);
    assert_string_equal(err.code, "ENOENT");
    assert_int_equal(entries("."), 4);
    assert_int_equal(entries("d"), 1);
}

static void test_mkdirs(void **state)
{
    char path[256];
    struct efr_err err;
    assert_int_equal(efr_fs_mkdirs("a//b/c/", 0700, &err), 0);
    assert_int_equal(efr_fs_mkdirs("a/b/c", 0700, &err), 0);
    (void)snprintf(path, sizeof(path), "%s/x/y", (const char *)*state);
    assert_int_equal(efr_fs_mkdirs(path, 0700, &err), 0);
    put("f", "", 0600);
    assert_int_equal(efr_fs_mkdirs("f/x", 0700, &err), -1);
    assert_int_equal(efr_fs_mkdirs("f", 0700, &err), -1);
}

static void test_private_dir(void **state)
{
    (void)state;
    struct efr_err err;
    assert_int_equal(mkdir("d", 0700), 0);
    assert_int_equal(efr_fs_check_private_dir("d", &err), 0);
    assert_int_equal(chmod("d", 0710), 0);
    assert_int_equal(efr_fs_check_private_dir("d", &err), -1);
    assert_string_equal(err.code, "EFR_NOT_PRIVATE");
    assert_int_equal(chmod("d", 0700), 0);
    assert_int_equal(symlink("d", "l"), 0);
    assert_int_equal(efr_fs_check_private_dir("l", &err), -1);
    assert_string_equal(err.code, "ENOTDIR");
    assert_int_equal(efr_fs_check_private_dir("none", &err), -1);
    assert_string_equal(err.code, "ENOENT");
}

static void test_rmtree(void **state)
{
    (void)state;
    struct efr_err err = {0};
    assert_int_equal(efr_fs_mkdirs("t/a/b", 0700, &err), 0);
    assert_int_equal(efr_fs_mkdirs("outside", 0700, &err), 0);
    put("outside/kept", "x", 0600);
    put("t/f", "x", 0400);
    put("t/a/b/f", "x", 0600);
    assert_int_equal(symlink("../outside", "t/link"), 0);
    assert_int_equal(mkfifo("t/fifo", 0600), 0);
    assert_int_equal(chmod("t/a/b", 0), 0);
    assert_int_equal(chmod("t/a", 0500), 0);
    assert_int_equal(efr_fs_rmtree("t/", &err), 0);
    assert_int_equal(access("t", F_OK), -1);
    assert_string_equal(get("outside/kept"), "x");
    assert_int_equal(efr_fs_rmtree("t", &err), 0); /* gone is fine */
    assert_int_equal(efr_fs_rmtree("none/t", &err), 0);
    assert_int_equal(symlink("outside", "l"), 0);
    assert_int_equal(efr_fs_rmtree("l", &err), 0); /* the link itself */
    assert_string_equal(get("outside/kept"), "x");
    assert_int_equal(efr_fs_rmtree("outside/kept", &err), 0);
    assert_int_equal(efr_fs_rmtree(".", &err), -1);
    assert_int_equal(efr_fs_rmtree("a/..", &err), -1);
    assert_int_equal(efr_fs_rmtree("/", &err), -1);
}

/* Deeper than any path or descriptor limit. */
static void test_rmtree_deep(void **state)
{
    struct efr_err err = {0};
    assert_int_equal(mkdir("deep", 0700), 0);
    assert_int_equal(chdir("deep"), 0);
    for (int i = 0; i < 1500; i++) {
        assert_int_equal(mkdir("dd", 0700), 0);
        assert_int_equal(chdir("dd"), 0);
    }
    assert_int_equal(chdir(*state), 0);
    assert_int_equal(efr_fs_rmtree("deep", &err), 0);
    assert_int_equal(access("deep", F_OK), -1);
}

#define WITH_DIR(test)                                                                   \
    cmocka_unit_test_setup_teardown(test, unit_dir_setup, unit_dir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_read),        WITH_DIR(test_write),  WITH_DIR(test_write_real),
        WITH_DIR(test_mkdirs),      WITH_DIR(test_rmtree), WITH_DIR(test_private_dir),
        WITH_DIR(test_rmtree_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
