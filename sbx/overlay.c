/* See overlay.h.
 *
 * The kernel takes layers as paths. /proc/self/fd names exactly what a descriptor holds, so
 * nothing is resolved twice. A layer on disk needs a writable mount of this namespace: a clone of
 * LAYERS is attached inside the pool, which no path reaches.
 * index=off and xino=off: a layer then needs nothing of the file system below that could change
 * between two calls; so the kernel does not check that a layer has one user, and the lock does. */
#include "overlay.h"

#include "mount_util.h"
#include "util.h"

#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h" /* tests/sbx: never in what ships */
#endif

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>

#define LOCK_WAIT_MS 5000
#define LOCK_STEP_MS 10
#define MODE_BITS 01777

/* One layer: the two directories that the file system wants. */
struct layer {
    int upper;
    int work;
    bool lasting; /* it outlives this call, so it has to reach the disk whole */
};

static int open_readable(int dir, const char *name)
{
    CLEANUP_FD int real = open_real(dir, name, O_DIRECTORY);
    if (real < 0)
        return -1;
    return openat(real, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_base(const char *path)
{
    int base = open_real(AT_FDCWD, path, O_DIRECTORY);
    struct stat st;
    if (base < 0)
        die_errno("open %s", path);
    if (fstat(base, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        die("%s is not a private directory of this user", path);
    return base;
}

/* Whether LAYERS/cache is still the directory that is locked: it could have been moved away. */
static bool still_there(int base, int locked)
{
    CLEANUP_FD int again = open_real(base, "cache", O_DIRECTORY);
    struct stat a;
    struct stat b;
    return again >= 0 && fstat(again, &a) == 0 && fstat(locked, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int overlays_lock(const struct plan *plan)
{
    if (!plan->keeps_layers)
        return -1;
    const struct timespec step = {.tv_nsec = LOCK_STEP_MS * 1000000L};
    CLEANUP_FD int base = open_base(plan->layers);
    int cache = open_readable(base, "cache");
    if (cache < 0)
        die_errno("open %s/cache", plan->layers);
    for (int waited = 0; flock(cache, LOCK_EX | LOCK_NB) < 0; waited += LOCK_STEP_MS) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            die_errno("lock %s/cache", plan->layers);
        if (waited >= LOCK_WAIT_MS)
            die("another command of this conversation holds the caches; it did not end "
                "within %d s",
                LOCK_WAIT_MS / 1000);
        (void)nanosleep(&step, NULL);
    }
    if (!still_there(base, cache))
        die("the caches of this conversation were just cleaned up; try again");
    return cache;
}

void overlays_open(struct overlays *overlays, const struct plan *plan, const char *base)
{
    *overlays = (struct overlays){
        .plan = plan, .base = -1, .disk = -1, .memory = -1, .proc = "/proc/self/fd"};
    if (!base)
        return;
    overlays->base = open_base(base);
    overlays->made = xcalloc(plan->mount_count, sizeof *overlays->made);
}

static int make_dir(int dir, const char *name, mode_t mode)
{
    if (mkdirat(dir, name, mode) < 0)
        die_errno("layer: make %s", name);
    int fd = open_real(dir, name, O_DIRECTORY);
    if (fd < 0)
        die_errno("layer: open %s", name);
    return fd;
}

/* LAYERS as a writable mount of its own. */
static int disk_of(struct overlays *o)
{
    if (o->disk >= 0)
        return o->disk;
    const char *path = o->plan->layers;
    CLEANUP_FD int place = make_dir(o->pool, "layers", 0700);
    o->disk = mount_clone_at(o->base, "");
    mount_attrs(o->disk, path, false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                MOUNT_ATTR_RDONLY);
    mount_attach(o->disk, place, path);
    return o->disk;
}

/* Without user attributes a directory that lies below could not be removed in the overlay. */
static bool has_user_attributes(int dir)
{
#ifdef EFR_SBX_TEST_UNSAFE
    if (unsafe_form("disk-layers"))
        return false;
#endif
    CLEANUP_FD int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsetxattr(fd, "user.efr", "", 0, 0) == 0;
}

/* Where the layers of this call alone are made. */
static int memory_of(struct overlays *o)
{
    if (o->memory >= 0)
        return o->memory;
    o->memory = make_dir(o->pool, "overlay", 0700);
    if (has_user_attributes(o->memory))
        return o->memory;
    (void)close(o->memory);
    CLEANUP_FD int all = -1;
    if (mkdirat(disk_of(o), "layers", 0700) < 0 && errno != EEXIST)
        die_errno("layer: make %s/layers", o->plan->layers);
    all = open_real(o->disk, "layers", O_DIRECTORY);
    if (all < 0)
        die_errno("layer: open %s/layers", o->plan->layers);
    o->memory = make_dir(all, o->plan->layers_name, 0700);
    return o->memory;
}

static struct layer new_layer(struct overlays *o, mode_t mode)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", o->count++);
    CLEANUP_FD int dir = make_dir(memory_of(o), name, 0700);
    return (struct layer){make_dir(dir, "upper", mode), make_dir(dir, "work", 0700),
                          false};
}

static struct layer kept_layer(struct overlays *o, const char *name, mode_t mode)
{
    CLEANUP_FD int cache = open_real(disk_of(o), "cache", O_DIRECTORY);
    CLEANUP_FD int dir = cache < 0 ? -1 : open_real(cache, name, O_DIRECTORY);
    struct layer layer = {-1, -1, true};
    if (dir >= 0) {
        layer.upper = open_real(dir, "upper", O_DIRECTORY);
        layer.work = open_real(dir, "work", O_DIRECTORY);
    }
    if (layer.upper < 0 || layer.work < 0)
        die_errno("layer: open %s/cache/%s", o->plan->layers, name);
    if (fchmodat(dir, "upper", mode, 0) < 0)
        die_errno("layer: mode of %s", name);
    return layer;
}

static int set_layer(const struct overlays *o, int fs, const char *option, int fd)
{
    char path[40];
    (void)snprintf(path, sizeof path, "%s/%d", o->proc, fd);
    return fsconfig(fs, FSCONFIG_SET_STRING, option, path, 0);
}

static int configure(const struct overlays *o, int fs, int lower,
                     const struct layer *layer)
{
    if (set_layer(o, fs, "lowerdir", lower) < 0 ||
        set_layer(o, fs, "upperdir", layer->upper) < 0 ||
        set_layer(o, fs, "workdir", layer->work) < 0 ||
        fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "index", "off", 0) < 0 ||
        fsconfig(fs, FSCONFIG_SET_STRING, "xino", "off", 0) < 0)
        return -1;
    if (!layer->lasting && fsconfig(fs, FSCONFIG_SET_FLAG, "volatile", NULL, 0) < 0)
        return -1;
    return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
}

/* The kernel refuses an overlay that would show what a mount of the host hides, as it refuses
 * a clone without those mounts. */
static bool holds_mounts(int lower)
{
    CLEANUP_FD int clone =
        open_tree(lower, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    return clone < 0 && errno == EINVAL;
}

static void explain_and_die(int fs, const char *path)
{
    char why[200] = "";
    int saved = errno;
    if (read(fs, why, sizeof why - 1) <= 0)
        why[0] = '\0';
    why[strcspn(why, "\n")] = '\0';
    errno = saved;
    die_errno("overlay on %s (%s); sandbox.cache_mode = \"readonly\" does without", path,
              why);
}

int overlays_make(struct overlays *o, int pool, const struct plan_mount *entry, int lower)
{
    struct stat st;
    struct statvfs fs_info;
    o->pool = pool;
    if (fstat(lower, &st) < 0 || fstatvfs(lower, &fs_info) < 0)
        die_errno("stat %s", entry->path);
    mode_t mode = st.st_mode & MODE_BITS;
    struct layer layer =
        entry->layer ? kept_layer(o, entry->layer, mode) : new_layer(o, mode);
    CLEANUP_FD int upper = layer.upper;
    CLEANUP_FD int work = layer.work;
    CLEANUP_FD int fs = fsopen("overlay", FSOPEN_CLOEXEC);
    if (fs < 0)
        die_errno("fsopen overlay");
    if (configure(o, fs, lower, &layer) < 0) {
        int saved = errno;
        if (saved == EINVAL && holds_mounts(lower))
            return -1;
        errno = saved;
        explain_and_die(fs, entry->path);
    }
    unsigned int attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (fs_info.f_flag & ST_NOEXEC)
        attrs |= MOUNT_ATTR_NOEXEC;
    int made = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
    int kept = fcntl(lower, F_DUPFD_CLOEXEC, 0);
    if (made < 0 || kept < 0)
        die_errno("overlay on %s", entry->path);
    o->made[o->made_count++] = (struct overlay_made){entry->path, kept, steal_fd(&upper)};
    return made;
}
