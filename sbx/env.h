/* The environment of the command: the launcher's own, filtered by the plan.
 * Owns: pattern matching and the two rules on values and names that are no pattern. */
#ifndef EFR_SBX_ENV_H
#define EFR_SBX_ENV_H

#include "plan.h"

/* Whether name fits the pattern, where `*` stands for any bytes. */
bool env_matches(const char *pattern, const char *name, size_t name_len, bool any_case);

/* Builds the environment. The result is NULL-terminated and is never freed (exec follows). */
char **env_build(const struct plan *plan, char *const *from);

#endif
