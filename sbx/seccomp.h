/* The prebuilt seccomp programs of a call.
 * Owns: which program goes where. Must not know: what the programs say (gen/seccomp_gen.c). */
#ifndef EFR_SBX_SECCOMP_H
#define EFR_SBX_SECCOMP_H

#include <stdbool.h>

/* Puts this process under the command's program, with userns under the one that lets it make
 * namespaces. Returns the listener for its connect calls, or -1 with errno set. Needs
 * no_new_privs. */
int seccomp_enter_command(bool as_root, bool userns);

/* Puts pid 1 under the same program with connect and openat2 open. Returns 0 or -1, errno. */
int seccomp_enter_init(bool as_root);

/* Puts efr's own git under the program of pid 1 and a second one: no socket, no look into other
 * processes, no way out of its process group. Returns 0 or -1, errno. */
int seccomp_enter_git(bool as_root);

#endif
