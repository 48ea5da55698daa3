/*
 * Walking a tree by descriptors: see tree.h. Each directory is opened through no link and onto no
 * mount, watched before it is read, and its names are kept as bytes. Others change the tree at
 * the same moment; what cannot be told is left for the next walk.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "buf.h"
#include "dir.h"
#include "err.h"
#include "fs.h"
#include "tree_list.h"
#include "util.h"

#define WATCH_MASK                                                                       \
    (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM |    \
     IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)
#define EVENT_BYTES 16384
#define DEPTH_MAX 128 /* each level holds a descriptor */
#define NS_PER_S 1000000000LL
/* A change within the same step of the kernel's clock leaves the times as they were. */
#define SLACK_NS (50 * 1000000LL)
#define SLACK_REMOTE_NS (3 * NS_PER_S)
#define CIFS_MAGIC 0xFF534D42
#define SMB2_MAGIC 0xFE534D42
#define FUSE_MAGIC 0x65735546
#define P9_MAGIC 0x01021997

struct efr_tree {
    int fd;      /* owned */
    int inotify; /* owned; -1: none */
    bool watched;
    struct tree_list base; /* the committed walk */
    struct tree_list now;  /* the newest */
    size_t base_at;        /* where efr_tree_next stands */
    size_t now_at;
    struct tree_set entered;
    struct tree_set passed;
    struct tree_set asked;
};

struct walk {
    struct efr_tree *tree;
    const struct efr_tree_limits *limits;
    struct efr_tree_sums *sums;
    struct tree_list list;
    struct efr_buf
        path; /* of the directory, with a slash at its end; the root is empty */
    dev_t dev;
    uid_t uid;
    uint64_t mount; /* of the root */
    int64_t sure_before_ns;
    int depth;
    struct efr_err *err;
};

/* ---- the tree ---- */

struct efr_tree *efr_tree_create(const char *path, struct efr_err *err)
{
    int fd = efr_dir_open(path);
    if (fd < 0) {
        efr_err_errno(err, errno, "open directory %s", path);
        return NULL;
    }
    struct efr_tree *tree = xcalloc(1, sizeof(*tree));
    tree->fd = fd;
    tree->inotify = -1;
    return tree;
}

void efr_tree_destroy(struct efr_tree *tree)
{
    if (!tree)
        return;
    efr_close(&tree->fd);
    efr_close(&tree->inotify);
    tree_list_finish(&tree->base);
    tree_list_finish(&tree->now);
    tree_set_finish(&tree->entered);
    tree_set_finish(&tree->passed);
    tree_set_finish(&tree->asked);
    free(tree);
}

int efr_tree_fd(const struct efr_tree *tree)
{
    return tree->fd;
}

void efr_tree_decide(struct efr_tree *tree, const char *path, bool enter)
{
    tree_set_add(enter ? &tree->entered : &tree->passed, path);
}

void efr_tree_forget(struct efr_tree *tree)
{
    tree_set_finish(&tree->entered);
    tree_set_finish(&tree->passed);
}

void efr_tree_ask_for(struct efr_tree *tree, const char *name)
{
    tree_set_add(&tree->asked, name);
}

/* ---- watching ---- */

static void stop_watching(struct efr_tree *tree)
{
    tree->watched = false;
    efr_close(&tree->inotify);
}

/* What the queue holds belongs to the time before this walk. */
static void drain(struct efr_tree *tree)
{
    char bytes[EVENT_BYTES];
    ssize_t got;
    do
        got = read(tree->inotify, bytes, sizeof(bytes));
    while (got > 0 || (got < 0 && errno == EINTR));
}

static void start_watching(struct walk *walk)
{
    struct efr_tree *tree = walk->tree;
    if (!walk->limits->watch || walk->sums->remote) {
        stop_watching(tree);
        return;
    }
    if (tree->inotify < 0)
        tree->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    else
        drain(tree);
    tree->watched = tree->inotify >= 0;
}

static void watch_dir(struct efr_tree *tree, int fd)
{
    char link[32];
    if (!tree->watched)
        return;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (inotify_add_watch(tree->inotify, link, WATCH_MASK) >= 0)
        return;
    stop_watching(tree);
}

bool efr_tree_is_quiet(struct efr_tree *tree)
{
    char bytes[EVENT_BYTES];
    if (!tree->watched)
        return false;
    if (read(tree->inotify, bytes, sizeof(bytes)) < 0 && errno == EAGAIN)
        return true;
    tree->watched = false; /* until the next walk */
    return false;
}

/* ---- walking ---- */

static int64_t ctime_ns(const struct stat *st)
{
    return (int64_t)st->st_ctim.tv_sec * NS_PER_S + st->st_ctim.tv_nsec;
}

static bool is_remote(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return true;
    switch ((unsigned long)fs.f_type) {
    case NFS_SUPER_MAGIC:
    case CIFS_MAGIC:
    case SMB2_MAGIC:
    case SMB_SUPER_MAGIC:
    case FUSE_MAGIC:
    case P9_MAGIC:
    case CODA_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case MSDOS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

/* What a name is; *mount is the mount that it lies on. Nothing is asked of a server, so a file
 * system below that does not answer holds nobody up; where the root itself is remote, it must. */
static int look(const struct walk *walk, int dir_fd, const char *name, struct stat *st,
                uint64_t *mount)
{
    struct statx got;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH |
                (walk->sums->remote ? 0 : AT_STATX_DONT_SYNC);
    if (statx(dir_fd, name, flags, STATX_BASIC_STATS | STATX_MNT_ID, &got) != 0)
        return -1;
    *st = (struct stat){
        .st_mode = got.stx_mode,
        .st_uid = got.stx_uid,
        .st_gid = got.stx_gid,
        .st_size = (off_t)got.stx_size,
        .st_ino = got.stx_ino,
        .st_nlink = got.stx_nlink,
        .st_dev = makedev(got.stx_dev_major, got.stx_dev_minor),
        .st_ctim = {.tv_sec = got.stx_ctime.tv_sec, .tv_nsec = got.stx_ctime.tv_nsec},
    };
    *mount = got.stx_mnt_id;
    return 0;
}

static struct efr_tree_entry *add_entry(struct walk *walk, const char *name,
                                        const struct stat *st)
{
    struct efr_tree_entry entry = {
        .mode = st->st_mode,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .ino = st->st_ino,
        .ctime_ns = ctime_ns(st),
    };
    entry.unsure = entry.ctime_ns >= walk->sure_before_ns;
    walk->sums->entries++;
    return tree_list_add(&walk->list, &entry, &walk->path, name);
}

/* Whether this user may not read it. The owner's own bit tells without a question. */
static bool is_unreadable(const struct walk *walk, int dir_fd, const char *name,
                          const struct stat *st)
{
    if (walk->uid == 0 || (st->st_uid == walk->uid && (st->st_mode & S_IRUSR)))
        return false;
    return faccessat(dir_fd, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0;
}

static void take_file(struct walk *walk, int dir_fd, const char *name,
                      const struct stat *st, uint64_t mount)
{
    struct efr_tree_entry *entry = add_entry(walk, name, st);
    if (mount != walk->mount) {
        entry->mark = EFR_TREE_MOUNT;
        return;
    }
    if (S_ISLNK(st->st_mode))
        return;
    if (!S_ISREG(st->st_mode)) {
        entry->mark = EFR_TREE_SPECIAL;
        return;
    }
    if (st->st_nlink > 1)
        walk->sums->linked++;
    if (entry->size > walk->limits->max_bytes)
        entry->mark = EFR_TREE_BIG;
    else if (is_unreadable(walk, dir_fd, name, st))
        entry->mark = EFR_TREE_UNREADABLE;
}

static int walk_names(struct walk *walk, int fd, struct tree_names *names);

/* Reads the names of an open directory. Returns 0 or an errno value. */
static int read_names(int fd, struct tree_names *names)
{
    int copy = efr_dir_open_at(fd, ".");
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        int errnum = errno;
        efr_close(&copy);
        return errnum;
    }
    const struct dirent *item;
    while (errno = 0, (item = readdir(stream)) != NULL)
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            tree_names_add(names, item->d_name);
    int errnum = errno;
    (void)closedir(stream);
    tree_names_sort(names);
    return errnum;
}

/* Whether the caller wants this directory entered; path has a terminator. */
static enum efr_tree_mark wish(const struct efr_tree *tree, const char *path,
                               const char *name)
{
    if (tree_set_has(&tree->passed, path))
        return EFR_TREE_PASSED;
    if (tree_set_has(&tree->asked, name) && !tree_set_has(&tree->entered, path))
        return EFR_TREE_OPEN;
    return EFR_TREE_OK;
}

static enum efr_tree_mark open_dir(const struct walk *walk, int parent, const char *name,
                                   int *fd)
{
    *fd = efr_dir_open_at(parent, name);
    if (*fd < 0)
        return errno == EXDEV ? EFR_TREE_MOUNT : EFR_TREE_UNREADABLE;
    struct stat st;
    if (fstat(*fd, &st) != 0 || st.st_dev != walk->dev)
        return EFR_TREE_MOUNT;
    return walk->depth >= DEPTH_MAX ? EFR_TREE_PASSED : EFR_TREE_OK;
}

static int enter(struct walk *walk, int fd, size_t at)
{
    struct tree_names names = {0};
    watch_dir(walk->tree, fd);
    int rc = 0;
    int errnum = read_names(fd, &names);
    if (errnum != 0) {
        walk->list.items[at].mark = EFR_TREE_UNREADABLE;
    } else if (tree_names_has(&names, ".git")) {
        walk->list.items[at].mark = EFR_TREE_NESTED;
    } else {
        walk->list.items[at].empty = names.count == 0;
        walk->depth++;
        rc = walk_names(walk, fd, &names);
        walk->depth--;
    }
    tree_names_finish(&names);
    return rc;
}

static int take_dir(struct walk *walk, int parent, const char *name,
                    const struct stat *st)
{
    (void)add_entry(walk, name, st);
    size_t at = walk->list.count - 1;
    size_t len = walk->path.len;
    efr_buf_append(&walk->path, name, strlen(name) + 1); /* with its terminator */
    enum efr_tree_mark mark = wish(walk->tree, walk->path.data, name);
    CLEANUP_FD int fd = -1;
    int rc = 0;
    if (mark == EFR_TREE_OK)
        mark = open_dir(walk, parent, name, &fd);
    walk->list.items[at].mark = (uint8_t)mark;
    walk->path.data[walk->path.len - 1] = '/';
    if (mark == EFR_TREE_OK)
        rc = enter(walk, fd, at);
    walk->path.len = len;
    return rc;
}

static int walk_names(struct walk *walk, int fd, struct tree_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *name = tree_names_at(names, i);
        struct stat st;
        uint64_t mount;
        if (walk->path.len == 0 && strcmp(name, ".git") == 0)
            continue;
        if (look(walk, fd, name, &st, &mount) != 0)
            continue; /* gone meanwhile: the watch or the next walk sees it */
        if (walk->sums->entries >= walk->limits->max_entries)
            return efr_err_set(walk->err, "EFR_TREE_TOO_MANY", "more than %zu entries",
                               walk->limits->max_entries);
        if (!S_ISDIR(st.st_mode))
            take_file(walk, fd, name, &st, mount);
        else if (take_dir(walk, fd, name, &st) != 0)
            return -1;
    }
    return 0;
}

static int64_t coarse_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int efr_tree_walk(struct efr_tree *tree, const struct efr_tree_limits *limits,
                  struct efr_tree_sums *sums, struct efr_err *err)
{
    struct walk walk = {
        .tree = tree, .limits = limits, .sums = sums, .uid = geteuid(), .err = err};
    struct stat st;
    *sums = (struct efr_tree_sums){0};
    sums->remote = is_remote(tree->fd);
    if (look(&walk, tree->fd, "", &st, &walk.mount) != 0)
        return efr_err_errno(err, errno, "stat the root");
    walk.dev = st.st_dev;
    walk.sure_before_ns = coarse_now_ns() - (sums->remote ? SLACK_REMOTE_NS : SLACK_NS);
    start_watching(&walk);
    watch_dir(tree, tree->fd);
    struct tree_names names = {0};
    int errnum = read_names(tree->fd, &names);
    int rc = errnum ? efr_err_errno(err, errnum, "read the root")
                    : walk_names(&walk, tree->fd, &names);
    tree_names_finish(&names);
    efr_buf_finish(&walk.path);
    tree_list_finish(&tree->now);
    tree->base_at = tree->now_at = 0;
    if (rc != 0) {
        tree_list_finish(&walk.list);
        tree->watched = false;
        return -1;
    }
    tree->now = walk.list;
    sums->watched = tree->watched;
    return 0;
}

/* ---- comparing ---- */

static bool is_same(const struct efr_tree_entry *a, const struct efr_tree_entry *b)
{
    if (a->mode != b->mode || a->uid != b->uid || a->gid != b->gid || a->mark != b->mark)
        return false;
    if (S_ISDIR(a->mode))
        return a->empty == b->empty;
    return !a->unsure && a->size == b->size && a->ino == b->ino &&
           a->ctime_ns == b->ctime_ns;
}

bool efr_tree_next(struct efr_tree *tree, struct efr_tree_change *change)
{
    struct tree_list *base = &tree->base, *now = &tree->now;
    while (tree->base_at < base->count || tree->now_at < now->count) {
        int order = tree_list_compare(base, tree->base_at, now, tree->now_at);
        const struct efr_tree_entry *before =
            order <= 0 ? &base->items[tree->base_at++] : NULL;
        const struct efr_tree_entry *after =
            order >= 0 ? &now->items[tree->now_at++] : NULL;
        if (before && after && is_same(before, after))
            continue;
        const struct efr_tree_entry *named = after ? after : before;
        *change = (struct efr_tree_change){
            .path = (after ? now : base)->paths.data + named->path_at,
            .path_len = named->path_len,
            .before = before,
            .after = after,
        };
        return true;
    }
    return false;
}

void efr_tree_mark_unread(struct efr_tree *tree, const char *const *paths,
                          const bool *failed, size_t count)
{
    size_t next = 0;
    for (size_t i = 0; i < tree->now.count; i++) {
        struct efr_tree_entry *entry = &tree->now.items[i];
        while (next < count && !failed[next])
            next++;
        if (next == count)
            return;
        if (strlen(paths[next]) != entry->path_len ||
            memcmp(tree->now.paths.data + entry->path_at, paths[next], entry->path_len) !=
                0)
            continue;
        entry->mark = EFR_TREE_UNREAD;
        next++;
    }
}

void efr_tree_commit(struct efr_tree *tree)
{
    tree_list_finish(&tree->base);
    tree->base = tree->now;
    tree->now = (struct tree_list){0};
    tree->base_at = tree->now_at = 0;
}

/* ---- keeping ---- */

int efr_tree_save(const struct efr_tree *tree, const char *path, const char *tag,
                  struct efr_err *err)
{
    return tree_list_save(&tree->base, path, tag, err);
}

int efr_tree_load(struct efr_tree *tree, const char *path, const char *tag,
                  struct efr_err *err)
{
    struct tree_list list = {0};
    if (tree_list_load(&list, path, tag, err) != 0)
        return -1;
    tree_list_finish(&tree->base);
    tree->base = list;
    return 0;
}
