/*
 * Removal of whole trees: efr_fs_rmtree of fs.h. Any thread.
 *
 * One descriptor walks the tree. It goes down by name without following links and comes
 * up through ".." only to the directory that it came from (device and inode), so a tree
 * that is moved or swapped meanwhile ends the work and never leads it elsewhere.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "fs.h"
#include "util.h"

struct level {
    char *name; /* owned; of this directory in the one above */
    dev_t up_dev;
    ino_t up_ino;
};

struct walk {
    int fd;               /* the directory we are in */
    struct level *levels; /* owned; levels[0] is the top of the tree */
    size_t count;
    size_t cap;
    int refilled; /* directories that had new entries when we removed them */
};

/* Somebody who adds entries as fast as we remove them must not keep us here. */
#define REFILLED_MAX 100

enum step {
    STEP_EMPTY, /* the directory has no entry left */
    STEP_DOWN,  /* the walk went into a subdirectory */
    STEP_FAILED,
};

static void finish(struct walk *walk)
{
    for (size_t i = 0; i < walk->count; i++)
        free(walk->levels[i].name);
    free(walk->levels);
    efr_close(&walk->fd);
}

static int open_dir(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 || errno != EACCES)
        return fd;
    /* Not readable: give ourselves the right, on the very object and not on a name. */
    CLEANUP_FD int path_fd =
        openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (path_fd < 0)
        return -1;
    char proc[64];
    (void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
    if (chmod(proc, 0700) != 0)
        return -1;
    return openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Goes into the directory name of the current one. */
static int go_down(struct walk *walk, const char *name)
{
    struct stat up;
    struct stat st;
    if (fstat(walk->fd, &up) != 0)
        return -1;
    CLEANUP_FD int fd = open_dir(walk->fd, name);
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    if (st.st_dev != up.st_dev) { /* a mount is somebody's, not part of this tree */
        errno = EXDEV;
        return -1;
    }
    if ((st.st_mode & 0700) != 0700 && fchmod(fd, 0700) != 0)
        return -1;
    if (walk->count == walk->cap) {
        walk->cap = walk->cap ? walk->cap * 2 : 16;
        walk->levels = xrealloc(walk->levels, walk->cap * sizeof(*walk->levels));
    }
    walk->levels[walk->count++] =
        (struct level){.name = xstrdup(name), .up_dev = up.st_dev, .up_ino = up.st_ino};
    efr_close(&walk->fd);
    walk->fd = steal_fd(&fd);
    return 0;
}

/* Leaves the current directory and removes it. */
static int go_up(struct walk *walk)
{
    struct level *level = &walk->levels[walk->count - 1];
    CLEANUP_FD int fd = openat(walk->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    if (st.st_dev != level->up_dev || st.st_ino != level->up_ino) {
        errno = ESTALE;
        return -1;
    }
    if (unlinkat(fd, level->name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        if (errno != ENOTEMPTY || ++walk->refilled > REFILLED_MAX)
            return -1;
    }
    free(level->name);
    walk->count--;
    efr_close(&walk->fd);
    walk->fd = steal_fd(&fd);
    return 0;
}

/* Removes one entry of the current directory, or goes into it when it is not empty. */
static enum step remove_entry(struct walk *walk, const char *name)
{
    if (unlinkat(walk->fd, name, 0) == 0 || errno == ENOENT)
        return STEP_EMPTY;
    int errnum = errno;
    if (unlinkat(walk->fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return STEP_EMPTY;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == EACCES) {
        if (go_down(walk, name) == 0)
            return STEP_DOWN;
    }
    if (errno == ENOTDIR)
        errno = errnum;
    return STEP_FAILED;
}

/* Removes what is in the current directory until it is empty or the walk went down. */
static enum step empty_dir(struct walk *walk)
{
    int fd = openat(walk->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        efr_close(&fd);
        return STEP_FAILED;
    }
    enum step step = STEP_EMPTY;
    struct dirent *entry;
    while (step == STEP_EMPTY && (entry = readdir(dir)) != NULL) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        step = remove_entry(walk, entry->d_name);
    }
    int errnum = errno;
    (void)closedir(dir);
    errno = errnum;
    return step;
}

static int walk_all(struct walk *walk)
{
    while (walk->count > 0) {
        enum step step = empty_dir(walk);
        if (step == STEP_FAILED)
            return -1;
        if (step == STEP_EMPTY && go_up(walk) != 0)
            return -1;
    }
    return 0;
}

/* fd is the directory of name and is taken over; path names the whole in messages. */
static int remove_below(int fd, const char *name, const char *path, struct efr_err *err)
{
    struct walk walk = {.fd = fd};
    enum step step = remove_entry(&walk, name);
    int rc = step == STEP_FAILED || (step == STEP_DOWN && walk_all(&walk) != 0) ? -1 : 0;
    if (rc != 0)
        rc = efr_err_errno(err, errno, "remove %s", path);
    finish(&walk);
    return rc;
}

int efr_fs_rmtree_at(int dir_fd, const char *name, struct efr_err *err)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return efr_err_errno(err, errno, "remove %s", name);
    return remove_below(fd, name, name, err);
}

int efr_fs_rmtree(const char *path, struct efr_err *err)
{
    char parent[4096];
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len >= sizeof(parent))
        return efr_err_errno(err, ENAMETOOLONG, "remove %s", path);
    memcpy(parent, path, len);
    parent[len] = '\0';
    char *slash = strrchr(parent, '/');
    const char *name = slash ? slash + 1 : parent;
    if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
        return efr_err_errno(err, EINVAL, "remove %s", path);
    const char *dir = slash == parent ? "/" : slash ? parent : ".";
    if (slash && slash != parent)
        *slash = '\0';
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : efr_err_errno(err, errno, "remove %s", path);
    return remove_below(fd, name, path, err);
}
