/*
 * Module efr.proc: starting programs. One primitive a function. Loop thread only.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "err.h"
#include "luax.h"
#include "proc.h"
#include "spawn.h"
#include "util.h"

#define PROC_TYPE "efr.proc.child"
#define LIST_MAX 4096

struct child {
    struct efr_proc *proc; /* owned */
    lua_State *L;          /* main thread */
    int on_exit;           /* registry reference */
    lua_Integer pid;
};

/* ---- arguments ---- */

/* Field name of the table at argument 1 as a NULL-terminated array of C strings, in
 * memory that stays on the stack; the strings stay alive in the table. */
static char **check_list(lua_State *L, const char *name)
{
    if (lua_getfield(L, 1, name) != LUA_TTABLE)
        luaL_error(L, "field '%s': no array of strings", name);
    size_t count = lua_rawlen(L, -1);
    if (count > LIST_MAX)
        luaL_error(L, "field '%s': too many strings", name);
    char **list = luax_tmp(L, (count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TSTRING)
            luaL_error(L, "field '%s': no array of strings", name);
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        if (strlen(text) != len)
            luaL_error(L, "field '%s': NUL in string", name);
        list[i] = (char *)(uintptr_t)text; /* execve takes it so, and does not write */
        lua_pop(L, 1);
    }
    list[count] = NULL;
    lua_remove(L, -2); /* the table is still in argument 1 */
    return list;
}

/* One pair of fds on the stack top: number in the child, ours or "null". */
static struct efr_spawn_fd check_fd_pair(lua_State *L)
{
    struct efr_spawn_fd fd = {.source = EFR_SPAWN_NULL};
    if (!lua_isinteger(L, -2) || lua_tointeger(L, -2) < 0 || lua_tointeger(L, -2) >= 64)
        luaL_error(L, "field 'fds': a key is no number below 64");
    fd.target = (int)lua_tointeger(L, -2);
    if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 0)
        fd.source = (int)lua_tointeger(L, -1);
    else if (lua_type(L, -1) != LUA_TSTRING || strcmp(lua_tostring(L, -1), "null") != 0)
        luaL_error(L, "field 'fds': a value is no descriptor and not \"null\"");
    return fd;
}

static void check_fds(lua_State *L, struct efr_spawn *what)
{
    int type = lua_getfield(L, 1, "fds");
    if (type != LUA_TNIL && type != LUA_TTABLE)
        luaL_error(L, "field 'fds': no table");
    if (type == LUA_TTABLE) {
        lua_pushnil(L);
        while (lua_next(L, -2)) {
            if (what->fd_count == EFR_SPAWN_FDS_MAX)
                luaL_error(L, "field 'fds': too many");
            what->fds[what->fd_count++] = check_fd_pair(L);
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
}

/* Reads the fields that both functions share. Leaves two arrays on the stack. */
static void check_spawn(lua_State *L, struct efr_spawn *what)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    what->path = luax_field_str(L, 1, "path");
    if (!what->path || what->path[0] != '/')
        luaL_error(L, "field 'path': no absolute path");
    what->cwd = luax_field_str(L, 1, "cwd");
    what->argv = check_list(L, "argv");
    what->env = check_list(L, "env");
    what->umask_bits = -1;
}

/* ---- children ---- */

/* While a callback waits, the registry keeps the object alive. */
static void pin(lua_State *L, struct child *child)
{
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
}

static void unpin(lua_State *L, struct child *child)
{
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, child);
}

static void on_exit_call(void *arg, int code, int sig)
{
    struct child *child = arg;
    lua_State *L = child->L;
    int top = lua_gettop(L);
    if (luax_push_ref(L, child->on_exit)) {
        luax_unref(L, &child->on_exit);
        lua_pushinteger(L, code);
        lua_pushinteger(L, sig);
        (void)luax_call(L, 2, 0);
    }
    lua_settop(L, top);
    unpin(L, child);
}

static lua_State *main_thread(lua_State *L)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    lua_pop(L, 1);
    return main;
}

/* spawn(options) */
static int proc_spawn(lua_State *L)
{
    lua_settop(L, 1);
    struct efr_spawn what = {0};
    check_spawn(L, &what);
    check_fds(L, &what);
    what.umask_bits = (int)luax_field_int(L, 1, "umask", -1, 0777);
    what.setsid = luax_field_bool(L, 1, "setsid");
    what.pgrp = luax_field_bool(L, 1, "pgrp");
    struct child *child = lua_newuserdatauv(L, sizeof(*child), 0);
    *child = (struct child){.L = main_thread(L), .on_exit = LUA_NOREF};
    luaL_setmetatable(L, PROC_TYPE);
    if (lua_getfield(L, 1, "on_exit") != LUA_TNIL)
        child->on_exit = luax_ref(L, lua_gettop(L));
    lua_pop(L, 1);
    struct efr_err err;
    child->proc = efr_proc_create(luax_loop(L), &what, on_exit_call, child, &err);
    if (!child->proc) {
        luax_unref(L, &child->on_exit);
        return luax_push_err(L, &err);
    }
    child->pid = efr_proc_pid(child->proc);
    if (child->on_exit != LUA_NOREF)
        pin(L, child);
    return 1;
}

static int child_close(lua_State *L)
{
    struct child *child = luaL_checkudata(L, 1, PROC_TYPE);
    luax_unref(L, &child->on_exit);
    efr_proc_destroy(child->proc);
    child->proc = NULL;
    unpin(L, child);
    return 0;
}

/* kill(signal) */
static int child_kill(lua_State *L)
{
    lua_settop(L, 2);
    struct child *child = luaL_checkudata(L, 1, PROC_TYPE);
    int sig = (int)luax_check_int(L, 2, 0, 64);
    if (!child->proc)
        return luax_push_closed(L);
    struct efr_err err;
    return luax_push_ok(L, efr_proc_kill(child->proc, sig, &err), &err);
}

/* The field pid, and the methods. */
static int child_index(lua_State *L)
{
    const struct child *child = luaL_checkudata(L, 1, PROC_TYPE);
    const char *key = luaL_checkstring(L, 2);
    if (!strcmp(key, "pid"))
        lua_pushinteger(L, child->pid);
    else
        lua_getfield(L, lua_upvalueindex(1), key);
    return 1;
}

static int child_tostring(lua_State *L)
{
    const struct child *child = luaL_checkudata(L, 1, PROC_TYPE);
    const char *state = !child->proc                    ? "closed"
                        : efr_proc_running(child->proc) ? "running"
                                                        : "ended";
    lua_pushfstring(L, "efr.proc.child (%I, %s)", (LUAI_UACINT)child->pid, state);
    return 1;
}

/* ---- daemons ---- */

static int open_output(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                0600);
}

/* start_daemon(options) */
static int proc_start_daemon(lua_State *L)
{
    lua_settop(L, 1);
    struct efr_spawn what = {0};
    check_spawn(L, &what);
    const char *output = luax_field_str(L, 1, "output_path");
    struct efr_err err;
    int *fd = luax_guard_fd(L);
    if (output) {
        *fd = open_output(output);
        if (*fd < 0)
            return luax_push_errno(L, errno, output);
        what.fds[0] = (struct efr_spawn_fd){.target = 1, .source = *fd};
        what.fds[1] = (struct efr_spawn_fd){.target = 2, .source = *fd};
        what.fd_count = 2;
    }
    pid_t pid = efr_spawn_daemon(&what, &err);
    if (pid < 0)
        return luax_push_err(L, &err);
    lua_pushinteger(L, pid);
    return 1;
}

static void make_child_type(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"close", child_close},
        {"kill", child_kill},
        {NULL, NULL},
    };
    static const luaL_Reg meta[] = {
        {"__gc", child_close},
        {"__close", child_close},
        {"__tostring", child_tostring},
        {NULL, NULL},
    };
    luaL_newmetatable(L, PROC_TYPE);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_pushcclosure(L, child_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

static int luaopen_efr_proc(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"spawn", proc_spawn},
        {"start_daemon", proc_start_daemon},
        {NULL, NULL},
    };
    make_child_type(L);
    luaL_newlib(L, functions);
    return 1;
}

EFR_LUA_MODULE(proc, "efr.proc", luaopen_efr_proc);
