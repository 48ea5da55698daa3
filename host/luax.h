/*
 * What every Lua binding file uses: registration of modules, argument checks, the
 * three-value error, guards for temporaries, calls from C into Lua. Raises Lua errors;
 * must not know any single module. Loop thread only.
 */
#ifndef EFR_LUAX_H
#define EFR_LUAX_H

#include <lauxlib.h>
#include <lua.h>
#include <stddef.h>
#include <stdint.h>

struct efr_err;

/* ---- modules ---- */

struct luax_module {
    const char *name; /* what require() is given: "efr.sys" */
    lua_CFunction open;
};

/* Registers a module from its own file:
 * EFR_LUA_MODULE(sys, "efr.sys", luaopen_efr_sys); */
#define EFR_LUA_MODULE(ident, modname, openf)                                            \
    static const struct luax_module luax_module_##ident = {modname, openf};              \
    static const struct luax_module *const luax_entry_##ident                            \
        __attribute__((used, section("efr_luamods"))) = &luax_module_##ident

/* Calls fn for each registered module of this program. */
void luax_each_module(void (*fn)(const struct luax_module *module, void *arg), void *arg);

/* ---- results ---- */

/* Pushes nil, text, code and returns 3. */
int luax_push_err(lua_State *L, const struct efr_err *err);

/* The same from an errno value; what is the object of the failure. */
int luax_push_errno(lua_State *L, int errnum, const char *what);

/* Sets a field of the table on top of the stack. */
void luax_set_int(lua_State *L, const char *name, lua_Integer value);

/* Pushes nil, "closed", "EFR_CLOSED" and returns 3. */
int luax_push_closed(lua_State *L);

/* Pushes true and returns 1 when rc is 0, else as luax_push_err. */
int luax_push_ok(lua_State *L, int rc, const struct efr_err *err);

/* ---- arguments ---- */

/* A string without NUL, not empty. Borrowed from the stack. */
const char *luax_check_path(lua_State *L, int arg);

/* An integer in [min, max]; raises else. The _opt form gives def for nil and none. */
lua_Integer luax_check_int(lua_State *L, int arg, lua_Integer min, lua_Integer max);
lua_Integer luax_opt_int(lua_State *L, int arg, lua_Integer def, lua_Integer min,
                         lua_Integer max);

/* A descriptor number. */
int luax_check_fd(lua_State *L, int arg);

/* Fields of an options table at stack index arg. Missing fields give the default; a wrong
 * type raises and names the field. luax_field_str gives NULL for a missing field and
 * rejects NUL; the string is borrowed from the table. */
lua_Integer luax_field_int(lua_State *L, int arg, const char *name, lua_Integer def,
                           lua_Integer max);
int luax_field_bool(lua_State *L, int arg, const char *name);
const char *luax_field_str(lua_State *L, int arg, const char *name);

/* ---- temporaries ---- */

/* Pushes a guard that calls release(ptr) when the calling C function returns or raises.
 * Set the pointer with the slot that is returned. The guard stays on the stack: push
 * results after it. */
void **luax_guard(lua_State *L, void (*release)(void *ptr));

/* The same for a descriptor; the slot starts at -1. Take it out by setting the slot to
 * -1. */
int *luax_guard_fd(lua_State *L);

/* Pushes a temporary array of size bytes that the collector frees. */
void *luax_tmp(lua_State *L, size_t size);

/* ---- calls from C into Lua ---- */

/* Takes the function at the index into the registry, and gives it back. */
int luax_ref(lua_State *L, int arg);
void luax_unref(lua_State *L, int *ref);

/* Calls the function below its nargs arguments. An error is logged with its traceback and
 * 0 values are left, so the host lives on. Returns the number of results left on the
 * stack, or -1 after an error. */
int luax_call(lua_State *L, int nargs, int nresults);

/* Pushes the function of a reference; false when the state is closing or the reference is
 * none. */
int luax_push_ref(lua_State *L, int ref);

/* The loop of the state; borrowed. luax_set_loop is for state.c only. */
struct uv_loop_s *luax_loop(lua_State *L);
void luax_set_loop(lua_State *L, struct uv_loop_s *loop);

/* The message handler that luax_call uses: message and traceback as one string. */
int luax_traceback(lua_State *L);

/* Marks the state as closing: luax_call and luax_push_ref do nothing from now on. */
void luax_set_closing(lua_State *L);

#endif
