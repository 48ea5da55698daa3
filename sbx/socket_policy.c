/* See socket_policy.h. */
#include "socket_policy.h"

#include "sockets.h"
#include "util.h"

#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h" /* tests/sbx: for control runs, never in what ships */
#endif

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MAX_PATH_BYTES 4096

/* The devices of the places, read at the first connect that needs them: the mounts of a call
 * do not change. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *devices;

static int load_devices(const struct socket_policy *policy)
{
    int result = 0;
    (void)pthread_mutex_lock(&lock);
    if (!devices) {
        uint32_t *fresh = xcalloc(policy->place_count, sizeof *fresh);
        uint64_t *ids = xcalloc(policy->place_count, sizeof *ids);
        for (size_t i = 0; i < policy->place_count; i++)
            ids[i] = policy->places[i].id;
        result = mount_devices(ids, fresh, policy->place_count);
        cleanup_free(&ids);
        if (result < 0)
            cleanup_free(&fresh);
        else
            devices = fresh;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* A superblock of btrfs has the same inode numbers once for each subvolume, and the list names
 * no subvolume. So a socket counts only where the call can write to one subvolume of it, and
 * not in a subvolume inside (the call cannot make one: gen/seccomp_gen.c). */
static bool inode_is_unique(const struct socket_policy *policy, size_t place,
                            dev_t file_dev)
{
    const struct mount_place *here = &policy->places[place];
#ifdef EFR_SBX_TEST_UNSAFE
    if (unsafe_form("subvolume"))
        return true;
#endif
    if (!here->subvolumes)
        return true;
    if (file_dev != here->root_dev)
        return false;
    for (size_t i = 0; i < policy->place_count; i++)
        if (devices[i] == devices[place] && policy->places[i].root_dev != here->root_dev)
            return false;
    return true;
}

/* The last part of the file's path, in room. */
static const char *name_of(int target, char *room)
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", target);
    ssize_t len = readlink(link, room, MAX_PATH_BYTES - 1);
    if (len <= 0)
        return NULL;
    room[len] = '\0';
    const char *slash = strrchr(room, '/');
    return slash ? slash + 1 : NULL;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

static int check_listed(const struct socket_policy *policy, size_t place,
                        const struct statx *info, int target)
{
    char room[MAX_PATH_BYTES];
    bool is_private = policy->places[place].kind == PLACE_PRIVATE;
    struct socket_key key = {.inode = (uint32_t)info->stx_ino};
    if (load_devices(policy) < 0)
        return refuse(EACCES);
    key.device = devices[place];
    if (!is_private) {
        dev_t file_dev = makedev(info->stx_dev_major, info->stx_dev_minor);
        key.name = name_of(target, room);
        if (!key.name || !inode_is_unique(policy, place, file_dev))
            return refuse(EACCES);
    }
    int made_here = socket_made_here(&key);
    if (made_here > 0 || (made_here < 0 && is_private))
        return 0; /* without a list: as in a call that keeps the host's network */
    return refuse(is_private ? ECONNREFUSED : EACCES);
}

int socket_policy_check(const struct socket_policy *policy, int target)
{
    struct statx info;
    if (statx(target, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_INO | STATX_TYPE, &info) <
        0)
        return -1;
    if (!(info.stx_mask & STATX_MNT_ID))
        return refuse(EACCES);
    for (size_t i = 0; i < policy->place_count; i++) {
        const struct mount_place *place = &policy->places[i];
        if (place->id != info.stx_mnt_id)
            continue;
        if (!S_ISSOCK(info.stx_mode))
            return refuse(ECONNREFUSED);
        if (place->kind == PLACE_SOCKET)
            return 0;
        if (policy->host_network)
            return place->kind == PLACE_PRIVATE ? 0 : refuse(EACCES);
        return check_listed(policy, i, &info, target);
    }
    return refuse(EACCES);
}
