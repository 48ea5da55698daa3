/* See inner.h. Bubblewrap finds the places of its mounts by their paths. So every entry of the plan
 * is looked at again here, through a path without links: it has to be a mount of its own, of
 * the very file or directory that the launcher opened, and nothing but the places of the plan may be
 * writable. */
#include "inner.h"

#include "bounds.h"
#include "init.h"
#include "landlock.h"
#include "places.h"
#include "policy.h"
#include "util.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

/* What one place is. */
struct found {
    struct stat st;
    bool is_mount;
    bool readonly;
    long type; /* of the file system */
};

static void look(int fd, const char *path, struct found *found)
{
    struct statx info;
    struct statfs fs;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) < 0 ||
        fstat(fd, &found->st) < 0 || fstatfs(fd, &fs) < 0)
        die_errno("stat %s", path);
    found->is_mount = (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    found->readonly = ((unsigned long)fs.f_flags & ST_RDONLY) != 0;
    found->type = (long)fs.f_type;
}

static bool is_same(const struct policy_entry *entry, const struct found *found)
{
    return entry->dev == found->st.st_dev && entry->ino == found->st.st_ino;
}

static bool is_as_planned(const struct policy_entry *entry, const struct found *found)
{
    if (!found->is_mount && entry->kind != MOUNT_OVERLAY)
        return false;
    switch (entry->kind) {
    case MOUNT_MASK:
        return found->type == TMPFS_MAGIC && found->readonly &&
               S_ISDIR(found->st.st_mode) == entry->is_dir &&
               (entry->is_dir || found->st.st_size == 0);
    case MOUNT_RUNTIME:
        return found->type == TMPFS_MAGIC;
    case MOUNT_OVERLAY:
        /* Where the host has mounts inside there is none, and the directory stays closed. */
        return found->is_mount && found->type == OVERLAYFS_SUPER_MAGIC
                   ? !is_same(entry, found)
                   : found->readonly && is_same(entry, found);
    case MOUNT_SOCKET:
    case MOUNT_FLOOR:
        return found->readonly && is_same(entry, found);
    case MOUNT_PRIVATE:
    case MOUNT_ROOT:
    case MOUNT_PIN:
    case MOUNT_GRANT:
        return is_same(entry, found);
    }
    return false;
}

static bool covered_later(const struct policy *policy, size_t index)
{
    const struct policy_entry *entries = policy->entries;
    for (size_t i = index + 1; i < policy->entry_count; i++)
        if (entries[i].shown && strcmp(entries[i].path, entries[index].path) == 0)
            return true;
    return false;
}

static void remember(struct mount_result *mounts, const struct policy_entry *entry,
                     int fd, const struct found *found)
{
    if (mount_is_writable(entry->kind))
        place_writable(mounts, entry->path, PLACE_WRITABLE);
    else if (entry->kind == MOUNT_PRIVATE || entry->kind == MOUNT_RUNTIME)
        place_writable(mounts, entry->path, PLACE_PRIVATE);
    else if (entry->kind == MOUNT_SOCKET)
        place_add(mounts, fd, PLACE_SOCKET, entry->path);
    else if (entry->kind == MOUNT_OVERLAY && found->type == OVERLAYFS_SUPER_MAGIC &&
             found->is_mount)
        place_writable(mounts, entry->path, PLACE_WRITABLE);
}

static void check_entry(const struct policy *policy, size_t index,
                        struct mount_result *mounts)
{
    const struct policy_entry *entry = &policy->entries[index];
    struct found found;
    if (!entry->shown || covered_later(policy, index))
        return;
    CLEANUP_FD int fd = open_real(AT_FDCWD, entry->path, 0);
    if (fd < 0)
        die_errno("open %s", entry->path);
    look(fd, entry->path, &found);
    if (!is_as_planned(entry, &found))
        die("%s is not what the plan says; it changed meanwhile", entry->path);
    remember(mounts, entry, fd, &found);
}

static void check_kernel_trees(void)
{
    static const char *const TREES[] = {"/", "/proc", "/dev", "/dev/pts", "/dev/shm"};
    for (size_t i = 0; i < sizeof TREES / sizeof *TREES; i++) {
        struct found found;
        CLEANUP_FD int fd = open_real(AT_FDCWD, TREES[i], O_DIRECTORY);
        if (fd < 0)
            die_errno("open %s", TREES[i]);
        look(fd, TREES[i], &found);
        if (!found.is_mount)
            die("%s is not the call's own", TREES[i]);
    }
}

static void check_mounts(const struct policy *policy, struct mount_result *mounts)
{
    stage("mounts");
    mounts->write_fds = xcalloc(policy->entry_count + PRIVATE_MOUNTS, sizeof(int));
    check_kernel_trees();
    place_writable(mounts, "/dev/shm", PLACE_PRIVATE);
    for (size_t i = 0; i < policy->entry_count; i++)
        check_entry(policy, i, mounts);
    places_check_rest(mounts, policy->init.plan->userns);
    mounts->root_fd = open_real(AT_FDCWD, "/", O_DIRECTORY);
    if (mounts->root_fd < 0)
        die_errno("open /");
}

static void check_namespaces(const struct policy *policy)
{
    uint64_t own[POLICY_NAMESPACES];
    stage("namespaces");
    policy_namespaces(own);
    for (size_t i = 0; i < POLICY_NAMESPACES; i++) {
        bool wanted = i == POLICY_NET && policy->init.plan->host_network;
        if ((own[i] == policy->namespaces[i]) != wanted)
            die("a namespace is not the call's own");
    }
    if (getpid() != 1)
        die("not the first process of the call");
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Closes what is neither standard nor named; bubblewrap leaves some descriptors. */
static void close_others(const struct policy *policy)
{
    int keep[] = {2, policy->init.status_fd, policy->init.lifeline_fd,
                  policy->init.records_fd, policy->lock_fd};
    const size_t count = sizeof keep / sizeof *keep;
    qsort(keep, count, sizeof *keep, compare);
    for (size_t i = 0; i < count; i++) {
        unsigned int first = (unsigned int)(keep[i] < 2 ? 2 : keep[i]) + 1;
        unsigned int last = i + 1 < count ? (unsigned int)keep[i + 1] - 1 : ~0U;
        if (keep[i] < 2 || first > last)
            continue;
        if (syscall(SYS_close_range, first, last, 0) < 0)
            die_errno("close_range");
    }
    for (size_t i = 0; i < count; i++)
        if (keep[i] > 2 && fcntl(keep[i], F_SETFD, FD_CLOEXEC) < 0)
            die_errno("descriptor %d", keep[i]);
}

static void take_over(struct policy *policy, int fd)
{
    policy_read(policy, fd);
    policy->init.deletes_fd = -1; /* the process of layers.c lists them */
    if (dup2(policy->stderr_fd, STDERR_FILENO) < 0)
        die_errno("standard error");
    init_begin(&policy->init);
    close_others(policy);
    environ = policy->environment;
    landlock_cap(policy->max_abi);
    if (setrlimit(RLIMIT_NOFILE, &policy->open_files) < 0)
        die_errno("limit of open files");
}

/* The launcher adds the overlays; it enters by the number of this mount namespace. */
static void wait_for_overlays(const struct policy *policy)
{
    char number[24];
    uint64_t own[POLICY_NAMESPACES];
    if (!policy->waits)
        return;
    stage("tool caches");
    policy_namespaces(own);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)own[1]);
    init_wait(&policy->init, number);
}

int inner_run(int argc, char **argv)
{
    struct policy policy;
    struct plan plan;
    struct mount_result mounts = {0};
    char message[400];
    long fd =
        argc == 2 && strcmp(argv[0], "--policy-fd") == 0 ? strtol(argv[1], NULL, 10) : -1;
    if (fd < 3 || fd > INT_MAX || getpid() != 1) {
        say("usage: efr-sbx inner --policy-fd N (bubblewrap starts it)");
        return 2;
    }
    take_over(&policy, (int)fd);
    (void)prctl(PR_SET_NAME, "efr-sbx", 0, 0, 0);
    stage("plan");
    if (plan_parse(&plan, policy.plan_bytes, policy.plan_len, message, sizeof message) <
        0)
        die("%s", message);
    policy.init.plan = &plan;
    check_namespaces(&policy);
    bounds_for_call(&plan);
    wait_for_overlays(&policy);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        die_errno("non-dumpable");
    check_mounts(&policy, &mounts);
    init_fence(&policy.init, &mounts);
    init_serve(&policy.init, &mounts, 0);
}
