/* Floors for the directories of the launcher's own PATH, which may differ from the daemon's.
 * Must not know: how a floor is mounted. Runs in the launcher, before the call's namespaces. */
#ifndef EFR_SBX_PATH_FLOORS_H
#define EFR_SBX_PATH_FLOORS_H

#include "plan.h"

/* Adds a floor to the plan for each directory of value (colon-separated, absolute entries; NULL is
 * none) that lies in a write root. Dies when one is a write root itself, or when the call could
 * replace a link on the way to one. */
void path_floors_add(struct plan *plan, const char *value);

#endif
