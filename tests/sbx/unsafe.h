/* The unsafe forms of checks, for control runs: a race test only counts when the same attacker
 * gets out while the check is made in its unsafe form. Linked into build/test/efr-sbx-unsafe
 * alone, whose sources are those of efr-sbx with EFR_SBX_TEST_UNSAFE set.
 * EFR_SBX_TEST_UNSAFE in the environment names the form: continue (the broker checks, then the
 * kernel goes on with the caller's own connect), path (it checks a descriptor, then connects by
 * the path), no-landlock, subvolume (two files of one btrfs with the same inode number are the
 * same), erratum (an open erratum of Landlock), disk-layers (overlays as on a kernel whose tmpfs has no user attributes), or wait (as
 * it ships). In each, the broker waits a moment between check and use, so that a race is met on
 * a busy machine too. By itself (then every check is as it ships, with no wait) or beside a
 * form: EFR_SBX_MAX_ABI=N caps the Landlock ABI; EFR_SBX_STOP_AT=WHO:STAGE (WHO: launcher, init,
 * command) stops that process when it comes to the stage, until standard input gives a byte or
 * ends. Without one of the three variables the program does not start. */
#ifndef EFR_TEST_SBX_UNSAFE_H
#define EFR_TEST_SBX_UNSAFE_H

#include <stdbool.h>
#include <sys/socket.h>

#define UNSAFE_CONTINUE 4000 /* stands for an errno: the kernel shall go on */

bool unsafe_form(const char *name);

/* Called at the beginning of each stage: writes "stopped" to standard error and waits, when
 * EFR_SBX_STOP_AT names it. */
void unsafe_stage(const char *stage);

/* In place of the broker's connect. path is NULL when the address is none. */
int unsafe_connect(pid_t tid, int taken, const char *path, const struct sockaddr *address,
                   socklen_t len);

#endif
