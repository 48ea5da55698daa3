/*
 * Changes of directories, by inotify: entries that were written and closed, made, removed or
 * moved, a directory that went away, and events that the kernel had to drop. Knows no policy:
 * what a change means is the caller's. Loop thread only.
 */
#ifndef EFR_WATCH_H
#define EFR_WATCH_H

#include <uv.h>

struct efr_err;
struct efr_watch;

enum efr_watch_kind {
    EFR_WATCH_WRITE,    /* an entry was written and closed */
    EFR_WATCH_CREATE,   /* an entry was made */
    EFR_WATCH_DELETE,   /* an entry was removed */
    EFR_WATCH_MOVE,     /* an entry came or went by a rename */
    EFR_WATCH_GONE,     /* the directory itself is watched no more */
    EFR_WATCH_OVERFLOW, /* events were lost; the id is -1 */
};

/* id is what efr_watch_add returned, name the entry in it, or NULL. */
typedef void (*efr_watch_fn)(void *arg, int id, enum efr_watch_kind kind,
                             const char *name);

/* A watch of no directory yet. fn may destroy the watch. Returns NULL with *err set. */
struct efr_watch *efr_watch_create(uv_loop_t *loop, efr_watch_fn fn, void *arg,
                                   struct efr_err *err);

/* Watches a directory; the last component may be a link. Returns an id from 1, the same for
 * the same directory, or -1 with *err set. */
int efr_watch_add(struct efr_watch *watch, const char *path, struct efr_err *err);

/* Watches a directory no more; it is told as EFR_WATCH_GONE. */
int efr_watch_remove(struct efr_watch *watch, int id, struct efr_err *err);

/* Ends all; fn is not called any more. NULL is fine. */
void efr_watch_destroy(struct efr_watch *watch);

#endif
