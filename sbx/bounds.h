/* What bounds a call beside the walls: how many processes it may have, and that the kernel ends
 * it before the user's own programs when memory runs out.
 * Runs in pid 1 of the call, once its ids are mapped. */
#ifndef EFR_SBX_BOUNDS_H
#define EFR_SBX_BOUNDS_H

#include "plan.h"

/* In pid 1. Best effort: no wall rests on it, so nothing fails here. */
void bounds_for_call(const struct plan *plan);

/* Before the call: its processes go first when memory runs out. Inherited; best effort. */
void bounds_out_of_memory(void);

/* In the command alone: what the plan limits, never above what the launcher had. */
void bounds_for_command(const struct plan *plan);

#endif
