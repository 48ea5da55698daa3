/* The unsafe forms of checks, for control runs: a race test only counts when the same attacker
 * gets out while the check is made in its unsafe form. Linked into build/test/efr-sbx-unsafe
 * alone, whose sources are those of efr-sbx with EFR_SBX_TEST_UNSAFE set.
 * EFR_SBX_TEST_UNSAFE in the environment names the form: continue (the broker checks, then the
 * kernel goes on with the caller's own connect), path (it checks a descriptor, then connects by
 * the path), no-landlock, or wait (as it ships). In each, the broker waits a moment between
 * check and use, so that a race is met on a busy machine too. EFR_SBX_MAX_ABI=N caps the Landlock
 * ABI, by itself (then every check is as it ships, with no wait) or beside a form. Without one of
 * the two variables the program does not start. */
#ifndef EFR_TEST_SBX_UNSAFE_H
#define EFR_TEST_SBX_UNSAFE_H

#include <stdbool.h>
#include <sys/socket.h>

#define UNSAFE_CONTINUE 4000 /* stands for an errno: the kernel shall go on */

bool unsafe_form(const char *name);

/* In place of the broker's connect. path is NULL when the address is none. */
int unsafe_connect(pid_t tid, int taken, const char *path, const struct sockaddr *address,
                   socklen_t len);

#endif
