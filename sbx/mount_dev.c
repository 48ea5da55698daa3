/* See mount_dev.h. */
#include "mount_dev.h"

#include "mount_util.h"
#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const char *const NODES[DEV_NODES] = {"null",   "zero",    "full",
                                             "random", "urandom", "tty"};

static const char *const LINKS[][2] = {
    {"ptmx", "pts/ptmx"},          {"fd", "/proc/self/fd"},
    {"stdin", "/proc/self/fd/0"},  {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"},
};

static int clone_node(const char *path)
{
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, 0);
    struct stat st;
    if (fd < 0)
        die_errno("open %s", path);
    if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode))
        die("%s is not a device", path);
    int clone = mount_clone(fd, path);
    mount_attrs(clone, path, false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0);
    return clone;
}

/* A device of this call, a character or a block device. */
static int clone_granted(const char *path)
{
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, 0);
    struct stat st;
    if (fd < 0)
        die_errno("open %s", path);
    if (fstat(fd, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
        die("%s: it was granted as a device and is none", path);
    int clone = mount_clone(fd, path);
    mount_attrs(clone, path, false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0);
    return clone;
}

struct dev_sources dev_open_sources(const char *terminal, const struct plan_list *granted)
{
    struct dev_sources sources = {.granted = granted};
    sources.granted_fds = xcalloc(granted->count + 1, sizeof *sources.granted_fds);
    for (size_t i = 0; i < granted->count; i++)
        sources.granted_fds[i] = clone_granted(granted->items[i]);
    for (int i = 0; i < DEV_NODES; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/dev/%s", NODES[i]);
        sources.node[i] = clone_node(path);
    }
    sources.console = terminal ? clone_node(terminal) : -1;
    return sources;
}

static void place_node(int dev, const char *name, int clone)
{
    CLEANUP_FD int owned = clone;
    mount_make_point(dev, name, false);
    CLEANUP_FD int target = open_real(dev, name, 0);
    if (target < 0)
        die_errno("open /dev/%s", name);
    mount_attach(owned, target, name);
}

static void attach_below(int dev, const char *name, int clone)
{
    CLEANUP_FD int owned = clone;
    CLEANUP_FD int target = open_real(dev, name, O_DIRECTORY);
    if (target < 0)
        die_errno("open /dev/%s", name);
    mount_attach(owned, target, name);
}

void dev_build(int pool, struct dev_sources *sources)
{
    CLEANUP_FD int dev = mount_clone_at(pool, "dev");
    if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 0755) < 0)
        die_errno("make /dev/pts and /dev/shm");
    for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++)
        if (symlinkat(LINKS[i][1], dev, LINKS[i][0]) < 0)
            die_errno("link /dev/%s", LINKS[i][0]);
    /* Attached on the pool itself, so that no path leads to the pool. */
    CLEANUP_FD int target = open_real(AT_FDCWD, "/dev", O_DIRECTORY);
    if (target < 0)
        die_errno("open /dev");
    mount_attach(dev, target, "/dev");
    for (int i = 0; i < DEV_NODES; i++)
        place_node(dev, NODES[i], sources->node[i]);
    if (sources->console >= 0)
        place_node(dev, "console", sources->console);
    for (size_t i = 0; i < sources->granted->count; i++)
        place_node(dev, sources->granted->items[i] + strlen("/dev/"),
                   sources->granted_fds[i]);
    free(sources->granted_fds);
    attach_below(dev, "shm", mount_clone_at(pool, "shm"));
    CLEANUP_FD int pts = open_real(dev, "pts", O_DIRECTORY);
    if (pts < 0)
        die_errno("open /dev/pts");
    mount_devpts(pts);
    mount_attrs(dev, "/dev", false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0);
}
