/* The locked room: what efr-worker and the role `rules` of efrd put around themselves.
 * Owns: one call that takes everything away. Must not know: what the process does afterwards. */
#ifndef EFR_SBX_CONFINE_H
#define EFR_SBX_CONFINE_H

#include <stddef.h>
#include <stdint.h>

struct efr_confine {
    const int *syscalls; /* borrowed; native call numbers that stay allowed */
    size_t syscall_count;
    const int *keep_fds; /* borrowed, ascending; every other descriptor is closed */
    size_t keep_fd_count;
    int deny_errno;        /* answer to every other call; 0 = the process is killed */
    uint64_t memory_bytes; /* address space limit, 0 = none */
    uint64_t open_files; /* descriptor limit, 0 = one above the highest kept descriptor */
};

/* Confines this process: closes all descriptors but the listed ones, empties the environment,
 * sets limits (no core, no file growth, no new process), makes it non-dumpable, drops every
 * capability, then Landlock with nothing allowed, then the system-call allow list. Call it
 * with one thread. Returns 0, or -1 with the failed step in message; then the process must end:
 * it may be half confined. */
int efr_confine(const struct efr_confine *confine, char *message, size_t message_bytes);

#endif
