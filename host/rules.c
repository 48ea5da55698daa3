/*
 * The locked room of the user's Lua rules: see rules.h. One thread; nothing here outlives
 * the process.
 *
 * The user's code is hostile for our purpose: it may loop, fill the memory or crash. So no
 * promise rests on this process. Whoever asks it waits for a limited time, kills it, and
 * takes no answer as the strict one. The lock sees to it that a process that was taken over
 * gains nothing either.
 */
#include "rules.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "confine.h"
#include "embed.h"
#include "luax.h"

#define EXIT_USAGE 2
#define EXIT_NOT_CONFINED 3
#define EXIT_BUG 70 /* EX_SOFTWARE of sysexits(3) */

#define MEMORY_MAX_BYTES ((uint64_t)64 << 20)
#define MESSAGE_MAX_BYTES ((size_t)4 << 20)
#define READ_BYTES ((size_t)64 << 10)

/* A process whose parent vanished in a way that the kernel did not report ends itself. */
#define REQUEST_MAX_S 30

/* A message that takes more processor time than this also notes the line that runs, once
 * every so many instructions. Before that it costs nothing. */
#define SLOW_US 10000
#define NOTE_EVERY 1000

int luaopen_lpeg(lua_State *L); /* Debian's lua-lpeg-dev has no header */

/* What Lua with malloc needs to run, and to talk. */
static const int syscalls[] = {
    SYS_read,      SYS_write,         SYS_brk,          SYS_mmap,
    SYS_munmap,    SYS_mremap,        SYS_madvise,      SYS_mprotect,
    SYS_setitimer, SYS_clock_gettime, SYS_rt_sigreturn, SYS_restart_syscall,
    SYS_exit,      SYS_exit_group,    SYS_futex,
};

static char *page;        /* shared with efrd */
static lua_State *main_L; /* for the signal handler */
static int locked;        /* from then on no file can be read */

/* ---- notes for efrd ---- */

static void note(const char *text, size_t len)
{
    if (len > EFR_RULES_PAGE_BYTES - 1)
        len = EFR_RULES_PAGE_BYTES - 1;
    memcpy(page, text, len);
    page[len] = '\0';
}

/* Our own files are "@efr/...", or lie in the source tree of a development build. */
static int is_user_code(const lua_Debug *ar)
{
    return ar->currentline > 0 && ar->source[0] == '@' &&
           strncmp(ar->source, "@efr/", 5) != 0 && !strstr(ar->source, "/lua/efr/");
}

/* The innermost function of the user on the stack. */
static int find_user_code(lua_State *L, int level, lua_Debug *ar)
{
    for (; lua_getstack(L, level, ar); level++) {
        (void)lua_getinfo(L, "Sl", ar);
        if (is_user_code(ar))
            return 1;
    }
    return 0;
}

static void note_line(lua_State *L, lua_Debug *ar)
{
    char text[LUA_IDSIZE + 32];
    if (!find_user_code(L, 0, ar))
        return;
    int len = snprintf(text, sizeof(text), "%s:%d", ar->short_src, ar->currentline);
    note(text, (size_t)len);
}

/* SIGPROF: this message is slow. lua_sethook is made for signal handlers. A coroutine that
 * runs already has a hook of its own, so there the note of the entry stays. */
static void on_slow(int sig)
{
    (void)sig;
    lua_sethook(main_L, note_line, LUA_MASKCOUNT, NOTE_EVERY);
}

/* note(text): what the process is about to run. */
static int room_note(lua_State *L)
{
    lua_settop(L, 1);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    note(text, len);
    return 0;
}

/* where(level): file and line of the innermost function of the user, from level on. */
static int room_where(lua_State *L)
{
    lua_settop(L, 1);
    lua_Debug ar;
    int level = (int)luax_check_int(L, 1, 0, 1000);
    if (!find_user_code(L, level, &ar))
        return 0;
    lua_pushstring(L, ar.short_src);
    lua_pushinteger(L, ar.currentline);
    return 2;
}

/* compile(text, name, env): text only, since bytecode can break the interpreter. */
static int room_compile(lua_State *L)
{
    lua_settop(L, 3);
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    const char *name = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    if (luaL_loadbufferx(L, text, len, name, "t") != LUA_OK) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    lua_pushvalue(L, 3);
    if (!lua_setupvalue(L, -2, 1))
        lua_pop(L, 1);
    return 1;
}

/* ---- the state ---- */

static int load_entry(lua_State *L, const struct efr_embed *entry)
{
    char path[1024];
    if (!locked && efr_embed_tree_path(entry, path, sizeof(path)))
        return luaL_loadfilex(L, path, "t");
    lua_pushfstring(L, "@%s", entry->path);
    size_t len = (size_t)(entry->end - entry->data);
    int rc = luaL_loadbufferx(L, entry->data, len, lua_tostring(L, -1), "bt");
    lua_remove(L, -2);
    return rc;
}

/* require(name) for our own files: the state has no package library. */
static int require_embedded(lua_State *L)
{
    lua_settop(L, 1);
    const char *name = luaL_checkstring(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); // name loaded
    if (lua_getfield(L, -1, name) != LUA_TNIL)
        return 1;
    lua_pop(L, 1);
    const struct efr_embed *entry = efr_embed_find(name, 0);
    if (!entry || entry->kind != EFR_EMBED_LUA)
        return luaL_error(L, "no module '%s' in this program", name);
    if (load_entry(L, entry) != LUA_OK)
        return luaL_error(L, "load module '%s': %s", name, lua_tostring(L, -1));
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

static void open_json(const struct luax_module *module, void *arg)
{
    if (!strcmp(module->name, "efr.json"))
        luaL_requiref(arg, module->name, module->open, 0);
}

static void open_libraries(lua_State *L)
{
    static const luaL_Reg libs[] = {
        {LUA_GNAME, luaopen_base},       {LUA_COLIBNAME, luaopen_coroutine},
        {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
        {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8},
    };
    for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]); i++) {
        luaL_requiref(L, libs[i].name, libs[i].func, 1);
        lua_pop(L, 1);
    }
    luaL_requiref(L, "lpeg", luaopen_lpeg, 0);
    lua_pop(L, 1);
    static const char *const gone[] = {"dofile", "loadfile", "load"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        lua_pushnil(L);
        lua_setglobal(L, gone[i]);
    }
    lua_getglobal(L, LUA_STRLIBNAME); // string
    lua_pushnil(L);
    lua_setfield(L, -2, "dump");
    lua_pop(L, 1);
}

/* Leaves the function that answers one message, room.start(native), on the stack. */
static int set_up(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"compile", room_compile},
        {"note", room_note},
        {"where", room_where},
        {NULL, NULL},
    };
    open_libraries(L);
    luax_each_module(open_json, L);
    lua_pushcfunction(L, require_embedded);
    lua_setglobal(L, "require");
    lua_pushcfunction(L, require_embedded);
    lua_pushliteral(L, "efr.room");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "start");
    luaL_newlib(L, functions);
    lua_call(L, 1, 1);
    return 1;
}

/* ---- messages ---- */

struct inbox {
    char *data;
    size_t len;
    size_t size;
};

/* Reads more bytes. Returns 0 at the end of the socket and when a message is too long. */
static int read_more(struct inbox *in)
{
    if (in->size - in->len < READ_BYTES) {
        if (in->size > MESSAGE_MAX_BYTES)
            return 0;
        size_t size = in->size ? in->size * 2 : READ_BYTES * 2;
        char *data = realloc(in->data, size);
        if (!data)
            return 0;
        in->data = data;
        in->size = size;
    }
    ssize_t n;
    do
        n = read(EFR_RULES_SOCKET_FD, in->data + in->len, in->size - in->len);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    in->len += (size_t)n;
    return 1;
}

static int write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(EFR_RULES_SOCKET_FD, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        data += n;
        len -= (size_t)n;
    }
    return 1;
}

static void start_clocks(void)
{
    struct itimerval limit = {.it_value = {.tv_sec = REQUEST_MAX_S}};
    struct itimerval slow = {.it_value = {.tv_usec = SLOW_US}};
    (void)setitimer(ITIMER_REAL, &limit, NULL); /* SIGALRM ends the process */
    (void)setitimer(ITIMER_PROF, &slow, NULL);
}

static void stop_clocks(void)
{
    struct itimerval none = {0};
    (void)setitimer(ITIMER_PROF, &none, NULL);
    (void)setitimer(ITIMER_REAL, &none, NULL);
    lua_sethook(main_L, NULL, 0, 0);
}

/* Gives one message to Lua and sends what it answers. Returns 0 when that failed: an answer
 * that is none is the end of the process, so that nobody waits for it. */
static int answer(lua_State *L, const char *data, size_t len)
{
    start_clocks();
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, data, len);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK || !lua_isstring(L, -1))
        return 0;
    size_t out_len;
    const char *out = lua_tolstring(L, -1, &out_len);
    int sent = write_all(out, out_len) && write_all("\n", 1);
    lua_settop(L, 1);
    stop_clocks();
    return sent;
}

static int serve(lua_State *L)
{
    struct inbox in = {0};
    size_t seen = 0;
    int alive = 1;
    while (alive && read_more(&in)) {
        char *end;
        while (alive && (end = memchr(in.data + seen, '\n', in.len - seen))) {
            size_t len = (size_t)(end - in.data);
            alive = answer(L, in.data, len);
            in.len -= len + 1;
            memmove(in.data, end + 1, in.len);
            seen = 0;
        }
        seen = in.len;
    }
    free(in.data);
    return alive ? 0 : EXIT_BUG;
}

/* ---- start ---- */

static int map_page(void)
{
    page = mmap(NULL, EFR_RULES_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                EFR_RULES_PAGE_FD, 0);
    if (page != MAP_FAILED)
        return 0;
    page = NULL;
    return -1;
}

int efr_rules_lock(char *message, size_t message_bytes)
{
    static const int keep_fds[] = {EFR_RULES_SOCKET_FD};
    struct efr_confine confine = {
        .syscalls = syscalls,
        .syscall_count = sizeof(syscalls) / sizeof(syscalls[0]),
        .keep_fds = keep_fds,
        .keep_fd_count = 1,
        .deny_errno = EPERM,
#ifndef EFR_SANITIZED /* a sanitizer maps far more than that */
        .memory_bytes = MEMORY_MAX_BYTES,
#endif
    };
    locked = 1;
    return efr_confine(&confine, message, message_bytes);
}

int efr_rules_run(void)
{
    int type = 0;
    socklen_t len = sizeof(type);
    if (getsockopt(EFR_RULES_SOCKET_FD, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
        map_page() != 0) {
        (void)fprintf(stderr, "efrd: the role rules is started by efrd and efr only\n");
        return EXIT_USAGE;
    }
    /* The user's code comes over the socket, so a parent that is gone already shows there. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    lua_State *L = luaL_newstate();
    if (!L)
        return EXIT_BUG;
    main_L = L;
    struct sigaction slow = {.sa_handler = on_slow, .sa_flags = SA_RESTART};
    (void)sigaction(SIGPROF, &slow, NULL);
    lua_pushcfunction(L, set_up);
    if (lua_pcall(L, 0, 1, 0) != LUA_OK) {
        (void)fprintf(stderr, "efrd: rules: %s\n", lua_tostring(L, -1));
        return EXIT_BUG;
    }
    char message[256] = "";
    if (efr_rules_lock(message, sizeof(message)) != 0) {
        (void)fprintf(stderr, "efrd: rules: cannot lock itself up: %s\n", message);
        return EXIT_NOT_CONFINED;
    }
    return serve(L);
}
