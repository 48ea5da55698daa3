/* See cgroup.h. The directory above is one that the kernel lets this user manage (efrd names it). A
 * process cannot leave by itself: its cgroup namespace begins here, and every file of it is
 * read-only inside the call. */
#include "cgroup.h"

#include "util.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define EVENTS_BYTES 512
#define END_MS 2000
/* Pid 1 and the broker's threads count too: one thread for each of 256 connects. */
#define OWN_TASKS 260

/* Writes a file of the cgroup. Returns 0 or -1 with errno. */
static int set(const struct cgroup *cgroup, const char *file, const char *text)
{
    CLEANUP_FD int fd = openat(cgroup->dir, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -1 : write_all(fd, text, strlen(text));
}

static void limit(const struct cgroup *cgroup, const char *file, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    if (set(cgroup, file, text) < 0)
        die_errno("%s", file);
}

/* The number behind a key of a file such as memory.events, 0 when there is none. */
static long event(const struct cgroup *cgroup, const char *file, const char *key)
{
    char text[EVENTS_BYTES];
    CLEANUP_FD int fd = openat(cgroup->dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t len = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);
    text[len < 0 ? 0 : len] = '\0';
    for (char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t key_len = strlen(key);
        if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ')
            return strtol(line + key_len, NULL, 10);
    }
    return 0;
}

void cgroup_make(struct cgroup *cgroup, const struct plan *plan)
{
    struct statfs fs;
    *cgroup = (struct cgroup){.parent = -1, .dir = -1};
    if (!plan->cgroup)
        return;
    stage("cgroup");
    cgroup->parent = open_real(AT_FDCWD, plan->cgroup, 0);
    if (cgroup->parent < 0 || fstatfs(cgroup->parent, &fs) < 0)
        die_errno("open %s", plan->cgroup);
    if (fs.f_type != CGROUP2_SUPER_MAGIC)
        die("%s is no cgroup of version 2", plan->cgroup);
    if (mkdirat(cgroup->parent, plan->cgroup_name, 0700) < 0)
        die_errno("make %s in %s", plan->cgroup_name, plan->cgroup);
    cgroup->name = plan->cgroup_name;
    cgroup->dir = openat(cgroup->parent, cgroup->name,
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (cgroup->dir < 0)
        die_errno("open %s", cgroup->name);
    if (plan->max_memory_bytes) {
        limit(cgroup, "memory.max", plan->max_memory_bytes);
        limit(cgroup, "memory.oom.group", 1);
        /* Not there on a kernel without swap. */
        if (set(cgroup, "memory.swap.max", "0") < 0 && errno != ENOENT)
            die_errno("memory.swap.max");
    }
    if (plan->max_processes)
        limit(cgroup, "pids.max", plan->max_processes + OWN_TASKS);
}

void cgroup_enter(const struct cgroup *cgroup)
{
    if (!cgroup->name || set(cgroup, "cgroup.procs", "0") == 0)
        return;
    if (errno != EACCES)
        die_errno("cgroup");
    say("efr-sbx: no limit of memory: the terminal's cgroup cannot be left");
}

bool cgroup_out_of_memory(const struct cgroup *cgroup)
{
    return cgroup->name && event(cgroup, "memory.events", "oom_kill") > 0;
}

/* Waits until no process is left in it. */
static void wait_until_empty(const struct cgroup *cgroup)
{
    CLEANUP_FD int fd =
        openat(cgroup->dir, "cgroup.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct pollfd poll_fd = {.fd = fd, .events = POLLPRI};
    char text[EVENTS_BYTES];
    if (fd < 0)
        return;
    while (pread(fd, text, sizeof text, 0) > 0 &&
           event(cgroup, "cgroup.events", "populated") && poll(&poll_fd, 1, END_MS) > 0)
        continue;
}

void cgroup_forget(struct cgroup *cgroup)
{
    cleanup_fd(&cgroup->dir);
    cleanup_fd(&cgroup->parent);
    *cgroup = (struct cgroup){.parent = -1, .dir = -1};
}

void cgroup_remove(struct cgroup *cgroup)
{
    if (!cgroup->name)
        return;
    if (unlinkat(cgroup->parent, cgroup->name, AT_REMOVEDIR) < 0 && errno == EBUSY) {
        (void)set(cgroup, "cgroup.kill", "1");
        wait_until_empty(cgroup);
        if (unlinkat(cgroup->parent, cgroup->name, AT_REMOVEDIR) < 0)
            say("efr-sbx: the cgroup of this call could not be removed: %s",
                strerror(errno));
    }
    cgroup_forget(cgroup);
}
