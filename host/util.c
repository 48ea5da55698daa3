/*
 * Helpers without state: see util.h. Runs on any thread.
 */
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static void *check(void *ptr)
{
    if (!ptr)
        abort();
    return ptr;
}

void *xmalloc(size_t size)
{
    return check(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return check(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *ptr, size_t size)
{
    return check(realloc(ptr, size ? size : 1));
}

char *xstrdup(const char *text)
{
    return check(strdup(text));
}

void *xmemdup(const void *data, size_t len_bytes)
{
    void *copy = xmalloc(len_bytes);
    if (len_bytes)
        memcpy(copy, data, len_bytes);
    return copy;
}

void efr_wipe(void *data, size_t len_bytes)
{
    if (len_bytes)
        explicit_bzero(data, len_bytes);
}

void efr_close(int *fd)
{
    if (*fd < 0)
        return;
    int saved = errno;
    (void)close(*fd);
    *fd = -1;
    errno = saved;
}

void efr_random(void *out, size_t len_bytes)
{
    unsigned char *at = out;
    while (len_bytes > 0) {
        ssize_t n = getrandom(at, len_bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            abort();
        at += n;
        len_bytes -= (size_t)n;
    }
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts;
    if (clock_gettime(clock, &ts) != 0)
        abort();
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t efr_now_us(void)
{
    return clock_us(CLOCK_REALTIME);
}

int64_t efr_mono_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

void efr_uuid7(char out[37])
{
    unsigned char b[16];
    efr_random(b, sizeof(b));
    uint64_t ms = (uint64_t)efr_now_us() / 1000;
    for (int i = 0; i < 6; i++)
        b[i] = (unsigned char)(ms >> (40 - 8 * i));
    b[6] = (unsigned char)(0x70 | (b[6] & 0x0f));
    b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
    static const char digits[] = "0123456789abcdef";
    char *at = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[b[i] >> 4];
        *at++ = digits[b[i] & 15];
    }
    *at = '\0';
}
