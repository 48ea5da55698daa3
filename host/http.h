/*
 * http - streaming HTTP requests: curl's multi interface on the libuv loop.
 *
 * Owns connections, their reuse and the life of requests. Must not know providers, retries or
 * Lua. Loop thread only. Callbacks never run inside curl, so they may start and cancel
 * requests.
 */
#ifndef EFR_HTTP_H
#define EFR_HTTP_H

#include <stddef.h>
#include <uv.h>

#include "err.h"

struct http;
struct http_request;

/* One request. All is borrowed for the call of http_start; headers and body are copied, and
 * the copies are wiped when the request ends. */
struct http_options {
    const char *method;         /* "GET" */
    const char *url;            /* http or https */
    const char *const *headers; /* "Name: value" */
    size_t n_headers;
    const char *body; /* NULL = none */
    size_t body_len;
    long connect_timeout_ms; /* name, connection and TLS */
    long idle_timeout_ms;    /* silence after that, 0 = no limit */
    size_t max_bytes;        /* of the answer's body, 0 = no limit */
    const char *ca_file;     /* NULL = those of the system */
    const char *proxy;       /* NULL = none, whatever the environment says */
};

struct http_events {
    /* The final status and its header lines, "Name: value\r\n" each. */
    void (*on_head)(void *arg, int status, const char *lines, size_t len);
    void (*on_data)(void *arg, const char *bytes, size_t len);
    /* The last event; the request is gone after it. err NULL = the answer is complete. Codes:
     * EFR_CONNECT (no connection was made: nothing was sent), EFR_TLS, EFR_TIMEOUT, EFR_IO,
     * EFR_TOO_BIG, EFR_CANCELLED. */
    void (*on_done)(void *arg, const struct efr_err *err);
};

/* Loads libcurl and makes an empty pool of connections. NULL with *err set. */
struct http *http_create(uv_loop_t *loop, struct efr_err *err);

/* Drops all requests without an event and closes all connections; not from a callback. The
 * memory goes with the loop's next turn. Takes NULL. */
void http_destroy(struct http *http);

/* Starts a request. No event comes before this returns. NULL with *err set (EFR_INVALID,
 * EFR_IO), and then no event comes at all. */
struct http_request *http_start(struct http *http, const struct http_options *options,
                                const struct http_events *events, void *arg,
                                struct efr_err *err);

/* Ends a request now. Only on_done follows, with EFR_CANCELLED, in the loop's next turn. */
void http_cancel(struct http_request *request);

#endif
