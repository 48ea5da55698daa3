/* What a call deleted from caches: a list of names, copied unread.
 * Owns: the walk through the layers after everything of the call has ended, its limits and the
 * bytes of the list. Must not know: what becomes of them. Runs in pid 1 of the call, confined. */
#ifndef EFR_SBX_DELETES_H
#define EFR_SBX_DELETES_H

#include "overlay.h"

#define DELETES_MAX_BYTES 393216 /* of the whole list */

/* Writes the list of docs/protocol.md ("Deletes") to fd, best effort: a list without an end does
 * not count. Nothing is written when nothing was deleted. */
void deletes_write(const struct overlays *overlays, int fd);

#endif
