/* The environment of efr's own git.
 * Owns: which variables it gets and the settings that no repository can change.
 * Must not know: the domain around it. Runs in `efr-sbx git`. */
#ifndef EFR_SBX_GIT_ENV_H
#define EFR_SBX_GIT_ENV_H

#include <stdbool.h>

/* The whole environment, made new; of the caller's only the places that its request names go
 * in. root is where discovery of a repository may start, and does not go above; program_dir is
 * its PATH. With user_config the user's and the system's settings count, else only the
 * repository's. NULL-terminated; belongs to the caller, who never frees it. */
char **git_env_build(const char *root, const char *program_dir, bool user_config);

#endif
