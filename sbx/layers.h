/* The overlays of a call that bubblewrap built, made from outside.
 * Owns: the process that enters the call's user and mount namespace, since nothing in that call has a
 * capability. Must not know: where the writes go (overlay.h). Started by the launcher while
 * pid 1 waits; lives until the call has ended. */
#ifndef EFR_SBX_LAYERS_H
#define EFR_SBX_LAYERS_H

#include "policy.h"

#include <stdint.h>
#include <sys/types.h>

struct layers {
    pid_t pid;   /* -1: none */
    int control; /* its end tells the process that the call is over */
    int lifeline; /* set by the caller: the launcher's end, which the process must not hold */
};

/* Makes the overlays in the call whose pid 1 is init and whose mount namespace has this number,
 * and moves what lies on them. deletes_fd: where layers_finish has the deletes listed. Dies. */
void layers_start(struct layers *layers, const struct policy *policy, pid_t init,
                  uint64_t mount_namespace, int deletes_fd);

/* To be called when no process of the call is left: lists what was deleted, and waits. */
void layers_finish(struct layers *layers);

#endif
