/* Role `screen` of efr-worker: the screen of one terminal, and throw-away screens for replays. Owns: what its frames
 * mean (docs/protocol.md). Must not know what a shell is. One thread. */
#ifndef EFR_WORKER_SCREEN_H
#define EFR_WORKER_SCREEN_H

#include <stddef.h>

extern const int screen_syscalls[];
extern const size_t screen_syscall_count;

/* Serves the frames of descriptor 0 until it ends; returns the exit code. */
int screen_run(void);

#endif
