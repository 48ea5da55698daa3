/* The places of a call that its socket policy and its Landlock rules are made of.
 * Owns: how a place is told from its mount, and the last look at the mount table. Must not know:
 * how the mounts were made. Runs in pid 1 of the call, before Landlock. */
#ifndef EFR_SBX_PLACES_H
#define EFR_SBX_PLACES_H

#include "mount.h"

#include <stdbool.h>
#include <stdint.h>

/* The number of the mount that an O_PATH descriptor lies on, 0 when the kernel cannot say. */
uint64_t mount_id_of(int fd);

/* Remembers the mount of fd (borrowed). path only for messages. Dies. */
void place_add(struct mount_result *result, int fd, enum place_kind kind,
               const char *path);

/* Remembers a writable place, which is a mount now, also for Landlock. Dies. */
void place_writable(struct mount_result *result, const char *path, enum place_kind kind);

/* One line of the mount table. Points into memory of the reader. */
struct mount_line {
    uint64_t id;
    const char *path;
    bool readonly;
};

/* Calls take for each mount of this namespace. Dies when the table cannot be read. */
void mount_table(void (*take)(void *context, const struct mount_line *line),
                 void *context);

/* Looks through every mount of this namespace: what a path leads to and is neither a remembered
 * place nor of the call's own /dev (and, with namespaces, /proc) must be read-only. Dies. */
void places_check_rest(const struct mount_result *result, bool proc_writable);

#endif
