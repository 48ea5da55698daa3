/* See mount.h.
 *
 * Order: the whole tree becomes read-only and private; then every source is cloned while the
 * host's view is still complete; then the new places are attached from the root downwards.
 * One tmpfs, the pool, gives the bodies of all masks, /dev, /dev/shm and the runtime directory;
 * it is attached under the new /dev, where no path reaches it. */
#include "mount.h"

#include "mount_dev.h"
#include "mount_util.h"
#include "places.h"
#include "util.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define LOCKED_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* One entry of the plan while it is built. */
struct place {
    const struct plan_mount *entry; /* borrowed */
    int source; /* detached clone, the O_PATH of an overlay, or -1: nothing to show */
    bool is_dir;
    bool skip;
};

struct builder {
    const struct plan *plan;
    struct place *places; /* owned; one for each mount of the plan */
    int pool;             /* O_PATH of the pool's root */
    int tmp_dir;          /* O_PATH of the backing directory of /tmp, on its own mount */
    int assets;           /* detached clone or -1 */
    int replay;           /* the same */
    unsigned int masks;   /* bodies with places inside that were made */
    struct mount_result *result;
};

bool mount_is_writable(enum mount_kind kind)
{
    return kind == MOUNT_ROOT || kind == MOUNT_PIN || kind == MOUNT_GRANT;
}

/* Everything below a write root is read-only, nosuid and nodev; then the top mount alone
 * becomes writable. A place that the host itself has read-only stays so. */
static void set_clone_attrs(int clone, const char *path, bool writable)
{
    mount_attrs(clone, path, true, LOCKED_ATTRS, 0);
    if (!writable)
        return;
    struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};
    if (mount_setattr(clone, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0)
        return;
    if (errno != EPERM)
        die_errno("make %s writable", path);
}

static bool is_granted(enum mount_kind kind)
{
    return kind == MOUNT_GRANT || kind == MOUNT_SOCKET;
}

/* What was granted must be what it was granted as; nothing else may stand in for it. */
static void check_granted(const struct plan_mount *entry, mode_t mode)
{
    if (entry->kind == MOUNT_GRANT && !S_ISREG(mode) && !S_ISDIR(mode))
        die("%s: only a file or a directory can be granted for writing", entry->path);
    if (entry->kind == MOUNT_SOCKET && !S_ISSOCK(mode))
        die("%s: it was granted as a socket and is none", entry->path);
}

int mount_open_source(const struct plan_mount *entry, struct stat *st)
{
    CLEANUP_FD int fd = open_real(AT_FDCWD, entry->path, 0);
    if (fd < 0 && !is_granted(entry->kind) &&
        (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return -1;
    if (fd < 0)
        die_errno("open %s", entry->path);
    if (fstat(fd, st) < 0)
        die_errno("stat %s", entry->path);
    check_granted(entry, st->st_mode);
    if ((entry->kind == MOUNT_ROOT || entry->kind == MOUNT_OVERLAY) &&
        !S_ISDIR(st->st_mode))
        return -1;
    return steal_fd(&fd);
}

static void open_source(struct place *place)
{
    const char *path = place->entry->path;
    enum mount_kind kind = place->entry->kind;
    struct stat st;
    CLEANUP_FD int fd = mount_open_source(place->entry, &st);
    if (fd < 0) {
        place->skip = true;
        return;
    }
    place->is_dir = S_ISDIR(st.st_mode);
    if (kind == MOUNT_OVERLAY) {
        place->source = steal_fd(&fd);
        return;
    }
    place->source = mount_clone(fd, path);
    set_clone_attrs(place->source, path, mount_is_writable(kind));
}

/* A directory of efr's that the command may read; path NULL is none. */
static int clone_shown(const char *path)
{
    if (!path)
        return -1;
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, O_DIRECTORY);
    if (fd < 0)
        die_errno("open %s", path);
    int clone = mount_clone(fd, path);
    mount_attrs(clone, path, true, LOCKED_ATTRS, 0);
    return clone;
}

static void open_sources(struct builder *b)
{
    stage("mount sources");
    for (size_t i = 0; i < b->plan->mount_count; i++) {
        struct place *place = &b->places[i];
        place->entry = &b->plan->mounts[i];
        place->source = -1;
        place->is_dir = true;
        enum mount_kind kind = place->entry->kind;
        if (mount_is_writable(kind) || kind == MOUNT_FLOOR || kind == MOUNT_OVERLAY ||
            kind == MOUNT_SOCKET)
            open_source(place);
    }
    overlays_open(&b->result->overlays, b->plan, b->plan->layers);
    CLEANUP_FD int tmp = open_real(AT_FDCWD, b->plan->tmp, O_DIRECTORY);
    if (tmp < 0)
        die_errno("open %s", b->plan->tmp);
    b->tmp_dir = mount_clone(tmp, b->plan->tmp);
    mount_attrs(b->tmp_dir, b->plan->tmp, true, LOCKED_ATTRS, 0);
    mount_attrs(b->tmp_dir, b->plan->tmp, false, 0, MOUNT_ATTR_RDONLY);
    b->assets = clone_shown(b->plan->assets);
    b->replay = clone_shown(b->plan->replay);
}

/* Makes the mount points that later places need below dir, a body of our own. Returns whether
 * there was one. */
static bool make_points(const struct builder *b, size_t from, const char *top, int dir)
{
    bool any = false;
    for (size_t i = from + 1; i < b->plan->mount_count; i++) {
        const struct place *place = &b->places[i];
        enum mount_kind kind = place->entry->kind;
        if (place->skip || kind == MOUNT_MASK || kind == MOUNT_PRIVATE ||
            !path_below(place->entry->path, top))
            continue;
        any = true;
        if (dir >= 0)
            mount_make_point(dir, place->entry->path + strlen(top) + 1, place->is_dir);
    }
    return any;
}

/* The body of one mask, cloned from the pool. */
static int mask_body(struct builder *b, size_t index, bool is_dir)
{
    const char *path = b->places[index].entry->path;
    if (!is_dir)
        return mount_clone_at(b->pool, "mask.file");
    if (!make_points(b, index, path, -1))
        return mount_clone_at(b->pool, "mask.dir");
    CLEANUP_FREE char *name = xasprintf("mask.%u", b->masks++);
    if (mkdirat(b->pool, name, 0700) < 0)
        die_errno("mask of %s", path);
    CLEANUP_FD int dir = open_real(b->pool, name, O_DIRECTORY);
    if (dir < 0)
        die_errno("mask of %s", path);
    (void)make_points(b, index, path, dir);
    return mount_clone_at(b->pool, name);
}

static void attach_mask(struct builder *b, size_t index)
{
    const char *path = b->places[index].entry->path;
    CLEANUP_FD int target = open_real(AT_FDCWD, path, 0);
    struct stat st;
    /* What this user cannot reach, the command cannot either: it has fewer rights. */
    if (target < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return;
    if (target < 0)
        die_errno("open %s", path);
    if (fstat(target, &st) < 0)
        die_errno("stat %s", path);
    CLEANUP_FD int body = mask_body(b, index, S_ISDIR(st.st_mode));
    mount_attrs(body, path, false, LOCKED_ATTRS | MOUNT_ATTR_NOEXEC, 0);
    mount_attach(body, target, path);
}

static void attach_private(struct builder *b, size_t index)
{
    const char *path = b->places[index].entry->path;
    CLEANUP_FD int target = open_real(AT_FDCWD, path, O_DIRECTORY);
    if (target < 0 && errno == ENOENT)
        return; /* a system without it: nothing to hide, and nothing is created */
    if (target < 0)
        die_errno("open %s", path);
    /* The second clone is taken from the first mount, which is attached by then. */
    CLEANUP_FD int body = -1;
    if (b->tmp_dir >= 0) {
        body = steal_fd(&b->tmp_dir);
        (void)make_points(b, index, path, body);
    } else {
        CLEANUP_FD int first = open_real(AT_FDCWD, "/tmp", O_DIRECTORY);
        if (first < 0)
            die_errno("open /tmp");
        body = mount_clone_at(first, "");
        (void)make_points(b, index, path, body);
    }
    mount_attach(body, target, path);
    place_writable(b->result, path, PLACE_PRIVATE);
}

static void attach_shown(int clone, const char *runtime, const char *name)
{
    if (clone < 0)
        return;
    CLEANUP_FREE char *inside = xasprintf("%s/%s", runtime, name);
    CLEANUP_FD int point = open_real(AT_FDCWD, inside, O_DIRECTORY);
    if (point < 0)
        die_errno("open %s", inside);
    mount_attach(clone, point, inside);
}

static void attach_runtime(struct builder *b, size_t index)
{
    const char *path = b->places[index].entry->path;
    CLEANUP_FD int target = open_real(AT_FDCWD, path, O_DIRECTORY);
    if (target < 0)
        die_errno("no place for the runtime directory %s", path);
    CLEANUP_FD int body = mount_clone_at(b->pool, "runtime");
    (void)make_points(b, index, path, body);
    mount_attrs(body, path, false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0);
    mount_attach(body, target, path);
    place_writable(b->result, path, PLACE_PRIVATE);
    attach_shown(b->assets, path, "efr-sbx");
    attach_shown(b->replay, path, "efr-sbx/replay");
}

static void attach_source(struct builder *b, size_t index)
{
    struct place *place = &b->places[index];
    const char *path = place->entry->path;
    if (place->skip)
        return;
    CLEANUP_FD int target = open_real(AT_FDCWD, path, 0);
    if (target < 0 && place->entry->kind == MOUNT_FLOOR && errno == ENOENT)
        return; /* hidden by a mask, so nothing can be written there */
    if (target < 0)
        die_errno("open %s", path);
    mount_attach(place->source, target, path);
    (void)close(steal_fd(&place->source));
    if (mount_is_writable(place->entry->kind))
        place_writable(b->result, path, PLACE_WRITABLE);
    if (place->entry->kind != MOUNT_SOCKET)
        return;
    CLEANUP_FD int socket_fd = open_real(AT_FDCWD, path, 0);
    if (socket_fd < 0)
        die_errno("open %s again", path);
    place_add(b->result, socket_fd, PLACE_SOCKET, path);
}

static void attach_overlay(struct builder *b, size_t index)
{
    struct place *place = &b->places[index];
    const char *path = place->entry->path;
    if (place->skip)
        return;
    CLEANUP_FD int lower = steal_fd(&place->source);
    CLEANUP_FD int target = open_real(AT_FDCWD, path, O_DIRECTORY);
    if (target < 0)
        die_errno("open %s", path);
    CLEANUP_FD int body =
        overlays_make(&b->result->overlays, b->pool, place->entry, lower);
    if (body < 0)
        return;
    mount_attach(body, target, path);
    place_writable(b->result, path, PLACE_WRITABLE);
}

static void attach_all(struct builder *b)
{
    for (size_t i = 0; i < b->plan->mount_count; i++) {
        switch (b->plan->mounts[i].kind) {
        case MOUNT_MASK:
            attach_mask(b, i);
            break;
        case MOUNT_PRIVATE:
            attach_private(b, i);
            break;
        case MOUNT_RUNTIME:
            attach_runtime(b, i);
            break;
        case MOUNT_OVERLAY:
            attach_overlay(b, i);
            break;
        case MOUNT_ROOT:
        case MOUNT_PIN:
        case MOUNT_GRANT:
        case MOUNT_SOCKET:
        case MOUNT_FLOOR:
            attach_source(b, i);
            break;
        }
    }
}

static void make_pool_entry(int pool, const char *name, mode_t mode)
{
    /* The umask is 0 here, so the modes are exact. */
    if (mkdirat(pool, name, mode) < 0)
        die_errno("pool: %s", name);
}

static void fill_pool(int pool)
{
    make_pool_entry(pool, "mask.dir", 0500);
    make_pool_entry(pool, "dev", 0755);
    make_pool_entry(pool, "shm", 01777);
    make_pool_entry(pool, "runtime", 0700);
    make_pool_entry(pool, "runtime/efr-sbx", 0500);
    CLEANUP_FD int file =
        openat(pool, "mask.file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    if (file < 0)
        die_errno("pool: mask.file");
}

void mount_all(const struct plan *plan, const char *terminal, struct mount_result *result)
{
    struct builder b = {
        .plan = plan, .tmp_dir = -1, .assets = -1, .replay = -1, .result = result};
    b.places = xcalloc(plan->mount_count, sizeof *b.places);
    result->write_fds = xcalloc(plan->mount_count + PRIVATE_MOUNTS, sizeof(int));
    mode_t mask = umask(0);
    stage("read-only root");
    mount_everything_readonly();
    open_sources(&b);
    stage("devices");
    struct dev_sources devices = dev_open_sources(terminal, &plan->devices);
    stage("pool");
    b.pool = mount_pool();
    fill_pool(b.pool);
    stage("devices");
    dev_build(b.pool, &devices);
    place_writable(result, "/dev/shm", PLACE_PRIVATE);
    stage("proc");
    mount_proc(plan->userns);
    stage("mounts");
    attach_all(&b);
    result->root_fd = open_real(AT_FDCWD, "/", O_DIRECTORY);
    if (result->root_fd < 0)
        die_errno("open /");
    free(b.places);
    (void)umask(mask);
}
