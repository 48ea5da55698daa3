/*
 * Frames between efrd and a worker: u32 length of the payload (little-endian), u8 type, payload of at most 64 KiB.
 * Owns: one connection's buffers. Must not know what frames mean. Runs in efr-worker, one thread.
 */
#ifndef EFR_WORKER_FRAMES_H
#define EFR_WORKER_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#define FRAME_MAX_BYTES ((size_t)64 << 10)

struct frame {
    char type;
    const char *bytes; /* borrowed until the next frames_read */
    size_t len;
};

/* The next frame of a descriptor; waits, and sends what frames_put has kept before it does. Returns 1, 0 at the end
 * of the connection or when it broke, -1 when what came is no frame. */
int frames_read(int fd, struct frame *frame);

/* Whether a whole frame is already there. */
bool frames_ready(void);

/* Keeps a frame for sending: head and body together are its payload. */
void frames_put(int fd, char type, const void *head, size_t head_len, const void *body,
                size_t body_len);

#endif
