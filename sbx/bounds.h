/* What bounds a call beside the walls: how many processes it may have, and that the kernel ends
 * it before the user's own programs when memory runs out.
 * Must not know: the plan. Runs in pid 1 of the call, once its ids are mapped. */
#ifndef EFR_SBX_BOUNDS_H
#define EFR_SBX_BOUNDS_H

#include <sys/types.h>

/* Best effort: no wall rests on it, so nothing fails here. */
void bounds_for_call(uid_t uid);

#endif
