/* The call's /dev. Owns: the list of nodes. Runs in pid 1 of the call, before Landlock. */
#ifndef EFR_SBX_MOUNT_DEV_H
#define EFR_SBX_MOUNT_DEV_H

#include "plan.h"

#define DEV_NODES 6

struct dev_sources {
    int node[DEV_NODES];             /* detached clones of the host's nodes */
    int console;                     /* clone of the terminal, or -1 */
    const struct plan_list *granted; /* borrowed; paths of devices of this call */
    int *granted_fds;                /* owned; their clones */
};

/* Clones the host's device nodes while /dev is still the host's. terminal may be NULL. A granted
 * path that is no device dies. */
struct dev_sources dev_open_sources(const char *terminal,
                                    const struct plan_list *granted);

/* Fills pool/dev and attaches it on /dev, with pts and shm. Takes the sources. */
void dev_build(int pool, struct dev_sources *sources);

#endif
