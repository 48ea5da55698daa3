/*
 * Module efr.pty: one program on a pseudo-terminal. One primitive a function; what a
 * terminal's bytes mean is decided in lua/efr/shell. Loop thread only.
 */
#include <luv/luv.h>
#include <signal.h>
#include <string.h>

#include "err.h"
#include "luax.h"
#include "pty.h"

#define PTY_MT "efr.pty"

struct lpty {
    lua_State *L; /* the main state */
    struct pty *pty;
    int on_data, on_exit;
};

static struct lpty *check_pty(lua_State *L)
{
    return luaL_checkudata(L, 1, PTY_MT);
}

static void call_data(void *user, const char *bytes, size_t len_bytes)
{
    struct lpty *self = user;
    if (!luax_push_ref(self->L, self->on_data))
        return;
    lua_pushlstring(self->L, bytes, len_bytes); // fn bytes
    (void)luax_call(self->L, 1, 0);
}

static void call_exit(void *user, int exit_code, int term_signal)
{
    struct lpty *self = user;
    if (!luax_push_ref(self->L, self->on_exit))
        return;
    lua_pushinteger(self->L, exit_code);
    lua_pushinteger(self->L, term_signal); // fn code signal
    (void)luax_call(self->L, 2, 0);
}

/* A NULL-terminated array of the strings of field name; pushes its memory. */
static char **check_strings(lua_State *L, const char *name)
{
    lua_getfield(L, 1, name);
    luaL_argcheck(L, lua_istable(L, -1), 1, name);
    lua_Integer count = luaL_len(L, -1);
    luaL_argcheck(L, count >= 0 && count < 65536, 1, name);
    char **strings = luax_tmp(L, ((size_t)count + 1) * sizeof(*strings)); // list memory
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, -2, i + 1);
        size_t len;
        const char *text =
            lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
        luaL_argcheck(L, text && strlen(text) == len, 1, name);
        strings[i] = (char *)(uintptr_t)text;
        lua_pop(L, 1);
    }
    strings[count] = NULL;
    return strings;
}

/* open{path, argv, env, cwd, keeper, cols, rows} -> pty */
static int pty_open_(lua_State *L)
{
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    struct pty_spawn spawn = {
        .path = luax_field_str(L, 1, "path"),
        .cwd = luax_field_str(L, 1, "cwd"),
        .keeper = luax_field_str(L, 1, "keeper"),
        .cols = (unsigned short)luax_field_int(L, 1, "cols", 80, 1000),
        .rows = (unsigned short)luax_field_int(L, 1, "rows", 24, 1000),
    };
    luaL_argcheck(L, spawn.path && spawn.path[0] == '/', 1, "path");
    luaL_argcheck(L, spawn.cwd && spawn.cwd[0] == '/', 1, "cwd");
    luaL_argcheck(L, !spawn.keeper || spawn.keeper[0] == '/', 1, "keeper");
    spawn.argv = check_strings(L, "argv");
    spawn.envp = check_strings(L, "env");
    struct lpty *self = lua_newuserdatauv(L, sizeof(*self), 0);
    *self = (struct lpty){.on_data = LUA_NOREF, .on_exit = LUA_NOREF};
    luaL_setmetatable(L, PTY_MT); // opts ... self
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    self->L = lua_tothread(L, -1);
    lua_pop(L, 1);
    struct pty_events events = {.data = call_data, .exit = call_exit, .user = self};
    struct efr_err err;
    self->pty = pty_create(luv_loop(L), &spawn, &events, &err);
    return self->pty ? 1 : luax_push_err(L, &err);
}

/* pty:pid() */
static int pty_pid_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    lua_pushinteger(L, pty_pid(self->pty));
    return 1;
}

/* pty:begin_call() */
static int pty_begin_call_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_begin_call(self->pty, &err), &err);
}

/* pty:leave_call() */
static int pty_leave_call_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_leave_call(self->pty, &err), &err);
}

/* pty:end_call() */
static int pty_end_call_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    pty_end_call(self->pty);
    lua_pushboolean(L, 1);
    return 1;
}

static int set_callback(lua_State *L, int *slot)
{
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luax_unref(L, slot);
    *slot = luax_ref(L, 2);
    lua_pushboolean(L, 1);
    return 1;
}

/* pty:on_data(fn(bytes)) */
static int pty_on_data(lua_State *L)
{
    lua_settop(L, 2);
    struct lpty *self = check_pty(L);
    return self->pty ? set_callback(L, &self->on_data) : luax_push_closed(L);
}

/* pty:on_exit(fn(code, signal)) */
static int pty_on_exit(lua_State *L)
{
    lua_settop(L, 2);
    struct lpty *self = check_pty(L);
    return self->pty ? set_callback(L, &self->on_exit) : luax_push_closed(L);
}

/* pty:write(bytes) */
static int pty_write_(lua_State *L)
{
    lua_settop(L, 2);
    struct lpty *self = check_pty(L);
    size_t len;
    const char *bytes = luaL_checklstring(L, 2, &len);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_write(self->pty, bytes, len, &err), &err);
}

/* pty:write_keys(bytes) -> count */
static int pty_write_keys_(lua_State *L)
{
    lua_settop(L, 2);
    struct lpty *self = check_pty(L);
    size_t len;
    const char *bytes = luaL_checklstring(L, 2, &len);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    ssize_t count = pty_write_keys(self->pty, bytes, len, &err);
    if (count < 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, (lua_Integer)count);
    return 1;
}

/* pty:pause(paused) */
static int pty_pause_(lua_State *L)
{
    lua_settop(L, 2);
    struct lpty *self = check_pty(L);
    int paused = lua_toboolean(L, 2);
    if (!self->pty)
        return luax_push_closed(L);
    pty_pause(self->pty, paused);
    lua_pushboolean(L, 1);
    return 1;
}

/* pty:restore() */
static int pty_restore_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_restore(self->pty, &err), &err);
}

/* pty:resume_output() */
static int pty_resume_output_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_resume_output(self->pty, &err), &err);
}

/* pty:foreground() -> pgrp */
static int pty_foreground_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    pid_t group = pty_foreground(self->pty, &err);
    if (group < 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, group);
    return 1;
}

/* pty:modes() -> {echo, canonical} */
static int pty_modes_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    struct pty_modes modes;
    if (pty_get_modes(self->pty, &modes, &err) < 0)
        return luax_push_err(L, &err);
    lua_createtable(L, 0, 2);
    lua_pushboolean(L, modes.echo);
    lua_setfield(L, -2, "echo");
    lua_pushboolean(L, modes.canonical);
    lua_setfield(L, -2, "canonical");
    return 1;
}

/* pty:resize(cols, rows) */
static int pty_resize_(lua_State *L)
{
    lua_settop(L, 3);
    struct lpty *self = check_pty(L);
    unsigned short cols = (unsigned short)luax_check_int(L, 2, 1, 1000);
    unsigned short rows = (unsigned short)luax_check_int(L, 3, 1, 1000);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_resize(self->pty, cols, rows, &err), &err);
}

/* pty:interrupt() */
static int pty_interrupt_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_interrupt(self->pty, &err), &err);
}

/* pty:kill(signum) */
static int pty_kill_(lua_State *L)
{
    lua_settop(L, 2);
    struct lpty *self = check_pty(L);
    int signum = (int)luax_check_int(L, 2, 1, NSIG - 1);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, pty_kill(self->pty, signum, &err), &err);
}

/* pty:kill_session(signum, with_leader) -> count */
static int pty_kill_session_(lua_State *L)
{
    lua_settop(L, 3);
    struct lpty *self = check_pty(L);
    int signum = (int)luax_check_int(L, 2, 0, NSIG - 1);
    if (!self->pty)
        return luax_push_closed(L);
    struct efr_err err;
    int count = pty_kill_session(self->pty, signum, lua_toboolean(L, 3), &err);
    if (count < 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, count);
    return 1;
}

/* pty:close() hangs up; no callback comes any more. */
static int pty_close_(lua_State *L)
{
    lua_settop(L, 1);
    struct lpty *self = check_pty(L);
    luax_unref(L, &self->on_data);
    luax_unref(L, &self->on_exit);
    pty_destroy(self->pty);
    self->pty = NULL;
    lua_pushboolean(L, 1);
    return 1;
}

static int pty_tostring(lua_State *L)
{
    struct lpty *self = check_pty(L);
    if (self->pty)
        lua_pushfstring(L, "efr.pty (pid %d)", (int)pty_pid(self->pty));
    else
        lua_pushliteral(L, "efr.pty (closed)");
    return 1;
}

static const luaL_Reg methods[] = {
    {"begin_call", pty_begin_call_},
    {"close", pty_close_},
    {"end_call", pty_end_call_},
    {"foreground", pty_foreground_},
    {"interrupt", pty_interrupt_},
    {"kill", pty_kill_},
    {"kill_session", pty_kill_session_},
    {"leave_call", pty_leave_call_},
    {"modes", pty_modes_},
    {"on_data", pty_on_data},
    {"on_exit", pty_on_exit},
    {"pause", pty_pause_},
    {"pid", pty_pid_},
    {"resize", pty_resize_},
    {"restore", pty_restore_},
    {"resume_output", pty_resume_output_},
    {"write", pty_write_},
    {"write_keys", pty_write_keys_},
    {NULL, NULL},
};

static const luaL_Reg meta[] = {
    {"__close", pty_close_},
    {"__gc", pty_close_},
    {"__tostring", pty_tostring},
    {NULL, NULL},
};

static const luaL_Reg functions[] = {
    {"open", pty_open_},
    {NULL, NULL},
};

static int luaopen_efr_pty(lua_State *L)
{
    luaL_newmetatable(L, PTY_MT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(pty, "efr.pty", luaopen_efr_pty);
