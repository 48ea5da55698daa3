/* The file system of a call, from its plan.
 * Owns: every mount, in the new mount namespace. Must not know: which paths deserve a mask or
 * are roots (the plan says). Nothing is resolved twice: sources and places are descriptors,
 * opened with no symbolic link on the path. Runs in pid 1 of the call, before Landlock. */
#ifndef EFR_SBX_MOUNT_H
#define EFR_SBX_MOUNT_H

#include "overlay.h"
#include "plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PRIVATE_MOUNTS 4 /* /tmp, /var/tmp, the runtime directory, /dev/shm */

enum place_kind {
    PLACE_WRITABLE, /* a write root or pin: the host can make sockets there too */
    PLACE_PRIVATE,  /* only the conversation makes sockets there */
    PLACE_SOCKET,   /* a granted socket: the mount is that one file */
};

/* A mount where the command may find a socket that it can connect to, for the broker. */
struct mount_place {
    uint64_t id; /* of the mount */
    enum place_kind kind;
    bool subvolumes; /* btrfs: inode numbers repeat below one superblock */
    dev_t root_dev;  /* what stat gives for the root of the mount */
};

struct mount_result {
    struct mount_place *places; /* owned; grows while the mounts are made */
    size_t place_count;
    int root_fd;    /* rule set places for Landlock, below */
    int *write_fds; /* owned; O_PATH of every writable place */
    size_t write_count;
    struct overlays overlays;
};

/* Builds everything. terminal is the path of the call's terminal as the launcher sees it, or
 * NULL; it becomes /dev/console. Dies on any refusal. */
void mount_all(const struct plan *plan, const char *terminal,
               struct mount_result *result);

/* Whether an entry of this kind shows a place of the host that the call may write. */
bool mount_is_writable(enum mount_kind kind);

/* Opens the place of an entry that shows something of the host. Returns O_PATH with *st filled,
 * or -1: it is not there, and this kind is left out then. Dies on any refusal. */
int mount_open_source(const struct plan_mount *entry, struct stat *st);

#endif
