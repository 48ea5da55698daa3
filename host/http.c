/*
 * http - curl's multi interface on the libuv loop. See http.h for the contract.
 *
 * curl calls back only to hand over bytes, which wait in the request; dispatch() gives them to
 * the caller after curl has returned.
 */
#include "http.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcurl.h"
#include "multi.h"
#include "util.h"

#define HEAD_MAX ((size_t)256 * 1024)
#define REUSE_SECONDS 90L

struct bytes {
    char *data; /* owned, wiped */
    size_t len, size;
};

struct http_request {
    struct http *http;
    struct http_request *next, *prev; /* all requests */
    struct http_request *next_ready;
    CURL *easy; /* NULL once it has ended */
    struct http_events events;
    void *arg;
    char *host; /* owned, for messages */
    struct curl_slist *headers;
    struct bytes body;
    char curl_text[CURL_ERROR_SIZE];
    /* the answer */
    struct bytes head, data;
    int status;
    size_t received_bytes, max_bytes;
    bool head_whole, head_given;
    /* silence */
    bool connected; /* from here on the server may have seen something */
    uint64_t heard_ms, idle_timeout_ms;
    curl_off_t sent_bytes;
    /* the end */
    bool ready; /* in the list of those with something to give */
    bool done, cancelled;
    struct efr_err err;
};

struct http {
    const struct libcurl *curl;
    uv_loop_t *loop;
    struct multi *multi;
    uv_timer_t idle;  /* the earliest end of patience */
    uv_timer_t defer; /* events that did not come out of curl */
    int open_handles;
    struct http_request *requests;
    struct http_request *ready, **ready_end;
};

/* -- bytes ------------------------------------------------------------------------ */

static void bytes_add(struct bytes *bytes, const char *data, size_t len)
{
    if (bytes->size - bytes->len < len) {
        size_t size = (bytes->len + len) * 2 + 512;
        char *bigger = xmalloc(size);

        if (bytes->len > 0)
            memcpy(bigger, bytes->data, bytes->len);
        efr_wipe(bytes->data, bytes->len);
        free(bytes->data);
        bytes->data = bigger;
        bytes->size = size;
    }
    if (len > 0)
        memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

static void bytes_reset(struct bytes *bytes)
{
    efr_wipe(bytes->data, bytes->len);
    bytes->len = 0;
}

static void bytes_finish(struct bytes *bytes)
{
    bytes_reset(bytes);
    free(bytes->data);
    *bytes = (struct bytes){NULL, 0, 0};
}

/* -- the end of a request --------------------------------------------------------- */

static void make_ready(struct http_request *request)
{
    struct http *http = request->http;

    if (request->ready)
        return;
    request->ready = true;
    request->next_ready = NULL;
    *http->ready_end = request;
    http->ready_end = &request->next_ready;
}

/* Takes the request from curl and forgets what held keys. */
static void detach(struct http_request *request)
{
    const struct libcurl *curl = request->http->curl;

    if (request->easy == NULL)
        return;
    curl->multi_remove_handle(multi_handle(request->http->multi), request->easy);
    curl->easy_cleanup(request->easy);
    request->easy = NULL;
    for (struct curl_slist *line = request->headers; line != NULL; line = line->next)
        efr_wipe(line->data, strlen(line->data));
    curl->slist_free_all(request->headers);
    request->headers = NULL;
    bytes_finish(&request->body);
}

static void request_destroy(struct http_request *request)
{
    struct http *http = request->http;

    detach(request);
    if (request->prev != NULL)
        request->prev->next = request->next;
    else
        http->requests = request->next;
    if (request->next != NULL)
        request->next->prev = request->prev;
    bytes_finish(&request->head);
    bytes_finish(&request->data);
    free(request->host);
    free(request);
}

static void end(struct http_request *request)
{
    detach(request);
    request->done = true;
    make_ready(request);
}

static bool is_tls_error(CURLcode rc)
{
    static const CURLcode codes[] = {
        CURLE_SSL_CONNECT_ERROR,  CURLE_PEER_FAILED_VERIFICATION,
        CURLE_SSL_CERTPROBLEM,    CURLE_SSL_CIPHER,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
        CURLE_USE_SSL_FAILED,     CURLE_SSL_INVALIDCERTSTATUS,
        CURLE_SSL_CRL_BADFILE,    CURLE_SSL_PINNEDPUBKEYNOTMATCH,
    };

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (codes[i] == rc)
            return true;
    }
    return false;
}

/* The host and what failed; curl's own text names no header and no body. */
static void set_error(struct http_request *request, CURLcode rc)
{
    const struct libcurl *curl = request->http->curl;
    const char *why =
        request->curl_text[0] != '\0' ? request->curl_text : curl->easy_strerror(rc);
    long sys_errno = 0;

    if (rc == CURLE_OK || request->err.code[0] != '\0')
        return;
    if (is_tls_error(rc)) {
        efr_err_set(&request->err, "EFR_TLS", "TLS with %s: %s", request->host, why);
        return;
    }
    curl->easy_getinfo(request->easy, CURLINFO_OS_ERRNO, &sys_errno);
    if (rc == CURLE_COULDNT_CONNECT && sys_errno != 0)
        why = strerror((int)sys_errno);
    if (!request->connected)
        efr_err_set(&request->err, "EFR_CONNECT", "connect to %s: %s", request->host,
                    why);
    else
        efr_err_set(&request->err,
                    rc == CURLE_OPERATION_TIMEDOUT ? "EFR_TIMEOUT" : "EFR_IO", "%s: %s",
                    request->host, why);
}

/* -- giving events ---------------------------------------------------------------- */

/* A callback may cancel the request, which puts it at the end of the list again. */
static void give(struct http_request *request)
{
    request->ready = false;
    if (request->head_whole && !request->head_given && !request->cancelled) {
        request->head_given = true;
        request->events.on_head(request->arg, request->status,
                                request->head.len > 0 ? request->head.data : "",
                                request->head.len);
        bytes_reset(&request->head);
    }
    if (request->data.len > 0 && !request->cancelled) {
        request->events.on_data(request->arg, request->data.data, request->data.len);
        bytes_reset(&request->data);
    }
    if (!request->done || request->ready)
        return;
    request->cancelled = true; /* too late for that from here on */
    request->events.on_done(request->arg,
                            request->err.code[0] != '\0' ? &request->err : NULL);
    request_destroy(request);
}

static void dispatch(struct http *http)
{
    struct http_request *request;

    while ((request = http->ready) != NULL) {
        http->ready = request->next_ready;
        if (http->ready == NULL)
            http->ready_end = &http->ready;
        give(request);
    }
}

static void on_defer(uv_timer_t *timer)
{
    dispatch(timer->data);
}

/* -- curl's callbacks ------------------------------------------------------------- */

static void hear(struct http_request *request)
{
    request->heard_ms = uv_now(request->http->loop);
}

/* Lets the idle timer fire when the first of the open requests runs out of patience. */
static void schedule_idle(struct http *http);

static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    struct http_request *request = arg;

    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    request->connected = true;
    hear(request);
    schedule_idle(request->http);
    return CURL_PREREQFUNC_OK;
}

static int on_progress(void *arg, curl_off_t to_receive, curl_off_t received,
                       curl_off_t to_send, curl_off_t sent)
{
    struct http_request *request = arg;

    (void)to_receive;
    (void)received;
    (void)to_send;
    if (sent != request->sent_bytes) {
        request->sent_bytes = sent;
        hear(request);
    }
    return 0;
}

/* "HTTP/1.1 200 OK" or "HTTP/2 200" -> 200; 0 for what is no status line. */
static int status_of(const char *line, size_t len)
{
    const char *space = memchr(line, ' ', len);
    int status = 0;

    if (len < 5 || memcmp(line, "HTTP/", 5) != 0 || space == NULL)
        return 0;
    for (const char *p = space + 1; p < line + len && *p >= '0' && *p <= '9'; p++)
        status = status < 1000 ? status * 10 + (*p - '0') : 1000;
    return status;
}

static size_t too_big(struct http_request *request, const char *what, size_t limit)
{
    efr_err_set(&request->err, "EFR_TOO_BIG", "%s: the answer's %s exceeds %zu bytes",
                request->host, what, limit);
    return 0; /* fewer than given: curl ends the transfer */
}

/* One line a call, the empty one at the end of a head included. */
static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    struct http_request *request = arg;
    size_t len = size * count;
    int status;

    hear(request);
    if (request->head_whole)
        return len; /* a trailer */
    status = status_of(line, len);
    if (status != 0) {
        request->status = status;
        bytes_reset(&request->head);
    } else if (len > 2) {
        if (request->head.len + len > HEAD_MAX)
            return too_big(request, "head", HEAD_MAX);
        bytes_add(&request->head, line, len);
    } else if (request->status >= 200) {
        request->head_whole = true;
        make_ready(request);
    }
    return len;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_request *request = arg;
    size_t len = size * count;

    hear(request);
    if (request->max_bytes > 0 && len > request->max_bytes - request->received_bytes)
        return too_big(request, "body", request->max_bytes);
    request->received_bytes += len;
    bytes_add(&request->data, bytes, len);
    make_ready(request);
    return len;
}

/* Called when curl has worked: takes the ended transfers, then gives all that came. */
static void on_worked(void *arg)
{
    struct http *http = arg;
    CURLMsg *message;
    int left;

    while ((message = http->curl->multi_info_read(multi_handle(http->multi), &left)) !=
           NULL) {
        char *private = NULL;
        struct http_request *request;
        CURLcode rc = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        http->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
        request = (struct http_request *)(void *)private;
        set_error(request, rc);
        end(request);
    }
    dispatch(http);
}

/* -- silence ---------------------------------------------------------------------- */

static bool is_watched(const struct http_request *request)
{
    return !request->done && request->connected && request->idle_timeout_ms > 0;
}

static void on_idle(uv_timer_t *timer)
{
    struct http *http = timer->data;
    uint64_t now = uv_now(http->loop);

    for (struct http_request *request = http->requests; request;
         request = request->next) {
        if (!is_watched(request) || now - request->heard_ms < request->idle_timeout_ms)
            continue;
        efr_err_set(&request->err, "EFR_TIMEOUT", "%s: nothing came for %llu ms",
                    request->host, (unsigned long long)request->idle_timeout_ms);
        end(request);
    }
    schedule_idle(http);
    dispatch(http);
}

static void schedule_idle(struct http *http)
{
    uint64_t now = uv_now(http->loop);
    uint64_t wait_ms = UINT64_MAX;

    for (struct http_request *request = http->requests; request;
         request = request->next) {
        uint64_t due = request->heard_ms + request->idle_timeout_ms;
        uint64_t left = due > now ? due - now : 0;

        if (is_watched(request) && left < wait_ms)
            wait_ms = left;
    }
    if (wait_ms == UINT64_MAX)
        uv_timer_stop(&http->idle);
    else
        uv_timer_start(&http->idle, on_idle, wait_ms, 0);
}

/* -- starting --------------------------------------------------------------------- */

/* "host" or "host:port" for messages, NULL with *err set when the URL is none of ours. */
static char *host_of(const struct libcurl *curl, const char *url, struct efr_err *err)
{
    CURLU *parts = curl->url();
    char *scheme = NULL, *host = NULL, *port = NULL, *result = NULL;
    CURLUcode rc = curl->url_set(parts, CURLUPART_URL, url, 0);

    if (rc == CURLUE_OK)
        rc = curl->url_get(parts, CURLUPART_SCHEME, &scheme, 0);
    if (rc == CURLUE_OK)
        rc = curl->url_get(parts, CURLUPART_HOST, &host, 0);
    if (rc != CURLUE_OK) {
        efr_err_set(err, "EFR_INVALID", "no URL: %s", curl->url_strerror(rc));
    } else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) {
        efr_err_set(err, "EFR_INVALID", "%s: only http and https are spoken, not %s",
                    host, scheme);
    } else {
        size_t size;

        (void)curl->url_get(parts, CURLUPART_PORT, &port, 0);
        size = strlen(host) + (port != NULL ? strlen(port) + 1 : 0) + 1;
        result = xmalloc(size);
        (void)snprintf(result, size, port != NULL ? "%s:%s" : "%s", host, port);
    }
    curl->free(scheme);
    curl->free(host);
    curl->free(port);
    curl->url_cleanup(parts);
    return result;
}

/* A line break would smuggle a second header, or a second request. */
static int check_lines(const struct http_options *options, struct efr_err *err)
{
    size_t method_len = strspn(options->method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    if (method_len == 0 || options->method[method_len] != '\0')
        return efr_err_set(err, "EFR_INVALID", "no HTTP method");
    for (size_t i = 0; i < options->n_headers; i++) {
        if (strpbrk(options->headers[i], "\r\n") != NULL)
            return efr_err_set(err, "EFR_INVALID", "header %zu holds a line break",
                               i + 1);
    }
    return 0;
}

static void copy_headers(struct http_request *request, const struct http_options *options)
{
    const struct libcurl *curl = request->http->curl;

    for (size_t i = 0; i < options->n_headers; i++)
        request->headers = curl->slist_append(request->headers, options->headers[i]);
    /* curl would wait a second for "100 Continue" before it sends a large body. */
    request->headers = curl->slist_append(request->headers, "Expect:");
}

/* The options of one transfer; the first failure stays in rc. */
struct setup {
    const struct libcurl *curl;
    CURL *easy;
    CURLcode rc;
};

static void set_long(struct setup *setup, CURLoption option, long value)
{
    if (setup->rc == CURLE_OK)
        setup->rc = setup->curl->easy_setopt(setup->easy, option, value);
}

static void set_pointer(struct setup *setup, CURLoption option, const void *value)
{
    if (setup->rc == CURLE_OK)
        setup->rc = setup->curl->easy_setopt(setup->easy, option, value);
}

static void set_function(struct setup *setup, CURLoption option, void (*value)(void))
{
    if (setup->rc == CURLE_OK)
        setup->rc = setup->curl->easy_setopt(setup->easy, option, value);
}

static void set_method(struct setup *setup, struct http_request *request,
                       const struct http_options *options)
{
    if (options->body != NULL) {
        bytes_add(&request->body, options->body, options->body_len);
        set_long(setup, CURLOPT_POST, 1);
        set_long(setup, CURLOPT_POSTFIELDSIZE, (long)options->body_len);
        /* Not NULL: curl would read the body from standard input. */
        set_pointer(setup, CURLOPT_POSTFIELDS,
                    options->body_len > 0 ? request->body.data : "");
    } else if (strcmp(options->method, "HEAD") == 0) {
        set_long(setup, CURLOPT_NOBODY, 1);
    }
    set_pointer(setup, CURLOPT_CUSTOMREQUEST, options->method);
}

static void set_limits(struct setup *setup, const struct http_options *options)
{
    set_pointer(setup, CURLOPT_URL, options->url);
    set_pointer(setup, CURLOPT_PROTOCOLS_STR, "http,https");
    set_long(setup, CURLOPT_FOLLOWLOCATION, 0);
    set_long(setup, CURLOPT_NOSIGNAL, 1);
    set_long(setup, CURLOPT_CONNECTTIMEOUT_MS, options->connect_timeout_ms);
    set_long(setup, CURLOPT_MAXAGE_CONN, REUSE_SECONDS);
    set_long(setup, CURLOPT_TCP_KEEPALIVE, 1);
    /* Empty texts keep curl from reading the proxy variables of the environment. */
    set_pointer(setup, CURLOPT_PROXY, options->proxy != NULL ? options->proxy : "");
    set_pointer(setup, CURLOPT_NOPROXY, "");
    set_long(setup, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
    set_long(setup, CURLOPT_SSL_VERIFYPEER, 1);
    set_long(setup, CURLOPT_SSL_VERIFYHOST, 2);
    if (options->ca_file != NULL)
        set_pointer(setup, CURLOPT_CAINFO, options->ca_file);
}

static void set_callbacks(struct setup *setup, struct http_request *request)
{
    set_pointer(setup, CURLOPT_PRIVATE, request);
    set_pointer(setup, CURLOPT_ERRORBUFFER, request->curl_text);
    set_pointer(setup, CURLOPT_USERAGENT, "efr/" EFR_VERSION);
    set_pointer(setup, CURLOPT_HTTPHEADER, request->headers);
    set_function(setup, CURLOPT_PREREQFUNCTION, (void (*)(void))on_connected);
    set_pointer(setup, CURLOPT_PREREQDATA, request);
    set_long(setup, CURLOPT_NOPROGRESS, 0);
    set_function(setup, CURLOPT_XFERINFOFUNCTION, (void (*)(void))on_progress);
    set_pointer(setup, CURLOPT_XFERINFODATA, request);
    set_function(setup, CURLOPT_HEADERFUNCTION, (void (*)(void))on_header);
    set_pointer(setup, CURLOPT_HEADERDATA, request);
    set_function(setup, CURLOPT_WRITEFUNCTION, (void (*)(void))on_body);
    set_pointer(setup, CURLOPT_WRITEDATA, request);
}

static int give_to_curl(struct http_request *request, const struct http_options *options,
                        struct efr_err *err)
{
    const struct libcurl *curl = request->http->curl;
    struct setup setup = {.curl = curl, .easy = request->easy, .rc = CURLE_OK};
    CURLMcode rc;

    copy_headers(request, options);
    set_method(&setup, request, options);
    set_limits(&setup, options);
    set_callbacks(&setup, request);
    if (setup.rc != CURLE_OK)
        return efr_err_set(err, "EFR_IO", "%s: set up the request: %s", request->host,
                           curl->easy_strerror(setup.rc));
    rc = curl->multi_add_handle(multi_handle(request->http->multi), request->easy);
    if (rc != CURLM_OK)
        return efr_err_set(err, "EFR_IO", "%s: start the request: %s", request->host,
                           curl->multi_strerror(rc));
    return 0;
}

struct http_request *http_start(struct http *http, const struct http_options *options,
                                const struct http_events *events, void *arg,
                                struct efr_err *err)
{
    struct http_request *request;
    char *host;

    if (check_lines(options, err) != 0)
        return NULL;
    host = host_of(http->curl, options->url, err);
    if (host == NULL)
        return NULL;
    request = xcalloc(1, sizeof(*request));
    request->http = http;
    request->host = host;
    request->events = *events;
    request->arg = arg;
    request->max_bytes = options->max_bytes;
    request->idle_timeout_ms = (uint64_t)options->idle_timeout_ms;
    request->next = http->requests;
    if (request->next != NULL)
        request->next->prev = request;
    http->requests = request;
    request->easy = http->curl->easy_init();
    if (request->easy == NULL)
        abort(); /* out of memory */
    if (give_to_curl(request, options, err) != 0) {
        request_destroy(request);
        return NULL;
    }
    return request;
}

void http_cancel(struct http_request *request)
{
    if (request->cancelled)
        return;
    request->cancelled = true;
    efr_err_set(&request->err, "EFR_CANCELLED", "%s: cancelled", request->host);
    end(request);
    uv_timer_start(&request->http->defer, on_defer, 0, 0);
}

/* -- the pool --------------------------------------------------------------------- */

struct http *http_create(uv_loop_t *loop, struct efr_err *err)
{
    const struct libcurl *curl = libcurl_load(err);
    struct http *http;

    if (curl == NULL)
        return NULL;
    http = xcalloc(1, sizeof(*http));
    http->curl = curl;
    http->loop = loop;
    http->ready_end = &http->ready;
    http->multi = multi_create(curl, loop, on_worked, http);
    uv_timer_init(loop, &http->idle);
    uv_timer_init(loop, &http->defer);
    http->idle.data = http;
    http->defer.data = http;
    http->open_handles = 2;
    return http;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;

    if (--http->open_handles == 0)
        free(http);
}

void http_destroy(struct http *http)
{
    if (http == NULL)
        return;
    while (http->requests != NULL)
        request_destroy(http->requests);
    multi_destroy(http->multi);
    uv_close((uv_handle_t *)&http->idle, on_handle_closed);
    uv_close((uv_handle_t *)&http->defer, on_handle_closed);
}
