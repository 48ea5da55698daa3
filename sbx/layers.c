/* See layers.h.
 *
 * In the call's mount namespace the host's procfs is gone, and the call's shows other processes.
 * So this process stands in the host's /proc, which it opened before: names of descriptors are
 * relative to it. The pool and the conversation's directory are attached only until every overlay
 * has its own hold on them. */
#include "layers.h"

#include "bwrap_args.h"
#include "caps.h"
#include "deletes.h"
#include "mount_util.h"
#include "overlay.h"
#include "seccomp.h"
#include "util.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ANSWER_BYTES 1000
#define EMPTY "mask.file"

static int channel = -1;

static void failed(const char *text)
{
    (void)!send(channel, text, strlen(text), MSG_NOSIGNAL);
    _exit(EFR_EXIT_SETUP);
}

/* The user namespace that owns the mounts; the processes of the call stand in one below it. */
static void enter(pid_t init, uint64_t mount_namespace)
{
    char path[40];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/mnt", init);
    CLEANUP_FD int mounts = open(path, O_RDONLY | O_CLOEXEC);
    CLEANUP_FD int proc = open_real(AT_FDCWD, "/proc", O_DIRECTORY);
    if (mounts < 0 || proc < 0)
        die_errno("open %s", path);
    if (fstat(mounts, &st) < 0 || st.st_ino != mount_namespace)
        die("%s is another call's", path);
    CLEANUP_FD int users = ioctl(mounts, NS_GET_USERNS);
    if (users < 0)
        die_errno("owner of the mount namespace");
    if (setns(users, CLONE_NEWUSER) < 0 || setns(mounts, CLONE_NEWNS) < 0)
        die_errno("enter the call");
    if (fchdir(proc) < 0)
        die_errno("/proc");
}

/* The mounts of the plan inside an overlay, outermost ones only: they come onto it. */
struct inside {
    int *mounts; /* owned array; O_PATH, or -1: an empty file of ours */
    const char **paths;
    size_t count;
};

/* Where a path is listed; count when it is not, -1 when something above it is. */
static ssize_t place_of(const struct inside *inside, const char *path)
{
    for (size_t i = 0; i < inside->count; i++) {
        if (path_below(path, inside->paths[i]))
            return -1;
        if (strcmp(path, inside->paths[i]) == 0)
            return (ssize_t)i;
    }
    return (ssize_t)inside->count;
}

static void find_inside(struct inside *inside, const struct policy *policy,
                        const char *overlay)
{
    inside->mounts = xcalloc(policy->entry_count, sizeof *inside->mounts);
    inside->paths = xcalloc(policy->entry_count, sizeof *inside->paths);
    for (size_t i = 0; i < policy->entry_count; i++) {
        const struct policy_entry *entry = &policy->entries[i];
        if (!entry->shown || entry->kind == MOUNT_OVERLAY ||
            !path_below(entry->path, overlay))
            continue;
        ssize_t at = place_of(inside, entry->path);
        if (at < 0)
            continue;
        /* The uppermost of several mounts on one place, which is the last, stands for them all. */
        if ((size_t)at < inside->count && inside->mounts[at] >= 0)
            (void)close(inside->mounts[at]);
        inside->paths[at] = entry->path;
        inside->mounts[at] = -1;
        if ((size_t)at == inside->count)
            inside->count++;
        /* Bubblewrap removes the file behind a mask; the kernel moves no such mount. */
        if (entry->kind == MOUNT_MASK && !entry->is_dir)
            continue;
        inside->mounts[at] = open_real(AT_FDCWD, entry->path, 0);
        if (inside->mounts[at] < 0)
            die_errno("open %s", entry->path);
    }
}

static void mask_file(int pool, int target, const char *path)
{
    CLEANUP_FD int made = openat(pool, EMPTY, O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
    if (made < 0)
        die_errno("mask of %s", path);
    CLEANUP_FD int body = mount_clone_at(pool, EMPTY);
    mount_attrs(
        body, path, false,
        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0);
    mount_attach(body, target, path);
}

static void move_inside(struct inside *inside, int pool)
{
    for (size_t i = 0; i < inside->count; i++) {
        CLEANUP_FD int target = open_real(AT_FDCWD, inside->paths[i], 0);
        CLEANUP_FD int mount = inside->mounts[i];
        if (target < 0)
            die_errno("open %s", inside->paths[i]);
        if (mount >= 0)
            mount_attach(mount, target, inside->paths[i]);
        else
            mask_file(pool, target, inside->paths[i]);
    }
    free(inside->mounts);
    free(inside->paths);
}

static void make_overlay(struct overlays *overlays, const struct policy *policy, int pool,
                         const struct plan_mount *entry)
{
    struct inside inside = {0};
    CLEANUP_FD int lower = open_real(AT_FDCWD, entry->path, O_DIRECTORY);
    if (lower < 0)
        die_errno("open %s", entry->path);
    CLEANUP_FD int body = overlays_make(overlays, pool, entry, lower);
    if (body < 0)
        return;
    find_inside(&inside, policy, entry->path);
    mount_attach(body, lower, entry->path);
    move_inside(&inside, pool);
}

static void unmount(const char *path)
{
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
        die_errno("unmount %s", path);
}

static void make_all(struct overlays *overlays, const struct policy *policy)
{
    const struct plan *plan = policy->init.plan;
    CLEANUP_FREE char *staging = xasprintf("%s/" BWRAP_STAGING, plan->runtime);
    mode_t mask = umask(0);
    overlays_open(overlays, plan, staging);
    overlays->proc = "self/fd";
    CLEANUP_FD int pool = mount_pool();
    for (size_t i = 0; i < policy->entry_count; i++)
        if (policy->entries[i].kind == MOUNT_OVERLAY && policy->entries[i].shown)
            make_overlay(overlays, policy, pool, &plan->mounts[i]);
    unmount("/dev");
    unmount(staging);
    if (rmdir(staging) < 0)
        die_errno("remove %s", staging);
    (void)umask(mask);
}

/* Nothing is left to mount: while programs run in the call, this process only waits and later
 * lists names, as pid 1 of the native backend would. */
static void give_up_rights(const struct policy *policy)
{
    if (caps_keep_only(0) < 0)
        die_errno("capabilities");
    /* A change of capabilities clears the death signal. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die_errno("prctl");
    if (seccomp_enter_init(policy->init.plan->uid == 0) < 0)
        die_errno("seccomp");
}

static void run(const struct policy *policy, pid_t init, uint64_t mount_namespace,
                int deletes_fd) __attribute__((noreturn));

static void run(const struct policy *policy, pid_t init, uint64_t mount_namespace,
                int deletes_fd)
{
    struct overlays overlays;
    char byte;
    ssize_t n;
    die_sink(failed);
    stage("tool caches");
    pid_t launcher = getppid();
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        die_errno("non-dumpable");
    enter(init, mount_namespace);
    /* After the change of capabilities, which would clear the death signal. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != launcher)
        die_errno("parent death signal");
    make_all(&overlays, policy);
    give_up_rights(policy);
    if (getppid() != launcher || send(channel, "", 1, MSG_NOSIGNAL) != 1)
        _exit(EFR_EXIT_SETUP);
    do
        n = recv(channel, &byte, 1, 0);
    while (n < 0 && errno == EINTR);
    if (n == 1 && overlays.made_count > 0)
        deletes_write(&overlays, deletes_fd);
    _exit(0);
}

void layers_start(struct layers *layers, const struct policy *policy, pid_t init,
                  uint64_t mount_namespace, int deletes_fd)
{
    char answer[ANSWER_BYTES];
    int ends[2];
    sigset_t all;
    sigset_t old;
    stage("tool caches");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        die_errno("socketpair");
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, &old);
    layers->pid = fork();
    if (layers->pid == 0) {
        channel = ends[1];
        (void)close(ends[0]);
        (void)close(layers->lifeline);
        run(policy, init, mount_namespace, deletes_fd);
    }
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (layers->pid < 0)
        die_errno("fork");
    (void)close(ends[1]);
    layers->control = ends[0];
    ssize_t len = recv(layers->control, answer, sizeof answer - 1, 0);
    if (len == 1 && answer[0] == '\0')
        return;
    answer[len < 0 ? 0 : len] = '\0';
    /* It begins with its stage, which is ours. */
    const char *words = strstr(answer, ": ");
    die("%s", words ? words + 2 : "the process that makes them ended");
}

void layers_finish(struct layers *layers)
{
    if (layers->pid < 0)
        return;
    (void)!send(layers->control, "e", 1, MSG_NOSIGNAL);
    (void)close(layers->control);
    while (waitpid(layers->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    layers->pid = -1;
}
