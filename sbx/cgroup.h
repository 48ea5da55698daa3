/* The cgroup (version 2) of one call: limits that all its processes share.
 * Owns: its directory, from mkdir to rmdir, and the files in it. Must not know: who delegated the
 * directory above it, how the call is started. Runs in the launcher. */
#ifndef EFR_SBX_CGROUP_H
#define EFR_SBX_CGROUP_H

#include "plan.h"

#include <stdbool.h>

struct cgroup {
    const char *name; /* borrowed from the plan; NULL: the call has none */
    int parent;
    int dir; /* what the first process is started in, or -1 */
};

/* Makes the cgroup that the plan asks for, with its limits; without one nothing happens. Dies. */
void cgroup_make(struct cgroup *cgroup, const struct plan *plan);

/* Moves the calling process into it, if the kernel lets it from here; else says so. Dies. */
void cgroup_enter(const struct cgroup *cgroup);

/* Whether the kernel ended processes because the limit of memory was reached. */
bool cgroup_out_of_memory(const struct cgroup *cgroup);

/* Closes it and leaves it as it is: in the process that it is for. */
void cgroup_forget(struct cgroup *cgroup);

/* Ends what is left in it and removes it. Safe twice, and without one. */
void cgroup_remove(struct cgroup *cgroup);

#endif
