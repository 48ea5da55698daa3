/*
 * The keeper of one hidden shell (efr-sbx keep): a process that ends what the running call started
 * when efrd is killed. Owns that process and the messages to it. Must not know calls, and how the
 * keeper finds processes. Loop thread only.
 */
#ifndef EFR_KEEPER_H
#define EFR_KEEPER_H

#include <sys/types.h>
#include <uv.h>

struct efr_err;
struct keeper;

/* What the keeper watches over. Descriptors and strings are borrowed until keeper_destroy. */
struct keeper_shell {
    const char *program; /* absolute path of efr-sbx */
    int master;          /* of the shell's terminal */
    int pidfd;
    pid_t pid;
};

/* Starts it. NULL with *err set on failure. */
struct keeper *keeper_create(uv_loop_t *loop, const struct keeper_shell *shell,
                             struct efr_err *err);

/* A call begins: what the shell starts from now on ends with efrd. A keeper that has died is started
 * again. -1 with *err set: there is none, and the call must not run. */
int keeper_begin(struct keeper *keeper, struct efr_err *err);

/* The call is over: what it left behind lives on. */
void keeper_end(struct keeper *keeper);

/* The keeper does what it does when efrd is killed: what the running call started ends, then the shell
 * and its session. -1 with *err set: there is no keeper. */
int keeper_leave(struct keeper *keeper, struct efr_err *err);

/* The keeper goes and touches nothing. NULL is fine. */
void keeper_destroy(struct keeper *keeper);

#endif
