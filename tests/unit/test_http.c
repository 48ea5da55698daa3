/*
 * Unit tests of host/http, multi and libcurl against a real server on loopback that lives on
 * the same loop and plays one answer per request. Not covered here: TLS and the Lua binding
 * (spec/host/http_spec.lua).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http.h"

#define PIECES_MAX 8
#define LIMIT_MS 20000

/* The server: answers with the pieces, one write each; then closes, or stays silent. */
struct server {
    uv_tcp_t listener;
    int port;
    const char *pieces[PIECES_MAX];
    bool stay_open;  /* wait for the next request on the same connection */
    bool keep_quiet; /* never answer */
    int connections, requests, closed;
    char seen[2000000]; /* the last request */
    size_t seen_len;
};

struct peer {
    uv_tcp_t tcp;
    struct server *server;
    char buffer[65536];
};

/* What one request gave. */
struct answer {
    uv_loop_t *loop;
    struct http_request *request;
    int heads, status, done;
    char lines[4096];
    char body[200000];
    size_t body_len;
    int data_calls;
    char code[32], text[512];
    bool cancel_at_head, cancel_at_data, cancel_when_done;
    struct fixture *then_start; /* starts another one at the first data */
};

struct fixture {
    uv_loop_t loop;
    uv_timer_t limit;
    bool late;
    struct http *http;
    struct server server;
    char url[64];
    struct answer first, second;
};

/* -- server ----------------------------------------------------------------------- */

static void on_peer_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;

    peer->server->closed++;
    free(peer);
}

static void close_peer(struct peer *peer)
{
    if (!uv_is_closing((uv_handle_t *)&peer->tcp))
        uv_close((uv_handle_t *)&peer->tcp, on_peer_closed);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    free(write);
}

static void send_text(struct peer *peer, const char *text)
{
    uv_write_t *write = calloc(1, sizeof(*write));
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)text, (unsigned)strlen(text));

    assert_non_null(write);
    assert_int_equal(uv_write(write, (uv_stream_t *)&peer->tcp, &buf, 1, on_written), 0);
}

static void on_shutdown(uv_shutdown_t *shutdown, int status)
{
    (void)status;
    close_peer(shutdown->data);
    free(shutdown);
}

static void respond(struct peer *peer)
{
    struct server *server = peer->server;
    uv_shutdown_t *shutdown;

    server->requests++;
    server->seen_len = 0;
    if (server->keep_quiet)
        return;
    for (int i = 0; i < PIECES_MAX && server->pieces[i] != NULL; i++)
        send_text(peer, server->pieces[i]);
    if (server->stay_open)
        return;
    shutdown = calloc(1, sizeof(*shutdown));
    assert_non_null(shutdown);
    shutdown->data = peer;
    uv_shutdown(shutdown, (uv_stream_t *)&peer->tcp, on_shutdown);
}

/* True when the head is whole and, for a body, all of Content-Length is there. */
static bool request_is_whole(const struct server *server)
{
    const char *end = strstr(server->seen, "\r\n\r\n");
    const char *length = strstr(server->seen, "Content-Length: ");

    if (end == NULL)
        return false;
    if (length == NULL || length > end)
        return true;
    return server->seen_len >=
           (size_t)(end + 4 - server->seen) + (size_t)strtoul(length + 16, NULL, 10);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct peer *peer = stream->data;
    struct server *server = peer->server;

    if (n < 0) {
        close_peer(peer);
        return;
    }
    assert_true(server->seen_len + (size_t)n < sizeof(server->seen));
    memcpy(server->seen + server->seen_len, buf->base, (size_t)n);
    server->seen_len += (size_t)n;
    server->seen[server->seen_len] = '\0';
    if (request_is_whole(server))
        respond(peer);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct peer *peer = handle->data;

    (void)size;
    *buf = uv_buf_init(peer->buffer, sizeof(peer->buffer));
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    struct peer *peer = calloc(1, sizeof(*peer));

    assert_int_equal(status, 0);
    assert_non_null(peer);
    peer->server = server;
    peer->tcp.data = peer;
    server->connections++;
    server->seen_len = 0;
    assert_int_equal(uv_tcp_init(listener->loop, &peer->tcp), 0);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&peer->tcp), 0);
    assert_int_equal(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read), 0);
}

static void start_server(struct fixture *fx)
{
    struct server *server = &fx->server;
    struct sockaddr_in address;
    int len = sizeof(address);

    server->listener.data = server;
    assert_int_equal(uv_tcp_init(&fx->loop, &server->listener), 0);
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &address), 0);
    assert_int_equal(uv_tcp_bind(&server->listener, (const struct sockaddr *)&address, 0),
                     0);
    assert_int_equal(uv_listen((uv_stream_t *)&server->listener, 16, on_connection), 0);
    assert_int_equal(
        uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    (void)snprintf(fx->url, sizeof(fx->url), "http://127.0.0.1:%d/x", server->port);
}

/* -- client ----------------------------------------------------------------------- */

static void on_head(void *arg, int status, const char *lines, size_t len)
{
    struct answer *answer = arg;

    assert_true(len < sizeof(answer->lines));
    assert_int_equal(answer->done, 0);
    answer->heads++;
    answer->status = status;
    memcpy(answer->lines, lines, len);
    answer->lines[len] = '\0';
    if (answer->cancel_at_head)
        http_cancel(answer->request);
}

static void start_one(struct fixture *fx, struct answer *answer,
                      const struct http_options *options);

static void on_data(void *arg, const char *bytes, size_t len)
{
    struct answer *answer = arg;
    struct fixture *fx = answer->then_start;

    assert_true(answer->body_len + len <= sizeof(answer->body));
    assert_int_equal(answer->heads, 1);
    assert_int_equal(answer->done, 0);
    memcpy(answer->body + answer->body_len, bytes, len);
    answer->body_len += len;
    answer->data_calls++;
    if (fx != NULL) {
        answer->then_start = NULL;
        start_one(fx, &fx->second, &(struct http_options){0});
    }
    if (answer->cancel_at_data) {
        http_cancel(answer->request);
        http_cancel(answer->request); /* twice is fine */
    }
}

static void on_done(void *arg, const struct efr_err *err)
{
    struct answer *answer = arg;

    answer->done++;
    if (err != NULL) {
        (void)snprintf(answer->code, sizeof(answer->code), "%s", err->code);
        (void)snprintf(answer->text, sizeof(answer->text), "%s", err->text);
    }
    if (answer->cancel_when_done)
        http_cancel(answer->request);
    uv_stop(answer->loop); /* a turn that ran timers may wait for more otherwise */
}

static const struct http_events events = {on_head, on_data, on_done};

static void start_one(struct fixture *fx, struct answer *answer,
                      const struct http_options *options)
{
    struct http_options filled = *options;
    struct efr_err err = {0};

    if (filled.method == NULL)
        filled.method = "GET";
    if (filled.url == NULL)
        filled.url = fx->url;
    filled.connect_timeout_ms = LIMIT_MS;
    answer->loop = &fx->loop;
    answer->request = http_start(fx->http, &filled, &events, answer, &err);
    if (answer->request == NULL)
        fail_msg("start: %s", err.text);
    assert_int_equal(answer->done, 0);
}

static void on_limit(uv_timer_t *timer)
{
    struct fixture *fx = timer->data;

    fx->late = true;
    uv_stop(&fx->loop);
}

static void wait_done(struct fixture *fx, const struct answer *answer)
{
    while (answer->done == 0 && !fx->late)
        uv_run(&fx->loop, UV_RUN_DEFAULT);
    assert_false(fx->late);
    assert_int_equal(answer->done, 1);
}

static void get(struct fixture *fx, const struct http_options *options)
{
    start_one(fx, &fx->first, options);
    wait_done(fx, &fx->first);
}

/* -- fixture ---------------------------------------------------------------------- */

static int setup(void **state)
{
    struct fixture *fx = calloc(1, sizeof(*fx));
    struct efr_err err = {0};

    assert_non_null(fx);
    assert_int_equal(uv_loop_init(&fx->loop), 0);
    assert_int_equal(uv_timer_init(&fx->loop, &fx->limit), 0);
    fx->limit.data = fx;
    assert_int_equal(uv_timer_start(&fx->limit, on_limit, LIMIT_MS, 0), 0);
    fx->http = http_create(&fx->loop, &err);
    if (fx->http == NULL)
        fail_msg("create: %s", err.text);
    start_server(fx);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fx = *state;

    http_destroy(fx->http);
    uv_close((uv_handle_t *)&fx->limit, NULL);
    uv_close((uv_handle_t *)&fx->server.listener, NULL);
    uv_run(&fx->loop, UV_RUN_DEFAULT); /* the peers see the end and close */
    assert_int_equal(fx->server.closed, fx->server.connections);
    assert_int_equal(uv_loop_close(&fx->loop), 0);
    free(fx);
    return 0;
}

/* -- answers ---------------------------------------------------------------------- */

static void test_head_body_end(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Le";
    fx->server.pieces[1] = "ngth: 10\r\n\r\nhello";
    fx->server.pieces[2] = "world";
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "");
    assert_int_equal(fx->first.heads, 1);
    assert_int_equal(fx->first.status, 503);
    assert_string_equal(fx->first.lines, "Retry-After: 7\r\nContent-Length: 10\r\n");
    assert_int_equal(fx->first.body_len, 10);
    assert_memory_equal(fx->first.body, "helloworld", 10);
    assert_non_null(strstr(fx->server.seen, "GET /x HTTP/1.1\r\n"));
    assert_non_null(strstr(fx->server.seen, "\r\nUser-Agent: efr/"));
}

static void test_interim_heads_trailers_and_redirects(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    fx->server.pieces[1] = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\n"
                           "Transfer-Encoding: chunked\r\nTrailer: Late\r\n\r\n";
    fx->server.pieces[2] = "2\r\nab\r\n0\r\nLate: yes\r\n\r\n";
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "");
    assert_int_equal(fx->first.heads, 1);
    assert_int_equal(fx->first.status, 302);
    assert_null(strstr(fx->first.lines, "Link"));
    assert_null(strstr(fx->first.lines, "Late: yes"));
    assert_int_equal(fx->first.body_len, 2);
    assert_int_equal(fx->server.requests, 1); /* not followed */
}

static void test_sends_method_headers_and_body(void **state)
{
    static const char *const headers[] = {"Authorization: Bearer key", "X-Empty;"};
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 204 Nothing\r\n\r\n";
    get(fx, &(struct http_options){.method = "POST",
                                   .headers = headers,
                                   .n_headers = 2,
                                   .body = "a\0b",
                                   .body_len = 3});
    assert_string_equal(fx->first.code, "");
    assert_int_equal(fx->first.status, 204);
    assert_non_null(strstr(fx->server.seen, "POST /x HTTP/1.1\r\n"));
    assert_non_null(strstr(fx->server.seen, "\r\nAuthorization: Bearer key\r\n"));
    assert_non_null(strstr(fx->server.seen, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(fx->server.seen, "\r\nContent-Length: 3\r\n"));
    assert_memory_equal(strstr(fx->server.seen, "\r\n\r\n") + 4, "a\0b", 4);
}

/* Of a size for which curl asks for "100 Continue" first, and waits when none comes. */
static void test_sends_a_large_body_at_once(void **state)
{
    static char body[1500000];
    struct fixture *fx = *state;

    memset(body, 'b', sizeof(body));
    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    get(fx,
        &(struct http_options){.method = "POST", .body = body, .body_len = sizeof(body)});
    assert_string_equal(fx->first.code, "");
    assert_null(strstr(fx->server.seen, "Expect"));
    assert_memory_equal(strstr(fx->server.seen, "\r\n\r\n") + 4, body, sizeof(body));
}

static void test_empty_body_is_sent_as_such(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    get(fx, &(struct http_options){.method = "POST", .body = "", .body_len = 0});
    assert_string_equal(fx->first.code, "");
    assert_non_null(strstr(fx->server.seen, "\r\nContent-Length: 0\r\n"));
}

static void test_connection_is_used_again(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    fx->server.stay_open = true;
    get(fx, &(struct http_options){0});
    start_one(fx, &fx->second, &(struct http_options){0});
    wait_done(fx, &fx->second);
    assert_string_equal(fx->second.code, "");
    assert_int_equal(fx->server.requests, 2);
    assert_int_equal(fx->server.connections, 1);
}

static void test_environment_chooses_no_proxy(void **state)
{
    struct fixture *fx = *state;

    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("all_proxy", "http://127.0.0.1:1", 1), 0);
    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "");
    memset(&fx->first, 0, sizeof(fx->first));
    get(fx, &(struct http_options){.proxy = "http://127.0.0.1:1"});
    assert_string_equal(fx->first.code, "EFR_CONNECT");
    unsetenv("http_proxy");
    unsetenv("all_proxy");
}

/* -- failures --------------------------------------------------------------------- */

static void test_refused_port(void **state)
{
    struct fixture *fx = *state;
    static uv_tcp_t taken; /* closes after this function */
    struct sockaddr_in address;
    int len = sizeof(address);
    char url[64];

    /* Bound and not listening: nobody else can get the port meanwhile. */
    assert_int_equal(uv_tcp_init(&fx->loop, &taken), 0);
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &address), 0);
    assert_int_equal(uv_tcp_bind(&taken, (const struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_tcp_getsockname(&taken, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
    get(fx, &(struct http_options){.url = url});
    assert_string_equal(fx->first.code, "EFR_CONNECT");
    (void)snprintf(url, sizeof(url), "connect to 127.0.0.1:%d: Connection refused",
                   ntohs(address.sin_port));
    assert_string_equal(fx->first.text, url);
    uv_close((uv_handle_t *)&taken, NULL);
}

static void test_broken_answers_are_no_connect_error(void **state)
{
    static const char *const answers[] = {
        NULL,                                              /* closed without a byte */
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab", /* cut short */
        "SSH-2.0-x\r\n",                                   /* no HTTP */
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    };
    struct fixture *fx = *state;

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        memset(&fx->first, 0, sizeof(fx->first));
        fx->server.pieces[0] = answers[i];
        get(fx, &(struct http_options){.method = "POST", .body = "x", .body_len = 1});
        assert_string_equal(fx->first.code, "EFR_IO");
        assert_non_null(strstr(fx->first.text, "127.0.0.1:"));
    }
}

static void test_silence_ends_a_request(void **state)
{
    struct fixture *fx = *state;

    fx->server.keep_quiet = true;
    get(fx, &(struct http_options){.idle_timeout_ms = 30});
    assert_string_equal(fx->first.code, "EFR_TIMEOUT");
    assert_int_equal(fx->first.heads, 0);

    memset(&fx->first, 0, sizeof(fx->first));
    fx->server.keep_quiet = false;
    fx->server.stay_open = true;
    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab";
    get(fx, &(struct http_options){.idle_timeout_ms = 30});
    assert_string_equal(fx->first.code, "EFR_TIMEOUT");
    assert_int_equal(fx->first.body_len, 2);
}

static void test_size_limits(void **state)
{
    struct fixture *fx = *state;
    char *long_head = malloc(400000);

    assert_non_null(long_head);
    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789";
    get(fx, &(struct http_options){.max_bytes = 10});
    assert_string_equal(fx->first.code, "");
    memset(&fx->first, 0, sizeof(fx->first));
    get(fx, &(struct http_options){.max_bytes = 9});
    assert_string_equal(fx->first.code, "EFR_TOO_BIG");

    memset(&fx->first, 0, sizeof(fx->first));
    long_head[0] = '\0';
    (void)strcat(long_head, "HTTP/1.1 200 OK\r\n");
    for (size_t at = strlen(long_head); at < 399000; at += 1000) {
        memset(long_head + at, 'h', 1000);
        memcpy(long_head + at, "X:", 2);
        memcpy(long_head + at + 998, "\r\n", 3);
    }
    fx->server.pieces[0] = long_head;
    get(fx, &(struct http_options){0});
    assert_true(strcmp(fx->first.code, "EFR_TOO_BIG") == 0 ||
                strcmp(fx->first.code, "EFR_IO") == 0);
    assert_int_equal(fx->first.heads, 0);
    free(long_head);
}

static void test_refuses_bad_requests(void **state)
{
    static const char *const smuggled[] = {"X: a\r\nY: b"};
    struct fixture *fx = *state;
    struct http_options cases[] = {
        {.method = "GET", .url = "ftp://127.0.0.1/"},
        {.method = "GET", .url = "file:///etc/passwd"},
        {.method = "GET", .url = "no url"},
        {.method = "GET /y HTTP/1.1\r\nX:", .url = fx->url},
        {.method = "GET", .url = fx->url, .headers = smuggled, .n_headers = 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct efr_err err = {0};

        assert_null(http_start(fx->http, &cases[i], &events, &fx->first, &err));
        assert_string_equal(err.code, "EFR_INVALID");
    }
    uv_run(&fx->loop, UV_RUN_NOWAIT);
    assert_int_equal(fx->server.connections, 0);
    assert_int_equal(fx->first.done, 0);
}

/* -- cancelling ------------------------------------------------------------------- */

static void test_cancel_before_anything_came(void **state)
{
    struct fixture *fx = *state;

    start_one(fx, &fx->first, &(struct http_options){0});
    http_cancel(fx->first.request);
    assert_int_equal(fx->first.done, 0); /* never from inside */
    wait_done(fx, &fx->first);
    assert_string_equal(fx->first.code, "EFR_CANCELLED");
    assert_int_equal(fx->first.heads, 0);
}

static void test_cancel_from_callbacks(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab";
    fx->server.stay_open = true;
    fx->first.cancel_at_head = true;
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "EFR_CANCELLED");
    assert_int_equal(fx->first.body_len, 0);

    memset(&fx->first, 0, sizeof(fx->first));
    fx->first.cancel_at_data = true;
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "EFR_CANCELLED");
    assert_int_equal(fx->first.data_calls, 1);

    memset(&fx->first, 0, sizeof(fx->first));
    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    fx->first.cancel_when_done = true;
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "");
}

/* The answer and its end wait together; the cancel at the data comes before the end. */
static void test_cancel_beats_an_end_that_waits(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    fx->first.cancel_at_data = true;
    get(fx, &(struct http_options){0});
    assert_string_equal(fx->first.code, "EFR_CANCELLED");
}

static void test_start_from_a_callback(void **state)
{
    struct fixture *fx = *state;

    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
    fx->first.then_start = fx;
    get(fx, &(struct http_options){0});
    wait_done(fx, &fx->second);
    assert_string_equal(fx->second.code, "");
    assert_int_equal(fx->second.body_len, 2);
}

static void test_destroy_drops_running_requests(void **state)
{
    struct fixture *fx = *state;
    struct efr_err err = {0};

    fx->server.pieces[0] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab";
    fx->server.stay_open = true;
    start_one(fx, &fx->first, &(struct http_options){.idle_timeout_ms = LIMIT_MS});
    start_one(fx, &fx->second, &(struct http_options){0});
    while (fx->first.data_calls == 0 && !fx->late)
        uv_run(&fx->loop, UV_RUN_ONCE);
    http_cancel(fx->second.request);
    http_destroy(fx->http);
    uv_run(&fx->loop, UV_RUN_NOWAIT);
    assert_int_equal(fx->first.done, 0);
    assert_int_equal(fx->second.done, 0);
    fx->http = http_create(&fx->loop, &err);
    assert_non_null(fx->http);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_head_body_end),
        TEST(test_interim_heads_trailers_and_redirects),
        TEST(test_sends_method_headers_and_body),
        TEST(test_sends_a_large_body_at_once),
        TEST(test_empty_body_is_sent_as_such),
        TEST(test_connection_is_used_again),
        TEST(test_environment_chooses_no_proxy),
        TEST(test_refused_port),
        TEST(test_broken_answers_are_no_connect_error),
        TEST(test_silence_ends_a_request),
        TEST(test_size_limits),
        TEST(test_refuses_bad_requests),
        TEST(test_cancel_before_anything_came),
        TEST(test_cancel_from_callbacks),
        TEST(test_cancel_beats_an_end_that_waits),
        TEST(test_start_from_a_callback),
        TEST(test_destroy_drops_running_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
