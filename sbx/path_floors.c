/* See path_floors.h. */
#include "path_floors.h"

#include "util.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LINKS 40

/* The deepest entry at or above a path: it says what the command may do there. */
static const struct plan_mount *cover(const struct plan *plan, const char *path)
{
    const struct plan_mount *found = NULL;
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct plan_mount *m = &plan->mounts[i];
        if (strcmp(m->path, path) == 0 || path_below(path, m->path))
            found = m;
    }
    return found;
}

/* Writable, and the host sees what is written. */
static bool is_writable(const struct plan_mount *m)
{
    return m && (m->kind == MOUNT_ROOT || m->kind == MOUNT_PIN || m->kind == MOUNT_GRANT);
}

/* Follows path one part at a time and dies at a link that lies in a write root. Whatever cannot be
 * followed ends the walk: then there is no directory either. */
static void check_links(const struct plan *plan, const char *path)
{
    CLEANUP_FREE char *rest = xstrdup(path);
    char done[PATH_MAX] = "";
    for (int links = 0; links <= MAX_LINKS && *rest;) {
        char *part = rest + strspn(rest, "/");
        size_t len = strcspn(part, "/");
        char target[PATH_MAX];
        if (len == 0)
            return;
        CLEANUP_FREE char *at = xasprintf("%s/%.*s", done, (int)len, part);
        CLEANUP_FREE char *resolved = NULL;
        ssize_t size = readlink(at, target, sizeof target - 1);
        if (size < 0) {
            /* No link: `.` and `..` are folded by realpath, the rest is as it stands. */
            resolved = realpath(at, NULL);
            if (!resolved || strlen(resolved) >= sizeof done)
                return;
            size_t keep = strcmp(resolved, "/") == 0 ? 0 : strlen(resolved);
            memcpy(done, resolved, keep);
            done[keep] = '\0';
            memmove(rest, part + len, strlen(part + len) + 1);
            continue;
        }
        if (is_writable(cover(plan, at)))
            die("PATH: the call could change the link %s", at);
        target[size] = '\0';
        links++;
        char *next = xasprintf("%s/%s", target, part + len);
        if (target[0] == '/')
            done[0] = '\0';
        free(rest);
        rest = next;
    }
}

/* The directories between a mount and what lies below it: renamed, they would leave room for
 * other programs at the same path. */
static void pin_between(struct plan *plan, const char *outer, const char *path)
{
    CLEANUP_FREE char *dir = xstrdup(path);
    for (char *slash = strrchr(dir, '/'); slash; slash = strrchr(dir, '/')) {
        *slash = '\0';
        if (!path_below(dir, outer))
            return;
        if (plan_add(plan, MOUNT_PIN, dir) < 0)
            die("too many directories in PATH");
    }
}

static void add_directory(struct plan *plan, const char *entry)
{
    struct stat st;
    CLEANUP_FREE char *real = realpath(entry, NULL);
    check_links(plan, entry);
    if (!real || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return;
    const struct plan_mount *over = cover(plan, real);
    bool in_overlay = over && over->kind == MOUNT_OVERLAY;
    if (!is_writable(over) && !in_overlay)
        return;
    if (!in_overlay && strcmp(over->path, real) == 0)
        die("%s is in PATH, so it cannot be a write root", real);
    CLEANUP_FREE char *outer = xstrdup(over->path); /* the list of mounts may move */
    if (!in_overlay)
        pin_between(plan, outer, real);
    if (plan_add(plan, MOUNT_FLOOR, real) < 0)
        die("too many directories in PATH");
}

void path_floors_add(struct plan *plan, const char *value)
{
    while (value && *value) {
        size_t len = strcspn(value, ":");
        CLEANUP_FREE char *entry = xasprintf("%.*s", (int)len, value);
        add_directory(plan, entry);
        value += len + (value[len] == ':');
    }
}
