/*
 * inotify on the loop: see watch.h. Loop thread only.
 */
#include "watch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "err.h"
#include "util.h"

#define MASK                                                                             \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |              \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* Whole events fit: the longest name has 255 bytes. */
#define BUFFER_BYTES 8192
#define READS_MAX 16 /* a flood of changes must not hold the loop */

struct efr_watch {
    uv_poll_t poll; /* first: the handle is the object */
    int fd;
    bool closing;
    efr_watch_fn fn;
    void *arg;
};

static enum efr_watch_kind kind_of(uint32_t mask)
{
    if (mask & IN_Q_OVERFLOW)
        return EFR_WATCH_OVERFLOW;
    if (mask & (IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
        return EFR_WATCH_GONE;
    if (mask & IN_CLOSE_WRITE)
        return EFR_WATCH_WRITE;
    if (mask & IN_CREATE)
        return EFR_WATCH_CREATE;
    return mask & IN_DELETE ? EFR_WATCH_DELETE : EFR_WATCH_MOVE;
}

/* Tells the events of one read. */
static void tell(struct efr_watch *watch, const char *bytes, size_t len_bytes)
{
    size_t at = 0;
    while (at < len_bytes && !watch->closing) {
        const struct inotify_event *event = (const void *)(bytes + at);
        watch->fn(watch->arg, event->wd, kind_of(event->mask),
                  event->len ? event->name : NULL);
        at += sizeof(*event) + event->len;
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct efr_watch *watch = poll->data;
    _Alignas(struct inotify_event) char bytes[BUFFER_BYTES];
    for (int i = 0; i < READS_MAX && !watch->closing; i++) {
        ssize_t count = read(watch->fd, bytes, sizeof(bytes));
        if (count <= 0)
            return; /* nothing more; an interrupted read is tried at the next turn */
        tell(watch, bytes, (size_t)count);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct efr_watch *watch = handle->data;
    efr_close(&watch->fd);
    free(watch);
}

struct efr_watch *efr_watch_create(uv_loop_t *loop, efr_watch_fn fn, void *arg,
                                   struct efr_err *err)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) {
        efr_err_errno(err, errno, "watch directories");
        return NULL;
    }
    struct efr_watch *watch = xcalloc(1, sizeof(*watch));
    *watch = (struct efr_watch){.fd = fd, .fn = fn, .arg = arg};
    int rc = uv_poll_init(loop, &watch->poll, fd);
    if (rc != 0) {
        efr_err_errno(err, -rc, "watch directories");
        efr_close(&fd);
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    rc = uv_poll_start(&watch->poll, UV_READABLE, on_readable);
    if (rc != 0) {
        efr_err_errno(err, -rc, "watch directories");
        efr_watch_destroy(watch);
        return NULL;
    }
    return watch;
}

int efr_watch_add(struct efr_watch *watch, const char *path, struct efr_err *err)
{
    int id = inotify_add_watch(watch->fd, path, MASK);
    return id < 0 ? efr_err_errno(err, errno, "watch %s", path) : id;
}

int efr_watch_remove(struct efr_watch *watch, int id, struct efr_err *err)
{
    if (inotify_rm_watch(watch->fd, id) != 0)
        return efr_err_errno(err, errno, "watch no more");
    return 0;
}

void efr_watch_destroy(struct efr_watch *watch)
{
    if (!watch || watch->closing)
        return;
    watch->closing = true;
    uv_close((uv_handle_t *)&watch->poll, on_closed);
}
