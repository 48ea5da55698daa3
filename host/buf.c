/*
 * Growable bytes: see buf.h.
 */
#include "buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

void efr_buf_init(struct efr_buf *buf, bool secret)
{
    *buf = (struct efr_buf){.secret = secret};
}

void efr_buf_finish(struct efr_buf *buf)
{
    if (buf->secret && buf->data)
        efr_wipe(buf->data, buf->cap);
    free(buf->data);
    efr_buf_init(buf, buf->secret);
}

char *efr_buf_reserve(struct efr_buf *buf, size_t more)
{
    if (buf->cap - buf->len >= more && buf->data)
        return buf->data + buf->len;
    if (more > SIZE_MAX / 4 || buf->len > SIZE_MAX / 4)
        abort();
    size_t cap = buf->cap ? buf->cap : 64;
    while (cap - buf->len < more)
        cap *= 2;
    char *data = xmalloc(cap);
    if (buf->len)
        memcpy(data, buf->data, buf->len);
    if (buf->secret && buf->data)
        efr_wipe(buf->data, buf->cap);
    free(buf->data);
    buf->data = data;
    buf->cap = cap;
    return data + buf->len;
}

void efr_buf_append(struct efr_buf *buf, const void *data, size_t len_bytes)
{
    if (!len_bytes)
        return;
    memcpy(efr_buf_reserve(buf, len_bytes), data, len_bytes);
    buf->len += len_bytes;
}

void efr_buf_puts(struct efr_buf *buf, const char *text)
{
    efr_buf_append(buf, text, strlen(text));
}

void efr_buf_putc(struct efr_buf *buf, char c)
{
    efr_buf_append(buf, &c, 1);
}

void efr_buf_consume(struct efr_buf *buf, size_t count)
{
    if (count > buf->len)
        count = buf->len;
    if (count < buf->len)
        memmove(buf->data, buf->data + count, buf->len - count);
    if (buf->secret && count)
        efr_wipe(buf->data + buf->len - count, count);
    buf->len -= count;
}
