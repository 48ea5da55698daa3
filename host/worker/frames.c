/* See frames.h. The buffers are static: a worker has one connection, and its memory is what a conversation costs. */
#include "frames.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define HEADER 5

static char in[HEADER + FRAME_MAX_BYTES];
static size_t in_start, in_end;
static char out[HEADER + FRAME_MAX_BYTES];
static size_t out_len;
static bool broken;

static size_t length_at(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
}

static void flush(int fd)
{
    size_t at = 0;
    while (at < out_len && !broken) {
        ssize_t n = write(fd, out + at, out_len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            broken = true;
        else
            at += (size_t)n;
    }
    out_len = 0;
}

bool frames_ready(void)
{
    size_t have = in_end - in_start;
    return have >= HEADER && have - HEADER >= length_at(in + in_start);
}

/* Reads more; returns 0 at the end. */
static int fill(int fd)
{
    if (in_start > 0) {
        memmove(in, in + in_start, in_end - in_start);
        in_end -= in_start;
        in_start = 0;
    }
    ssize_t n;
    do {
        n = read(fd, in + in_end, sizeof(in) - in_end);
    } while (n < 0 && errno == EINTR);
    if (n <= 0)
        return 0;
    in_end += (size_t)n;
    return 1;
}

int frames_read(int fd, struct frame *frame)
{
    while (!frames_ready()) {
        if (in_end - in_start >= HEADER && length_at(in + in_start) > FRAME_MAX_BYTES)
            return -1;
        flush(fd);
        if (broken || !fill(fd))
            return 0;
    }
    frame->type = in[in_start + 4];
    frame->bytes = in + in_start + HEADER;
    frame->len = length_at(in + in_start);
    in_start += HEADER + frame->len;
    return 1;
}

void frames_put(int fd, char type, const void *head, size_t head_len, const void *body,
                size_t body_len)
{
    size_t len = head_len + body_len;
    if (len > FRAME_MAX_BYTES)
        return;
    if (out_len + HEADER + len > sizeof(out))
        flush(fd);
    char *at = out + out_len;
    for (int i = 0; i < 4; i++)
        at[i] = (char)(len >> (8 * i) & 0xff);
    at[4] = type;
    if (head_len)
        memcpy(at + HEADER, head, head_len);
    if (body_len)
        memcpy(at + HEADER + head_len, body, body_len);
    out_len += HEADER + len;
}
