/*
 * multi - curl's multi handle driven by the libuv loop. See multi.h. Loop thread only.
 */
#include "multi.h"

#include <stdlib.h>

#include "util.h"

struct multi {
    const struct libcurl *curl;
    uv_loop_t *loop;
    CURLM *handle;
    uv_timer_t timer;
    multi_worked_fn *worked;
    void *arg;
};

/* A socket of curl that the loop watches. */
struct watch {
    struct multi *multi;
    uv_poll_t poll;
    curl_socket_t fd;
};

static void act(struct multi *multi, curl_socket_t fd, int flags)
{
    int running;

    multi->curl->multi_socket_action(multi->handle, fd, flags, &running);
    multi->worked(multi->arg);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    int flags = 0;

    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    act(watch->multi, watch->fd, flags);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static struct watch *watch_create(struct multi *multi, curl_socket_t fd)
{
    struct watch *watch = xcalloc(1, sizeof(*watch));

    watch->multi = multi;
    watch->fd = fd;
    watch->poll.data = watch;
    if (uv_poll_init_socket(multi->loop, &watch->poll, fd) != 0) {
        free(watch);
        return NULL;
    }
    multi->curl->multi_assign(multi->handle, fd, watch);
    return watch;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct multi *multi = arg;
    struct watch *watch = socket_arg;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL) {
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
            multi->curl->multi_assign(multi->handle, fd, NULL);
        }
        return 0;
    }
    if (watch == NULL)
        watch = watch_create(multi, fd);
    if (watch == NULL)
        return -1;
    if (what != CURL_POLL_OUT)
        events |= UV_READABLE;
    if (what != CURL_POLL_IN)
        events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, on_poll) == 0 ? 0 : -1;
}

static void on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer_change(CURLM *handle, long timeout_ms, void *arg)
{
    struct multi *multi = arg;

    (void)handle;
    if (timeout_ms < 0)
        uv_timer_stop(&multi->timer);
    else
        uv_timer_start(&multi->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

struct multi *multi_create(const struct libcurl *curl, uv_loop_t *loop,
                           multi_worked_fn *worked, void *arg)
{
    struct multi *multi = xcalloc(1, sizeof(*multi));

    multi->curl = curl;
    multi->loop = loop;
    multi->worked = worked;
    multi->arg = arg;
    multi->handle = curl->multi_init();
    if (multi->handle == NULL)
        abort(); /* out of memory */
    curl->multi_setopt(multi->handle, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl->multi_setopt(multi->handle, CURLMOPT_SOCKETDATA, multi);
    curl->multi_setopt(multi->handle, CURLMOPT_TIMERFUNCTION, on_timer_change);
    curl->multi_setopt(multi->handle, CURLMOPT_TIMERDATA, multi);
    uv_timer_init(loop, &multi->timer);
    multi->timer.data = multi;
    return multi;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void multi_destroy(struct multi *multi)
{
    multi->curl->multi_cleanup(multi->handle);
    uv_close((uv_handle_t *)&multi->timer, on_timer_closed);
}

CURLM *multi_handle(struct multi *multi)
{
    return multi->handle;
}
