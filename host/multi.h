/*
 * multi - curl's multi handle driven by the libuv loop: its sockets and its timer.
 *
 * Must not know what is transferred. Loop thread only.
 */
#ifndef EFR_MULTI_H
#define EFR_MULTI_H

#include <uv.h>

#include "libcurl.h"

struct multi;

/* Called after curl has worked, outside of curl: the place to look for ended transfers. */
typedef void multi_worked_fn(void *arg);

/* Makes an empty multi handle. Aborts without memory. */
struct multi *multi_create(const struct libcurl *curl, uv_loop_t *loop,
                           multi_worked_fn *worked, void *arg);

/* Closes the connections. All transfers must be removed before. The memory goes with the
 * loop's next turn. */
void multi_destroy(struct multi *multi);

/* The handle, for adding and removing transfers; borrowed. */
CURLM *multi_handle(struct multi *multi);

#endif
