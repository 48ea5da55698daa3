/* Which Unix sockets this call made, told from the kernel's socket list of the call's own
 * network, where the host's sockets do not appear; and the device of a mount, as that list
 * counts devices.
 * Owns: the request, the reading of its answers. Must not know: what a match allows (broker.c).
 * Runs in pid 1's threads, each with a descriptor of its own. The names in the list are bytes
 * that the sandboxed program chose: they are compared, never read further (fuzzed:
 * tests/fuzz/fuzz_socklist.c). */
#ifndef EFR_SBX_SOCKETS_H
#define EFR_SBX_SOCKETS_H

#include <stddef.h>
#include <stdint.h>

/* The file of a bound socket as the list names it. */
struct socket_key {
    uint32_t device;  /* of mount_devices */
    uint32_t inode;   /* the low 32 bits */
    const char *name; /* last part of the bound name, or NULL: any */
};

enum socket_scan {
    SOCKET_SCAN_MORE,   /* no match yet, and further answers follow */
    SOCKET_SCAN_FOUND,  /* a socket of this network is bound there */
    SOCKET_SCAN_END,    /* the list is complete */
    SOCKET_SCAN_BROKEN, /* the kernel refused, or the bytes are no list */
};

/* Looks for key in one datagram of the list. bytes must be aligned for a uint32_t. */
enum socket_scan socket_scan(const void *bytes, size_t len_bytes,
                             const struct socket_key *key);

/* Whether a socket of this network is bound at key: 1, 0, or -1 with errno set when the
 * kernel gives no list. */
int socket_made_here(const struct socket_key *key);

/* Fills in the devices of the file systems that mounts show (as the superblock has it, which
 * stat differs from on btrfs and overlays). Returns 0, or -1 with errno set (ENOENT: one of the
 * mounts is not here). */
int mount_devices(const uint64_t *mount_ids, uint32_t *devices, size_t count);

#endif
