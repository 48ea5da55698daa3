/* The socket broker: every connect of the command is made here, never by the kernel's
 * continuation of the caller's own call.
 * Owns: the seccomp listener, one thread for each connect in flight. Must not know: the plan,
 * nor which sockets are allowed (socket_policy.h). Runs in pid 1 of the call; reads one address of at most 128 bytes
 * that the sandboxed program chose (fuzzed: tests/fuzz/fuzz_sockaddr.c). */
#ifndef EFR_SBX_BROKER_H
#define EFR_SBX_BROKER_H

#include "socket_policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BROKER_ADDRESS_MAX 128

/* What an address means for a Unix socket. */
enum broker_address {
    BROKER_PATH,     /* path holds a NUL-terminated path */
    BROKER_ABSTRACT, /* a name of the network namespace: the kernel decides */
    BROKER_OTHER,    /* no family, or another one: the kernel answers */
    BROKER_INVALID,  /* EINVAL */
};

/* Reads a caller's address for a Unix socket. path needs BROKER_ADDRESS_MAX + 1 bytes. */
enum broker_address broker_read_address(const void *bytes, size_t len_bytes, char *path);

/* Keeps the listener, and what policy points to. Returns a timer for pid 1's poll: when it is
 * readable, broker_wake_orphans is due. Dies on failure. */
int broker_start(int listener_fd, const struct socket_policy *policy);

/* To be called when the listener has its first connect: from then on threads take them, two at
 * least and 256 in flight at most. Returns false when no thread can be started; that connect
 * is refused, and the next one tries again. */
bool broker_serve(void);

/* Wakes the threads whose caller went away. */
void broker_wake_orphans(void);

#endif
