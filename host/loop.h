/*
 * The event loop of a program and what a process has to set up before it. Knows no Lua.
 * Main thread only.
 */
#ifndef EFR_LOOP_H
#define EFR_LOOP_H

#include <uv.h>

struct efr_err;

/* Opens /dev/null for each of the descriptors 0 to 2 that is closed, so that no file of
 * ours gets their numbers, and ignores SIGPIPE. Returns -1 when /dev/null is missing. */
int efr_process_setup(struct efr_err *err);

int efr_loop_open(uv_loop_t *loop, struct efr_err *err);

/* Closes what is still open on the loop and the loop. Returns how many handles were still
 * open: a number above 0 is a bug of their owner. */
int efr_loop_close(uv_loop_t *loop);

#endif
