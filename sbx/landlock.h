/* Landlock rule sets by the ABI of the running kernel.
 * Owns: the rights of every ABI and the constants that Debian 12's headers lack.
 * Must not know: plans or which path is a write root; callers name rights by class. */
#ifndef EFR_SBX_LANDLOCK_H
#define EFR_SBX_LANDLOCK_H

#include <stdbool.h>

/* What a path may be used for; the table of docs/sandbox.md. */
enum landlock_class {
    LANDLOCK_READ,     /* execute, read file, read dir */
    LANDLOCK_LOOK,     /* read file, read dir */
    LANDLOCK_STORE,    /* files and directories that nothing runs, for efr's own git */
    LANDLOCK_WRITE,    /* all but device nodes, ioctl_dev and resolve_unix */
    LANDLOCK_SINK,     /* /dev/null: read, write */
    LANDLOCK_TERMINAL, /* read, write, ioctl */
    LANDLOCK_PROC,     /* /proc of a call with namespaces: read, write, truncate */
    LANDLOCK_SOCKET,   /* resolve_unix: a socket that was made outside */
};

/* The ABI of this kernel, at most the cap, or -1 with errno set (ENOSYS, EOPNOTSUPP: Landlock is
 * off). */
int landlock_abi(void);

/* From now on this process and its later children use the means of ABI max_abi even where the
 * kernel knows more. A capped ABI is no older kernel: nothing else changes. */
void landlock_cap(int max_abi);

#define LANDLOCK_ERRATUM_MOVED 3

/* Whether this kernel finds the rules of a directory that was moved out of its mount meanwhile
 * (erratum 3 is fixed; a kernel that tells no errata counts as open). Where it does not, the read-only mounts hold the write fence. */
bool landlock_sees_moved_directories(void);

/* A rule set that handles every right of the ABI (at least min_abi), with the scopes where
 * the kernel has them; with_net also handles TCP bind and connect. Returns a descriptor, or
 * -1 with errno set (ENOTSUP: the ABI is below min_abi). */
int landlock_ruleset(int min_abi, int with_net);

/* Allows class below the object that the O_PATH descriptor names. Returns 0 or -1, errno. */
int landlock_allow(int ruleset, int path_fd, enum landlock_class class);

/* Puts this thread and its later children below the rule set. Needs no_new_privs. */
int landlock_enter(int ruleset);

#endif
