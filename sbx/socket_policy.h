/* Which socket files a call may connect to: those that the call made itself, and granted ones.
 * Owns: that decision, on a descriptor. Must not know: how a connect is made or answered.
 * Runs in pid 1's threads. */
#ifndef EFR_SBX_SOCKET_POLICY_H
#define EFR_SBX_SOCKET_POLICY_H

#include "mount.h"

#include <stdbool.h>
#include <stddef.h>

struct socket_policy {
    const struct mount_place *places; /* borrowed for the life of the process */
    size_t place_count;
    bool host_network; /* the call keeps the host's: the socket list cannot tell */
    bool other_roots;  /* the command may change its root: below a namespace of its own */
    bool refuse_abstract; /* nothing else keeps abstract names of the host away */
};

/* Whether a connect may reach the file of an O_PATH descriptor. Returns 0, or -1 with errno
 * set: EACCES, or ECONNREFUSED where nobody of the call serves it. Safe in threads. */
int socket_policy_check(const struct socket_policy *policy, int target);

#endif
