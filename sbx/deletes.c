/* See deletes.h. In a layer the kernel marks what was deleted with a device file 0:0, and a
 * directory that was deleted and made anew as opaque; what lies in one was never below. */
#include "deletes.h"

#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define MAX_PATHS 4096
#define MAX_NAME_BYTES 262144
#define MAX_DEPTH 64
#define MAX_ENTRIES 200000
#define PATH_BYTES 4096

struct list {
    char *bytes; /* owned; DELETES_MAX_BYTES */
    size_t used;
    size_t name_bytes;
    unsigned int paths;
    unsigned int entries; /* looked at */
    unsigned int other;   /* of this cache: not listed */
    bool begun;           /* this cache has a line */
    const struct overlay_made *cache;
    char path[PATH_BYTES]; /* of the entry that is looked at, in the cache */
};

static void add(struct list *list, const char *text)
{
    size_t len = strlen(text) + 1;
    if (list->used + len > DELETES_MAX_BYTES)
        return; /* cannot be: names are counted before, caches are few */
    memcpy(list->bytes + list->used, text, len);
    list->used += len;
}

static void begin_cache(struct list *list)
{
    if (list->begun)
        return;
    add(list, "cache");
    add(list, list->cache->path);
    list->begun = true;
}

static void add_path(struct list *list)
{
    size_t len = strlen(list->path) + 1;
    if (list->paths >= MAX_PATHS || list->name_bytes + len > MAX_NAME_BYTES) {
        list->other++;
        return;
    }
    list->paths++;
    list->name_bytes += len;
    begin_cache(list);
    add(list, "gone");
    add(list, list->path);
}

static bool is_opaque(int dir)
{
    char value = '\0';
    return fgetxattr(dir, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

static bool was_below(const struct list *list)
{
    CLEANUP_FD int fd = open_real(list->cache->lower, list->path, O_DIRECTORY);
    return fd >= 0;
}

static void walk(struct list *list, int dir, size_t path_len, unsigned int depth);

static void visit_dir(struct list *list, int dir, const char *name, unsigned int depth)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && is_opaque(fd)) {
        (void)close(fd);
        list->other += was_below(list);
    } else if (fd >= 0 && depth < MAX_DEPTH) {
        walk(list, fd, strlen(list->path), depth + 1);
    } else {
        list->other++;
        if (fd >= 0)
            (void)close(fd);
    }
}

static void visit(struct list *list, int dir, const struct dirent *entry,
                  unsigned int depth)
{
    struct stat st;
    if (entry->d_type != DT_CHR && entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
        return;
    if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISDIR(st.st_mode))
        visit_dir(list, dir, entry->d_name, depth);
    else if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
        add_path(list);
}

/* dir is taken over. */
static void walk(struct list *list, int dir, size_t path_len, unsigned int depth)
{
    DIR *stream = fdopendir(dir);
    const struct dirent *entry;
    if (!stream) {
        (void)close(dir);
        list->other++;
        return;
    }
    while ((entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        size_t len = strlen(name);
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (++list->entries > MAX_ENTRIES || path_len + len + 2 > PATH_BYTES) {
            list->other++;
            break;
        }
        size_t at = path_len;
        if (at > 0)
            list->path[at++] = '/';
        memcpy(list->path + at, name, len + 1);
        visit(list, dirfd(stream), entry, depth);
        list->path[path_len] = '\0';
    }
    (void)closedir(stream);
}

void deletes_write(const struct overlays *overlays, int fd)
{
    CLEANUP_FREE struct list *list = xcalloc(1, sizeof *list);
    CLEANUP_FREE char *bytes = xcalloc(1, DELETES_MAX_BYTES);
    bool any = false;
    list->bytes = bytes;
    add(list, "efr-deletes");
    add(list, "1");
    for (unsigned int i = 0; i < overlays->made_count; i++) {
        list->cache = &overlays->made[i];
        list->begun = false;
        list->other = 0;
        int top = openat(list->cache->upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (top < 0)
            list->other++;
        else
            walk(list, top, 0, 0);
        if (list->other > 0) {
            char number[16];
            (void)snprintf(number, sizeof number, "%u", list->other);
            begin_cache(list);
            add(list, "other");
            add(list, number);
        }
        any |= list->begun;
    }
    add(list, "end");
    if (any)
        (void)write_all(fd, list->bytes, list->used);
}
