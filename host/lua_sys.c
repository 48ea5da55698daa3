/*
 * Module efr.sys: the process, its user and its environment. One primitive a function.
 * Loop thread only.
 */
#include <errno.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "log.h"
#include "luax.h"
#include "sys.h"
#include "util.h"

#define LOCK_TYPE "efr.sys.lock"
#define RANDOM_MAX_BYTES 65536
#define PID_LIMIT (1 << 30)

extern char **environ;

static int push_errno_result(lua_State *L, int rc, const char *what)
{
    if (rc != 0)
        return luax_push_errno(L, errno, what);
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- identity ---- */

static int sys_getpid(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushinteger(L, getpid());
    return 1;
}

static int sys_getppid(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushinteger(L, getppid());
    return 1;
}

static int sys_getuid(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushinteger(L, getuid());
    return 1;
}

static void set_text(lua_State *L, const char *name, const char *text)
{
    lua_pushstring(L, text ? text : "");
    lua_setfield(L, -2, name);
}

/* user_info(): name, home and shell of the user database. */
static int sys_user_info(lua_State *L)
{
    lua_settop(L, 0);
    char *space = luax_tmp(L, 16384);
    struct passwd entry;
    struct passwd *found = NULL;
    int errnum = getpwuid_r(getuid(), &entry, space, 16384, &found);
    if (!found)
        return luax_push_errno(L, errnum ? errnum : ENOENT, "user database");
    lua_createtable(L, 0, 3);
    set_text(L, "name", entry.pw_name);
    set_text(L, "home", entry.pw_dir);
    set_text(L, "shell", entry.pw_shell);
    return 1;
}

static int sys_hostname(lua_State *L)
{
    lua_settop(L, 0);
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0)
        return luax_push_errno(L, errno, "host name");
    lua_pushstring(L, name);
    return 1;
}

/* exe_path(): where this program's file lies. */
static int sys_exe_path(lua_State *L)
{
    lua_settop(L, 0);
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
    if (n < 0)
        return luax_push_errno(L, errno, "path of the program");
    lua_pushlstring(L, path, (size_t)n);
    return 1;
}

/* memfd(name, bytes): a descriptor of shared memory, filled with zeros. */
static int sys_memfd(lua_State *L)
{
    lua_settop(L, 2);
    const char *name = luax_check_path(L, 1);
    lua_Integer bytes = luax_check_int(L, 2, 1, 1 << 30);
    int *fd = luax_guard_fd(L);
    *fd = memfd_create(name, MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
        return luax_push_errno(L, errno, "shared memory");
    lua_pushinteger(L, *fd);
    *fd = -1;
    return 1;
}

/* peer_cred(fd): pid, uid and gid of the process at the other end of a Unix socket. */
static int sys_peer_cred(lua_State *L)
{
    lua_settop(L, 1);
    struct ucred cred;
    socklen_t len = sizeof(cred);
    if (getsockopt(luax_check_fd(L, 1), SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
        return luax_push_errno(L, errno, "peer of the socket");
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, cred.pid);
    lua_setfield(L, -2, "pid");
    lua_pushinteger(L, cred.uid);
    lua_setfield(L, -2, "uid");
    lua_pushinteger(L, cred.gid);
    lua_setfield(L, -2, "gid");
    return 1;
}

/* ---- environment ---- */

/* getenv(name) */
static int sys_getenv(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushstring(L, getenv(luax_check_path(L, 1)));
    return 1;
}

/* environ(): all variables; the first of two equal names counts, as for getenv. */
static int sys_environ(lua_State *L)
{
    lua_settop(L, 0);
    lua_newtable(L);
    for (char **at = environ; at && *at; at++) {
        const char *equals = strchr(*at, '=');
        if (!equals)
            continue;
        lua_pushlstring(L, *at, (size_t)(equals - *at));
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) == LUA_TNIL) {
            lua_pop(L, 1);
            lua_pushstring(L, equals + 1);
            lua_rawset(L, 1);
        } else {
            lua_pop(L, 2);
        }
    }
    return 1;
}

/* ---- time and chance ---- */

/* random(count): random bytes. */
static int sys_random(lua_State *L)
{
    lua_settop(L, 1);
    size_t count = (size_t)luax_check_int(L, 1, 0, RANDOM_MAX_BYTES);
    luaL_Buffer buf;
    char *space = luaL_buffinitsize(L, &buf, count);
    efr_random(space, count);
    luaL_pushresultsize(&buf, count);
    return 1;
}

static int sys_now_us(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushinteger(L, efr_now_us());
    return 1;
}

static int sys_mono_us(lua_State *L)
{
    lua_settop(L, 0);
    lua_pushinteger(L, efr_mono_us());
    return 1;
}

static int sys_uuid7(lua_State *L)
{
    lua_settop(L, 0);
    char text[37];
    efr_uuid7(text);
    lua_pushstring(L, text);
    return 1;
}

/* ---- locks ---- */

static int lock_close(lua_State *L)
{
    efr_close(luaL_checkudata(L, 1, LOCK_TYPE));
    return 0;
}

static int lock_tostring(lua_State *L)
{
    const int *fd = luaL_checkudata(L, 1, LOCK_TYPE);
    lua_pushfstring(L, "efr.sys.lock (%s)", *fd < 0 ? "closed" : "held");
    return 1;
}

static int take_lock(lua_State *L, int wait_ms)
{
    const char *path = luax_check_path(L, 1);
    int *fd = lua_newuserdatauv(L, sizeof(*fd), 0);
    *fd = -1;
    luaL_setmetatable(L, LOCK_TYPE);
    struct efr_err err;
    *fd = efr_lock_file(path, wait_ms, &err);
    return *fd < 0 ? luax_push_err(L, &err) : 1;
}

/* flock(path): takes the lock or fails at once. */
static int sys_flock(lua_State *L)
{
    lua_settop(L, 1);
    return take_lock(L, 0);
}

/* lock_wait(path, ms): waits for the lock; blocks the loop. */
static int sys_lock_wait(lua_State *L)
{
    lua_settop(L, 2);
    return take_lock(L, (int)luax_check_int(L, 2, 0, 600000));
}

/* ---- processes and descriptors ---- */

/* kill(pid, signal): one process; never a group, never "all". */
static int sys_kill(lua_State *L)
{
    lua_settop(L, 2);
    pid_t pid = (pid_t)luax_check_int(L, 1, 1, PID_LIMIT);
    return push_errno_result(L, kill(pid, (int)luax_check_int(L, 2, 0, 64)), "kill");
}

/* killpg(group, signal): all processes of a group. */
static int sys_killpg(lua_State *L)
{
    lua_settop(L, 2);
    pid_t group = (pid_t)luax_check_int(L, 1, 2, PID_LIMIT);
    return push_errno_result(L, killpg(group, (int)luax_check_int(L, 2, 0, 64)), "kill");
}

/* isatty(fd) */
static int sys_isatty(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushboolean(L, isatty(luax_check_fd(L, 1)));
    return 1;
}

/* ttyname(fd) */
static int sys_ttyname(lua_State *L)
{
    lua_settop(L, 1);
    char name[256];
    int errnum = ttyname_r(luax_check_fd(L, 1), name, sizeof(name));
    if (errnum != 0)
        return luax_push_errno(L, errnum, "name of the terminal");
    lua_pushstring(L, name);
    return 1;
}

/* close_fd(fd): for descriptors that came as numbers. */
static int sys_close_fd(lua_State *L)
{
    lua_settop(L, 1);
    return push_errno_result(L, close(luax_check_fd(L, 1)), "close a descriptor");
}

static int sys_set_nondumpable(lua_State *L)
{
    lua_settop(L, 0);
    return push_errno_result(L, prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "make non-dumpable");
}

/* exit(code): ends the process at once. */
static int sys_exit(lua_State *L)
{
    lua_settop(L, 1);
    exit((int)luax_check_int(L, 1, 0, 255));
}

/* ---- service manager, log, errors ---- */

/* notify(text) */
static int sys_notify(lua_State *L)
{
    lua_settop(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    struct efr_err err;
    return luax_push_ok(L, efr_notify(text, len, &err), &err);
}

/* listen_fds(): the descriptors of socket activation. Call it once. */
static int sys_listen_fds(lua_State *L)
{
    lua_settop(L, 0);
    int count = efr_listen_fds();
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushinteger(L, 3 + i);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static enum efr_log_level check_level(lua_State *L, int arg)
{
    int level = efr_log_level_of(luaL_checkstring(L, arg));
    luaL_argcheck(L, level >= 0, arg, "unknown level");
    return (enum efr_log_level)level;
}

/* log_write(level, text) */
static int sys_log_write(lua_State *L)
{
    lua_settop(L, 2);
    enum efr_log_level level = check_level(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    efr_log_text(level, text, len);
    return 0;
}

/* release_memory(): gives free heap back to the system (malloc_trim(3)). */
static int sys_release_memory(lua_State *L)
{
    lua_settop(L, 0);
    (void)malloc_trim(0);
    return 0;
}

/* log_limit(level): messages that matter less are not written. */
static int sys_log_limit(lua_State *L)
{
    lua_settop(L, 1);
    efr_log_limit(check_level(L, 1));
    return 0;
}

/* write_fd(fd, text): all bytes to a descriptor, blocking; for messages of a program that
 * ends, else luv is the means. */
static int sys_write_fd(lua_State *L)
{
    lua_settop(L, 2);
    int fd = luax_check_fd(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 2, &len);
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return luax_push_errno(L, errno, "write");
        text += n;
        len -= (size_t)n;
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* traceback(co, text): the text and the stack of a coroutine. */
static int sys_traceback(lua_State *L)
{
    lua_settop(L, 2);
    luaL_checktype(L, 1, LUA_TTHREAD);
    luaL_traceback(L, lua_tothread(L, 1), luaL_checkstring(L, 2), 0);
    return 1;
}

static const struct {
    const char *name;
    int value;
} signals[] = {
    {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},
    {"SIGKILL", SIGKILL}, {"SIGTERM", SIGTERM}, {"SIGCONT", SIGCONT},
    {"SIGSTOP", SIGSTOP}, {"SIGTSTP", SIGTSTP}, {"SIGUSR1", SIGUSR1},
    {"SIGUSR2", SIGUSR2}, {"SIGPIPE", SIGPIPE}, {"SIGWINCH", SIGWINCH},
};

static void make_lock_type(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"close", lock_close},         {"__gc", lock_close}, {"__close", lock_close},
        {"__tostring", lock_tostring}, {NULL, NULL},
    };
    luaL_newmetatable(L, LOCK_TYPE);
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

static int luaopen_efr_sys(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"close_fd", sys_close_fd},
        {"environ", sys_environ},
        {"exe_path", sys_exe_path},
        {"exit", sys_exit},
        {"flock", sys_flock},
        {"getenv", sys_getenv},
        {"getpid", sys_getpid},
        {"getppid", sys_getppid},
        {"getuid", sys_getuid},
        {"hostname", sys_hostname},
        {"isatty", sys_isatty},
        {"kill", sys_kill},
        {"killpg", sys_killpg},
        {"listen_fds", sys_listen_fds},
        {"lock_wait", sys_lock_wait},
        {"log_limit", sys_log_limit},
        {"log_write", sys_log_write},
        {"memfd", sys_memfd},
        {"mono_us", sys_mono_us},
        {"notify", sys_notify},
        {"now_us", sys_now_us},
        {"peer_cred", sys_peer_cred},
        {"random", sys_random},
        {"release_memory", sys_release_memory},
        {"set_nondumpable", sys_set_nondumpable},
        {"traceback", sys_traceback},
        {"ttyname", sys_ttyname},
        {"user_info", sys_user_info},
        {"uuid7", sys_uuid7},
        {"write_fd", sys_write_fd},
        {NULL, NULL},
    };
    make_lock_type(L);
    luaL_newlib(L, functions);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        lua_pushinteger(L, signals[i].value);
        lua_setfield(L, -2, signals[i].name);
    }
    lua_pushliteral(L, EFR_VERSION);
    lua_setfield(L, -2, "VERSION");
    return 1;
}

EFR_LUA_MODULE(sys, "efr.sys", luaopen_efr_sys);
