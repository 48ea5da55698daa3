/* The bubblewrap backend: one call whose namespaces and mounts are made by bubblewrap, from the
 * same plan.
 * Owns: which bubblewrap may be run, its start and what it says. Must not know: which options a
 * plan becomes (bwrap_args.h). Runs in the launcher. */
#ifndef EFR_SBX_BWRAP_H
#define EFR_SBX_BWRAP_H

#include "cgroup.h"
#include "init.h"
#include "policy.h"

#include <stddef.h>
#include <sys/types.h>

struct bwrap {
    pid_t pid;                    /* of bubblewrap; the call ends before it does */
    const struct cgroup *cgroup;  /* of the call; borrowed, given by the caller */
    int errors;                   /* what it writes to standard error */
    int status;                   /* what it reports of the call */
    struct policy policy;         /* with the entries of the plan */
    struct policy_entry *entries; /* owned */
};

/* Starts the call of the plan. init: as for the native backend; plan_bytes (plan_len of them):
 * what the plan was read from; lock_fd: held while pid 1 lives, or -1; lifeline: the launcher's end
 * of it, which the new processes must not hold. Dies. */
void bwrap_start(struct bwrap *bwrap, const struct init_args *init,
                 const char *plan_bytes, size_t plan_len, int lock_fd, int lifeline);

/* The pid of the call's pid 1, once it has said that it waits. Dies. */
pid_t bwrap_init_pid(const struct bwrap *bwrap);

/* What bubblewrap said when it ended before pid 1 came up, in text. */
void bwrap_explain(const struct bwrap *bwrap, char *text, size_t text_bytes);

#endif
