/*
 * Unit tests of host/state, host/luax and host/loop: the seal, the memory cap, guards on
 * both ways out, callbacks that raise, handles that Lua leaves behind.
 */
#include "unit.h"

#include <fcntl.h>
#include <lauxlib.h>
#include <uv.h>

#include "err.h"
#include "log.h"
#include "loop.h"
#include "luax.h"
#include "state.h"

struct fixture {
    uv_loop_t loop;
    struct efr_state *state;
    lua_State *L;
};

static int setup_capped(void **slot, size_t max_bytes)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    struct efr_err err = {0};
    if (!fx || efr_loop_open(&fx->loop, &err) != 0)
        return -1;
    struct efr_state_opts opts = {.memory_max_bytes = max_bytes, .loop = &fx->loop};
    fx->state = efr_state_create(&opts, &err);
    if (!fx->state)
        return -1;
    fx->L = efr_state_lua(fx->state);
    *slot = fx;
    return 0;
}

static int setup(void **slot)
{
    return setup_capped(slot, 0);
}

static int setup_small(void **slot)
{
    return setup_capped(slot, 4 << 20);
}

static int teardown(void **slot)
{
    struct fixture *fx = *slot;
    efr_state_destroy(fx->state);
    int left = efr_loop_close(&fx->loop);
    free(fx);
    return left;
}

/* Runs a chunk; it must return nothing or true. */
static void run(struct fixture *fx, const char *chunk)
{
    if (luaL_dostring(fx->L, chunk) != LUA_OK)
        fail_msg("%s", lua_tostring(fx->L, -1));
    lua_settop(fx->L, 0);
}

static void test_sealed(void **slot)
{
    run(*slot,
        "for _, name in ipairs{'io', 'os', 'debug', 'dofile', 'loadfile'} do\n"
        "  assert(rawget(_G, name) == nil, name)\n"
        "end\n"
        "assert(package.loadlib == nil and package.searchpath == nil)\n"
        "assert(package.path == '' and package.cpath == '' and string.dump == nil)\n"
        "assert(#package.searchers == 2)\n"
        "local ok, err = pcall(require, 'socket')\n"
        "assert(not ok and err:find('no module', 1, true), err)\n"
        "for name in pairs(package.loaded) do\n"
        "  assert(name ~= 'io' and name ~= 'os' and name ~= 'debug', name)\n"
        "end");
}

static void test_load_is_for_text(void **slot)
{
    struct fixture *fx = *slot;
    run(fx, "assert(load('return 1 + 1')() == 2)\n"
            "assert(load('return x', '=c', 't', {x = 5})() == 5)\n"
            "assert(load('return x', '=c', 'b', {x = 5})() == 5)\n" /* the mode is ours */
            "local fn, err = load('return return')\n"
            "assert(fn == nil and err:find('return', 1, true))\n"
            "fn, err = load('\\27Lua')\n"
            "assert(fn == nil and err:find('binary', 1, true), err)");
}

static void test_modules(void **slot)
{
    run(*slot, "local modules = require('efr.modules')\n"
               "local seen = {}\n"
               "for _, name in ipairs(modules.native()) do\n"
               "  seen[name] = true\n"
               "  assert(type(require(name)) == 'table', name)\n"
               "end\n"
               "assert(seen['efr.sys'] and seen['efr.fs'] and seen['efr.json'])\n"
               "local list = modules.list('efr.util.')\n"
               "for i, name in ipairs(list) do\n"
               "  assert(name:sub(1, 9) == 'efr.util.')\n"
               "  assert(i == 1 or list[i - 1] < name)\n"
               "end\n"
               "assert(#list > 0 and #modules.list('none.') == 0)\n"
               "for _, name in ipairs(modules.list()) do\n"
               "  assert(not name:find('^efr%.meta'))\n"
               "end\n"
               "assert(require('luv') and require('lpeg') and require('re'))");
}

static void test_memory_cap(void **slot)
{
    struct fixture *fx = *slot;
    assert_int_not_equal(luaL_dostring(fx->L, "local t = {}\n"
                                              "for i = 1, 1e9 do t[i] = {} end"),
                         LUA_OK);
    assert_non_null(strstr(lua_tostring(fx->L, -1), "not enough memory"));
    assert_in_range(efr_state_memory(fx->state), 1, 4 << 20);
    run(fx, "collectgarbage() collectgarbage()\n"
            "assert(#string.rep('x', 1000000) == 1000000)"); /* and it goes on */
}

/* ---- guards ---- */

static int released;

static void count_release(void *ptr)
{
    (void)ptr;
    released++;
}

static int use_guards(lua_State *L)
{
    lua_settop(L, 1);
    void **slot = luax_guard(L, count_release);
    int *fd = luax_guard_fd(L);
    *slot = fd;
    *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (lua_toboolean(L, 1))
        return luaL_error(L, "on purpose");
    lua_pushinteger(L, *fd);
    return 1;
}

static void test_guards(void **slot)
{
    struct fixture *fx = *slot;
    released = 0;
    lua_pushcfunction(fx->L, use_guards);
    assert_int_equal(lua_pcall(fx->L, 0, 1, 0), LUA_OK);
    assert_int_equal(released, 1);
    assert_int_equal(fcntl((int)lua_tointeger(fx->L, -1), F_GETFD), -1);
    lua_pushcfunction(fx->L, use_guards);
    lua_pushboolean(fx->L, 1);
    assert_int_not_equal(lua_pcall(fx->L, 1, 1, 0), LUA_OK);
    assert_int_equal(released, 2);
    lua_settop(fx->L, 0);
}

/* ---- callbacks ---- */

static char logged[4096];

/* Runs a chunk and keeps what goes to the log. */
static void run_logged(struct fixture *fx, const char *chunk)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    efr_log_setup("efr-test", ends[1], EFR_LOG_ERROR, 1);
    run(fx, chunk);
    close(ends[1]);
    efr_log_setup("efr-test", 2, EFR_LOG_ERROR, 1);
    ssize_t n = read(ends[0], logged, sizeof(logged) - 1);
    logged[n > 0 ? n : 0] = '\0';
    close(ends[0]);
}

static void test_callback_error(void **slot)
{
    run_logged(*slot, "local uv, n = require('luv'), 0\n"
                      "local timer = uv.new_timer()\n"
                      "local function deep() error('on purpose') end\n"
                      "timer:start(1, 1, function()\n"
                      "  n = n + 1\n"
                      "  if n == 1 then deep() end\n"
                      "  if n == 2 then error(setmetatable({}, {__tostring = function()\n"
                      "    return 'an object' end})) end\n"
                      "  if n == 3 then timer:close() end\n"
                      "end)\n"
                      "uv.run()\n"
                      "assert(n == 3)");
    assert_non_null(strstr(logged, "on purpose"));
    assert_non_null(strstr(logged, "deep"));
    assert_non_null(strstr(logged, "an object"));
}

/* Handles in every state at the end: the teardown checks that the loop is empty, and the
 * sanitizer that nothing is used after it was freed. */
static void test_handles_left(void **slot)
{
    run(*slot, "local uv = require('luv')\n"
               "local function never() error('called after the end') end\n"
               "uv.new_timer():start(100000, 0, never)\n"
               "kept = uv.new_timer()\n"
               "kept:start(0, 0, never)\n"
               "closing = uv.new_timer()\n"
               "closing:close(never)\n"
               "pipe = uv.new_pipe()\n"
               "uv.new_async(never):send()\n"
               "uv.fs_stat('/', never)\n"
               "signal = uv.new_signal()\n"
               "signal:start('sigusr1', never)");
}

static void test_children_left(void **slot)
{
    run(*slot, "local proc = require('efr.proc')\n"
               "local sh = {path = '/bin/true', argv = {'true'}, env = {}}\n"
               "sh.on_exit = function() error('called after the end') end\n"
               "kept = assert(proc.spawn(sh))\n"
               "assert(proc.spawn(sh))");
}

/* ---- loop ---- */

static void test_stdio(void **slot)
{
    (void)slot;
    struct efr_err err;
    int saved = fcntl(0, F_DUPFD_CLOEXEC, 10);
    close(0);
    assert_int_equal(efr_process_setup(&err), 0);
    char path[64] = "";
    assert_true(readlink("/proc/self/fd/0", path, sizeof(path) - 1) > 0);
    assert_string_equal(path, "/dev/null");
    dup2(saved, 0);
    close(saved);
}

#define WITH_STATE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STATE(test_sealed),
        WITH_STATE(test_load_is_for_text),
        WITH_STATE(test_modules),
        cmocka_unit_test_setup_teardown(test_memory_cap, setup_small, teardown),
        WITH_STATE(test_guards),
        WITH_STATE(test_callback_error),
        WITH_STATE(test_handles_left),
        WITH_STATE(test_children_left),
        cmocka_unit_test(test_stdio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
