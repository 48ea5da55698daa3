/* See layers.h.
 *
 * In the call's mount namespace the host's procfs is gone, and the call's shows other processes.
 * So this process stands in the host's /proc, which it opened before: names of descriptors are
 * relative to it. The pool and the conversation's directory are attached only until every overlay
 * has its own hold on them. */
#include "layers.h"

#include "bwrap_args.h"
#include "deletes.h"
#include "mount_util.h"
#include "overlay.h"
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
    int *mounts; /* owned array; O_PATH */
    const char **paths;
    size_t count;
};

static bool is_inside_another(const struct inside *inside, const char *path)
{
    for (size_t i = 0; i < inside->count; i++)
        if (path_below(path, inside->paths[i]))
            return true;
    return false;
}

static void find_inside(struct inside *inside, const struct policy *policy,
                        const char *overlay)
{
    inside->mounts = xcalloc(policy->entry_count, sizeof *inside->mounts);
    inside->paths = xcalloc(policy->entry_count, sizeof *inside->paths);
    for (size_t i = 0; i < policy->entry_count; i++) {
        const struct policy_entry *entry = &policy->entries[i];
        if (!entry->shown || entry->kind == MOUNT_OVERLAY ||
            !path_below(entry->path, overlay) || is_inside_another(inside, entry->path))
            continue;
        /* The uppermost of several mounts on one place stands for them all. */
        if (inside->count > 0 &&
            strcmp(inside->paths[inside->count - 1], entry->path) == 0)
            continue;
        int fd = open_real(AT_FDCWD, entry->path, 0);
        if (fd < 0)
            die_errno("open %s", entry->path);
        inside->paths[inside->count] = entry->path;
        inside->mounts[inside->count++] = fd;
    }
}

static void move_inside(struct inside *inside)
{
    for (size_t i = 0; i < inside->count; i++) {
        CLEANUP_FD int target = open_real(AT_FDCWD, inside->paths[i], 0);
        if (target < 0)
            die_errno("open %s", inside->paths[i]);
        mount_attach(inside->mounts[i], target, inside->paths[i]);
        (void)close(inside->mounts[i]);
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
    move_inside(&inside);
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
    if (send(channel, "", 1, MSG_NOSIGNAL) != 1)
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
