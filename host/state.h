/*
 * The sealed Lua state of a program: allocator with a cap, no io, os, debug or loaders
 * from disk, modules only from the program itself, luv on our loop with our callback
 * guard. Knows no policy. Loop thread only.
 */
#ifndef EFR_STATE_H
#define EFR_STATE_H

#include <lua.h>
#include <stddef.h>
#include <uv.h>

struct efr_err;
struct efr_state;

struct efr_state_opts {
    size_t memory_max_bytes; /* 0 = no cap */
    uv_loop_t *loop;         /* borrowed; must outlive the state */
};

/* Makes a state. Returns NULL with *err set. */
struct efr_state *efr_state_create(const struct efr_state_opts *opts,
                                   struct efr_err *err);

/* Closes every handle that Lua left on the loop, runs the loop until they are gone, and
 * frees the state. */
void efr_state_destroy(struct efr_state *state);

/* The Lua state itself; borrowed. */
lua_State *efr_state_lua(struct efr_state *state);

/* Bytes that Lua holds now. */
size_t efr_state_memory(const struct efr_state *state);

/* Calls require(module)[function](args...) with argv as one array argument and the
 * constant role as the first. Returns its integer result (an exit code), or -1 with *err
 * set when it raised. */
int efr_state_run(struct efr_state *state, const char *role, char **argv,
                  struct efr_err *err);

#endif
