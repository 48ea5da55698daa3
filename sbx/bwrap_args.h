/* A plan as the arguments of bubblewrap.
 * Owns: which options a plan becomes, and what each entry has to be in the call. Must not know:
 * how bubblewrap is started. Every source is a descriptor, opened here with no symbolic link on the
 * path. Bubblewrap finds the places by their paths, so pid 1 looks at each again (inner.h).
 * Runs in the launcher. */
#ifndef EFR_SBX_BWRAP_ARGS_H
#define EFR_SBX_BWRAP_ARGS_H

#include "plan.h"
#include "policy.h"

/* Where the conversation's directory lies until the overlays are made, below the call's runtime
 * directory. */
#define BWRAP_STAGING "efr-layers"

struct bwrap_args {
    char *bytes; /* owned; fields that end with a NUL byte */
    size_t used;
    int *fds; /* owned, and the descriptors: what bubblewrap has to inherit */
    size_t fd_count;
    struct policy_entry *entries; /* owned; one for each mount of the plan */
    bool overlays;                /* some entry is one */
};

/* Makes the arguments. terminal may be NULL; status_fd: where bubblewrap reports. Dies on any
 * refusal. */
void bwrap_args_build(struct bwrap_args *args, const struct plan *plan,
                      const char *terminal, int status_fd);

/* The empty string, and every descriptor closed. */
void bwrap_args_finish(struct bwrap_args *args);

#endif
