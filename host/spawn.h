/*
 * Starting programs with exactly the descriptors, environment and signal state that are
 * given, and nothing of ours. Knows no loop. Main thread only.
 */
#ifndef EFR_SPAWN_H
#define EFR_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct efr_err;

#define EFR_SPAWN_NULL (-1) /* as a source: /dev/null */
#define EFR_SPAWN_FDS_MAX 16

struct efr_spawn_fd {
    int target; /* number in the child */
    int source; /* ours, or EFR_SPAWN_NULL */
};

struct efr_spawn {
    const char *path;
    char *const *argv; /* NULL-terminated, as env */
    char *const *env;
    const char *cwd; /* NULL = ours */
    struct efr_spawn_fd fds[EFR_SPAWN_FDS_MAX];
    size_t fd_count; /* 0 to 2 are /dev/null unless named */
    int umask_bits;  /* -1 = ours */
    bool setsid;
    bool pgrp; /* a process group of its own */
};

/* Starts a child. All signals have their default action and none is blocked; descriptors
 * that are not named are closed. Returns the pid, or -1 with *err set when any step up to
 * and with execve failed (then there is no child left). */
pid_t efr_spawn(const struct efr_spawn *what, struct efr_err *err);

/* The same for a program that outlives us: no child of ours, a session of its own, umask
 * 077, soft limits of the system's first process as far as our hard limits allow. */
pid_t efr_spawn_daemon(const struct efr_spawn *what, struct efr_err *err);

#endif
