/* See bwrap_args.h. */
#include "bwrap_args.h"

#include "mount.h"
#include "mount_util.h"
#include "places.h"
#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct builder {
    struct bwrap_args *args;
    const struct plan *plan;
    int *sources; /* owned array; O_PATH of what an entry shows, or -1 */
};

/* Fields ------------------------------------------------------------------------------------ */

static void put(struct builder *b, const char *text)
{
    struct bwrap_args *args = b->args;
    size_t len = strlen(text) + 1;
    args->bytes = xrealloc(args->bytes, args->used + len);
    memcpy(args->bytes + args->used, text, len);
    args->used += len;
}

static void put2(struct builder *b, const char *option, const char *value)
{
    put(b, option);
    put(b, value);
}

static void inherit(struct builder *b, int fd)
{
    struct bwrap_args *args = b->args;
    args->fds = xrealloc(args->fds, (args->fd_count + 1) * sizeof *args->fds);
    args->fds[args->fd_count++] = fd;
}

/* An option with a descriptor, which is taken over, and a place. */
static void put_fd(struct builder *b, const char *option, int fd, const char *place)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%d", fd);
    inherit(b, fd);
    put2(b, option, number);
    put(b, place);
}

/* Devices have no option with a descriptor; the name of one in /proc is the same. */
static void put_device(struct builder *b, int fd, const char *place)
{
    char name[32];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    inherit(b, fd);
    put2(b, "--dev-bind", name);
    put(b, place);
}

static void put_tmpfs(struct builder *b, const char *mode, const char *place)
{
    put2(b, "--perms", mode);
    put2(b, "--tmpfs", place);
}

/* What the entries are ---------------------------------------------------------------------- */

static bool is_host(enum mount_kind kind)
{
    return mount_is_writable(kind) || kind == MOUNT_FLOOR || kind == MOUNT_OVERLAY ||
           kind == MOUNT_SOCKET;
}

static bool at_or_below(const char *path, const char *dir)
{
    return strcmp(path, dir) == 0 || path_below(path, dir);
}

static void note(struct policy_entry *entry, const struct stat *st)
{
    entry->shown = true;
    entry->is_dir = S_ISDIR(st->st_mode);
    entry->dev = st->st_dev;
    entry->ino = st->st_ino;
}

static void open_sources(struct builder *b)
{
    stage("mount sources");
    for (size_t i = 0; i < b->plan->mount_count; i++) {
        const struct plan_mount *mount = &b->plan->mounts[i];
        struct policy_entry *entry = &b->args->entries[i];
        struct stat st;
        *entry = (struct policy_entry){.kind = mount->kind, .path = mount->path};
        b->sources[i] = -1;
        if (!is_host(mount->kind))
            continue;
        b->sources[i] = mount_open_source(mount, &st);
        if (b->sources[i] >= 0)
            note(entry, &st);
        b->args->overlays |= entry->shown && mount->kind == MOUNT_OVERLAY;
    }
}

/* Whether a later entry needs a place below this one: there it is made. */
static bool has_places(const struct builder *b, size_t index)
{
    const struct policy_entry *entries = b->args->entries;
    for (size_t i = index + 1; i < b->plan->mount_count; i++)
        if (is_host(entries[i].kind) && entries[i].shown &&
            path_below(entries[i].path, entries[index].path))
            return true;
    return false;
}

/* The entry that the place of another one lies on when that is mounted, or -1: the host's tree. */
static ssize_t cover_of(const struct builder *b, size_t index)
{
    const struct policy_entry *entries = b->args->entries;
    for (size_t i = index; i-- > 0;)
        if (entries[i].shown && at_or_below(entries[index].path, entries[i].path))
            return (ssize_t)i;
    return -1;
}

/* What stands in the call where an entry will be. Returns 0, or -1: nothing. */
static int look_inside(const struct builder *b, size_t index, struct stat *st)
{
    const char *path = b->args->entries[index].path;
    ssize_t over = cover_of(b, index);
    const struct policy_entry *cover = over < 0 ? NULL : &b->args->entries[over];
    CLEANUP_FD int fd = -1;
    if (cover && !is_host(cover->kind) && has_places(b, index)) {
        *st = (struct stat){.st_mode = S_IFDIR};
        return 0;
    }
    errno = ENOENT;
    if (cover && cover->kind == MOUNT_PRIVATE) {
        CLEANUP_FD int tmp = open_real(AT_FDCWD, b->plan->tmp, O_DIRECTORY);
        if (tmp < 0)
            die_errno("open %s", b->plan->tmp);
        fd = open_real(tmp, path + strlen(cover->path) + 1, 0);
    } else if (!cover || is_host(cover->kind)) {
        fd = open_real(AT_FDCWD, path, 0);
    }
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return -1;
    if (fd < 0)
        die_errno("open %s", path);
    if (fstat(fd, st) < 0)
        die_errno("stat %s", path);
    return 0;
}

static void open_private(struct builder *b, size_t index)
{
    const char *path = b->args->entries[index].path;
    struct stat st;
    CLEANUP_FD int place = open_real(AT_FDCWD, path, O_DIRECTORY);
    if (place < 0 && errno == ENOENT)
        return; /* a system without it: nothing to hide, and nothing is created */
    if (place < 0)
        die_errno("open %s", path);
    b->sources[index] = open_real(AT_FDCWD, b->plan->tmp, O_DIRECTORY);
    if (b->sources[index] < 0 || fstat(b->sources[index], &st) < 0)
        die_errno("open %s", b->plan->tmp);
    note(&b->args->entries[index], &st);
}

/* A body of the call's own has no number to expect. */
static void look_at_bodies(struct builder *b)
{
    stage("mounts");
    for (size_t i = 0; i < b->plan->mount_count; i++) {
        struct policy_entry *entry = &b->args->entries[i];
        struct stat st;
        if (entry->kind == MOUNT_PRIVATE)
            open_private(b, i);
        if (entry->kind != MOUNT_MASK && entry->kind != MOUNT_RUNTIME)
            continue;
        entry->shown = look_inside(b, i, &st) == 0;
        entry->is_dir = entry->shown && S_ISDIR(st.st_mode);
        if (entry->kind != MOUNT_RUNTIME || entry->is_dir)
            continue;
        /* Below a mask it is made; elsewhere nothing is created. */
        ssize_t over = cover_of(b, i);
        if (over < 0 || b->args->entries[over].kind != MOUNT_MASK)
            die("no place for the runtime directory %s", entry->path);
        entry->shown = entry->is_dir = true;
    }
}

/* Mounts ------------------------------------------------------------------------------------ */

/* The host's mounts below a writable place. */
struct below {
    struct builder *b;
    const char *source;
    const char *place;
};

static void close_one_below(void *context, const struct mount_line *line)
{
    struct below *below = context;
    if (!path_below(line->path, below->source))
        return;
    CLEANUP_FD int fd = open_real(AT_FDCWD, line->path, 0);
    if (fd < 0 || mount_id_of(fd) != line->id)
        return; /* out of reach, or below another mount; pid 1 looks again */
    CLEANUP_FREE char *inside =
        xasprintf("%s%s", below->place, line->path + strlen(below->source));
    put2(below->b, "--remount-ro", inside);
}

/* Only the top mount of a write root is writable. */
static void put_writable(struct builder *b, size_t index, const char *source)
{
    const struct policy_entry *entry = &b->args->entries[index];
    struct below below = {b, source, entry->path};
    put_fd(b, "--bind-fd", steal_fd(&b->sources[index]), entry->path);
    if (entry->is_dir)
        mount_table(close_one_below, &below);
}

static bool covered_later(const struct builder *b, size_t index)
{
    const struct policy_entry *entries = b->args->entries;
    for (size_t i = index + 1; i < b->plan->mount_count; i++)
        if (entries[i].shown && strcmp(entries[i].path, entries[index].path) == 0)
            return true;
    return false;
}

static void put_mask(struct builder *b, size_t index)
{
    const struct policy_entry *entry = &b->args->entries[index];
    if (entry->is_dir) {
        put_tmpfs(b, has_places(b, index) ? "0700" : "0500", entry->path);
        if (covered_later(b, index))
            put2(b, "--remount-ro", entry->path);
        return;
    }
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (empty < 0)
        die_errno("open /dev/null");
    put2(b, "--perms", "0400");
    put_fd(b, "--ro-bind-data", empty, entry->path);
}

static void put_shown(struct builder *b, const char *dir, const char *place)
{
    if (!dir)
        return;
    int fd = open_real(AT_FDCWD, dir, O_DIRECTORY);
    if (fd < 0)
        die_errno("open %s", dir);
    put_fd(b, "--ro-bind-fd", fd, place);
}

static void put_runtime(struct builder *b, const char *path)
{
    CLEANUP_FREE char *assets = xasprintf("%s/efr-sbx", path);
    CLEANUP_FREE char *replay = xasprintf("%s/efr-sbx/replay", path);
    CLEANUP_FREE char *staging = xasprintf("%s/" BWRAP_STAGING, path);
    put_tmpfs(b, "0700", path);
    put2(b, "--perms", "0500");
    put2(b, "--dir", assets);
    put_shown(b, b->plan->assets, assets);
    put_shown(b, b->plan->replay, replay);
    if (!b->args->overlays)
        return;
    int layers = open_real(AT_FDCWD, b->plan->layers, O_DIRECTORY);
    if (layers < 0)
        die_errno("open %s", b->plan->layers);
    put_fd(b, "--bind-fd", layers, staging);
}

static void put_mounts(struct builder *b)
{
    for (size_t i = 0; i < b->plan->mount_count; i++) {
        const struct policy_entry *entry = &b->args->entries[i];
        if (!entry->shown)
            continue;
        switch (entry->kind) {
        case MOUNT_MASK:
            put_mask(b, i);
            break;
        case MOUNT_PRIVATE:
            put_writable(b, i, b->plan->tmp);
            break;
        case MOUNT_RUNTIME:
            put_runtime(b, entry->path);
            break;
        case MOUNT_OVERLAY:
            break; /* made later, by layers.c */
        case MOUNT_ROOT:
        case MOUNT_PIN:
        case MOUNT_GRANT:
            put_writable(b, i, entry->path);
            break;
        case MOUNT_SOCKET:
        case MOUNT_FLOOR:
            put_fd(b, "--ro-bind-fd", steal_fd(&b->sources[i]), entry->path);
            break;
        }
    }
    /* A mask is closed once the places inside it are there. */
    for (size_t i = 0; i < b->plan->mount_count; i++) {
        const struct policy_entry *entry = &b->args->entries[i];
        if (entry->kind == MOUNT_MASK && entry->shown && entry->is_dir &&
            !covered_later(b, i))
            put2(b, "--remount-ro", entry->path);
    }
}

/* The kernel's trees ------------------------------------------------------------------------ */

static int open_device(const char *path, const char *otherwise)
{
    struct stat st;
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, 0);
    if (fd < 0)
        die_errno("open %s", path);
    if (fstat(fd, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
        die("%s%s", path, otherwise);
    return steal_fd(&fd);
}

static void put_dev(struct builder *b, const char *terminal)
{
    stage("devices");
    put2(b, "--dev", "/dev");
    if (terminal)
        put_device(b, open_device(terminal, " is not a device"), "/dev/console");
    for (size_t i = 0; i < b->plan->devices.count; i++) {
        const char *path = b->plan->devices.items[i];
        put_device(b, open_device(path, ": it was granted as a device and is none"),
                   path);
    }
    put_tmpfs(b, "1777", "/dev/shm");
    put2(b, "--remount-ro", "/dev");
}

/* Settings and switches of the machine stay read-only where the files of processes are not. */
static void put_machine_entry(struct builder *b, int proc, const char *name)
{
    struct stat st;
    if (!mount_is_of_machine(proc, name))
        return;
    CLEANUP_FD int fd = open_real(proc, name, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        die_errno("open /proc/%s", name);
    CLEANUP_FREE char *place = xasprintf("/proc/%s", name);
    put_fd(b, "--ro-bind-fd", steal_fd(&fd), place);
}

static void put_proc(struct builder *b)
{
    stage("proc");
    put2(b, "--proc", "/proc");
    if (!b->plan->userns) {
        put2(b, "--remount-ro", "/proc");
        return;
    }
    CLEANUP_FD int proc = open_real(AT_FDCWD, "/proc", O_DIRECTORY);
    CLEANUP_FD int list_fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd < 0 ? NULL : fdopendir(steal_fd(&list_fd));
    if (!list)
        die_errno("open /proc");
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        put_machine_entry(b, proc, entry->d_name);
    (void)closedir(list);
}

void bwrap_args_build(struct bwrap_args *args, const struct plan *plan,
                      const char *terminal, int status_fd)
{
    static const char *const ALWAYS[] = {
        "--unshare-user",   "--unshare-pid",     "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup", "--die-with-parent", "--as-pid-1"};
    char number[16];
    struct builder b = {.args = args, .plan = plan};
    *args = (struct bwrap_args){0};
    args->entries = xcalloc(plan->mount_count, sizeof *args->entries);
    b.sources = xcalloc(plan->mount_count, sizeof *b.sources);
    for (size_t i = 0; i < sizeof ALWAYS / sizeof *ALWAYS; i++)
        put(&b, ALWAYS[i]);
    if (!plan->userns)
        put(&b, "--disable-userns");
    if (!plan->host_network)
        put(&b, "--unshare-net");
    put2(&b, "--cap-drop", "ALL");
    (void)snprintf(number, sizeof number, "%d", status_fd);
    put2(&b, "--json-status-fd", number);
    put2(&b, "--ro-bind", "/");
    put(&b, "/");
    open_sources(&b);
    look_at_bodies(&b);
    put_proc(&b);
    put_dev(&b, terminal);
    stage("mounts");
    put_mounts(&b);
    put2(&b, "--chdir", "/");
    for (size_t i = 0; i < plan->mount_count; i++)
        if (b.sources[i] >= 0)
            (void)close(b.sources[i]);
    free(b.sources);
}

void bwrap_args_finish(struct bwrap_args *args)
{
    for (size_t i = 0; i < args->fd_count; i++)
        (void)close(args->fds[i]);
    free(args->bytes);
    free(args->fds);
    free(args->entries);
    *args = (struct bwrap_args){0};
}
