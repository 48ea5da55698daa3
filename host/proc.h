/*
 * Children on the loop: each has a pidfd, so its end is seen without SIGCHLD and a signal
 * never hits a stranger. Loop thread only.
 */
#ifndef EFR_PROC_H
#define EFR_PROC_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct efr_err;
struct efr_proc;
struct efr_spawn;

/* Called once on the loop when the child ended. signal is 0 after an exit. */
typedef void (*efr_proc_exit_fn)(void *arg, int code, int signal);

/* Starts a child and watches it. Returns NULL with *err set. */
struct efr_proc *efr_proc_create(uv_loop_t *loop, const struct efr_spawn *what,
                                 efr_proc_exit_fn on_exit, void *arg,
                                 struct efr_err *err);

/* Gives the handle up: on_exit is not called any more, and a child that still runs is
 * reaped when it ends. NULL is fine. */
void efr_proc_destroy(struct efr_proc *proc);

pid_t efr_proc_pid(const struct efr_proc *proc);
bool efr_proc_running(const struct efr_proc *proc);

/* Sends a signal. Returns -1 with *err set (ESRCH once it ended). */
int efr_proc_kill(struct efr_proc *proc, int sig, struct efr_err *err);

/* Stops watching every child of the loop; for the end of a program. */
void efr_proc_finish_all(void);

#endif
