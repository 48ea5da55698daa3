/*
 * Unit tests of lua/efr/boot.lua through efr_state_run: what an entry module can do becomes
 * an exit code and a message, and the program always ends.
 */
#include "unit.h"

#include <fcntl.h>
#include <lauxlib.h>
#include <uv.h>

#include "err.h"
#include "loop.h"
#include "state.h"

static char message[4096];

/* Runs a program whose entry module has this body of run(ports, args). */
static int run_entry(const char *body)
{
    char chunk[2048];
    struct efr_err err = {0};
    uv_loop_t loop;
    assert_int_equal(efr_loop_open(&loop, &err), 0);
    struct efr_state_opts opts = {.loop = &loop};
    struct efr_state *state = efr_state_create(&opts, &err);
    assert_non_null(state);
    (void)snprintf(chunk, sizeof(chunk),
                   "package.preload['efr.cli.main'] = function()\n"
                   "  return { run = function(ports, args)\n%s\nend }\n"
                   "end",
                   body);
    assert_int_equal(luaL_dostring(efr_state_lua(state), chunk), LUA_OK);

    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(saved >= 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    char *args[] = {(char[]){"one"}, (char[]){"two"}, NULL};
    int code = efr_state_run(state, "cli", args, &err);
    efr_state_destroy(state);
    assert_true(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t n = read(ends[0], message, sizeof(message) - 1);
    message[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    assert_int_equal(efr_loop_close(&loop), 0);
    return code;
}

static void test_code(void **state)
{
    (void)state;
    assert_int_equal(run_entry("return #args == 2 and args[1] == 'one' and 7 or 1"), 7);
    assert_string_equal(message, "");
}

static void test_failure(void **state)
{
    (void)state;
    assert_int_equal(run_entry("return nil, 'no such thing', 'EFR_X'"), 1);
    assert_string_equal(message, "efr: no such thing\n");
}

static void test_error(void **state)
{
    (void)state;
    assert_int_equal(run_entry("local function deep() error('on purpose') end deep()"),
                     70);
    assert_non_null(strstr(message, "efr: "));
    assert_non_null(strstr(message, "on purpose"));
    assert_non_null(strstr(message, "deep"));
}

static void test_undefined_global(void **state)
{
    (void)state;
    assert_int_equal(run_entry("return undefined_thing"), 70);
    assert_non_null(strstr(message, "read of undefined global 'undefined_thing'"));
    assert_int_equal(run_entry("undefined_thing = 1"), 70);
    assert_non_null(strstr(message, "write of undefined global"));
}

static void test_wait(void **state)
{
    (void)state;
    assert_int_equal(run_entry("require('efr.util.async').sleep(5) return 4"), 4);
    /* what is still open does not keep the program */
    assert_int_equal(run_entry("ports.uv.new_timer():start(1000000, 0, function() end)\n"
                               "require('efr.util.async').sleep(5) return 5"),
                     5);
    assert_int_equal(run_entry("ports.uv.new_timer():start(1000000, 0, function() end)\n"
                               "require('efr.util.async').sleep(5) error('late')"),
                     70);
    assert_non_null(strstr(message, "late"));
}

static void test_stuck(void **state)
{
    (void)state;
    assert_int_equal(run_entry("require('efr.util.async').future():get()"), 70);
    assert_non_null(strstr(message, "waiting for something that cannot come"));
}

static void test_task_error(void **state)
{
    (void)state;
    assert_int_equal(run_entry("local async = require('efr.util.async')\n"
                               "async.spawn(function() error('in a task') end)\n"
                               "async.sleep(1) return 0"),
                     0);
    assert_non_null(strstr(message, "in a task"));
}

static void test_ports(void **state)
{
    (void)state;
    assert_int_equal(
        run_entry("for _, name in ipairs{'sys', 'fs', 'json', 'text', 'proc',\n"
                  "    'modules', 'assets', 'uv'} do\n"
                  "  assert(type(ports[name]) == 'table', name)\n"
                  "end\n"
                  "assert(ports.nothing == nil)\n"
                  "return 3"),
        3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_code),  cmocka_unit_test(test_failure),
        cmocka_unit_test(test_error), cmocka_unit_test(test_undefined_global),
        cmocka_unit_test(test_wait),  cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_ports), cmocka_unit_test(test_task_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
