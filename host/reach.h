/*
 * Whether places of the file system answer: a look at each in a process of its own, since a dead
 * network or FUSE mount holds whoever looks, and only a process can be ended then. Knows no
 * policy. Loop thread.
 */
#ifndef EFR_REACH_H
#define EFR_REACH_H

#include <stddef.h>

struct efr_err;

/* Looks at each of the paths, in their order, for at most so many seconds; NUL-separated,
 * len_bytes with the last NUL. Returns a socket on which a byte arrives after each that answered,
 * also with an error, and then the end; or -1 with *err set. The caller closes it; the process ends
 * by itself and is nobody's child. */
int efr_reach_ask(const char *paths, size_t len_bytes, unsigned int seconds,
                  struct efr_err *err);

#endif
