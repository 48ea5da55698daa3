/* Overlays on the caches of tools: programs write there, the real directory does not change.
 * Owns: layers (where the writes go), their lock, and the overlay file system. Must not know:
 * which directories are caches or whose layer is kept (the plan says). A layer of this call
 * lies in memory, or, where the kernel's tmpfs has no user attributes (before Linux 6.6), on
 * disk. overlays_lock runs in the launcher; the rest in pid 1 of the call, before Landlock. */
#ifndef EFR_SBX_OVERLAY_H
#define EFR_SBX_OVERLAY_H

#include "plan.h"

/* An overlay that was made. */
struct overlay_made {
    const char *path; /* borrowed from the plan */
    int lower;        /* O_PATH */
    int upper;        /* O_PATH */
};

struct overlays {
    const struct plan *plan; /* borrowed */
    int base;                /* O_PATH of LAYERS, -1 without overlays */
    int pool;                /* borrowed; the call's tmpfs */
    int disk;                /* LAYERS, writable, -1 until it is needed */
    int memory; /* where layers of this call are made, -1 until it is needed */
    struct overlay_made *made; /* owned; for what looks at the layers later */
    const char *proc;          /* name of the directory of our descriptors */
    unsigned int made_count;
    unsigned int count; /* of those */
};

/* Takes the lock of the kept layers, waiting for at most 5 s. Returns a descriptor that has to
 * stay open until the overlays are gone, or -1 when the plan keeps none. Dies. */
int overlays_lock(const struct plan *plan);

/* Opens what the host's view is needed for. base: where LAYERS is seen, or NULL without
 * overlays. Dies. */
void overlays_open(struct overlays *overlays, const struct plan *plan, const char *base);

/* Makes the overlay of one entry over lower (O_PATH, a directory). pool: O_PATH of the call's
 * tmpfs. Returns a detached mount, or -1 when the host has mounts inside the directory, which
 * no overlay may hide: it then stays read-only. Dies on any other failure. */
int overlays_make(struct overlays *overlays, int pool, const struct plan_mount *entry,
                  int lower);

#endif
