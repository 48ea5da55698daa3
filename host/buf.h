/*
 * Growable bytes. Never fails: allocation failure aborts. A secret buffer overwrites its
 * memory when it moves and when it ends. Any thread, one at a time.
 */
#ifndef EFR_BUF_H
#define EFR_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct efr_buf {
    char *data; /* owned; not NUL-terminated */
    size_t len;
    size_t cap;
    bool secret;
};

/* An empty buffer needs no memory. */
void efr_buf_init(struct efr_buf *buf, bool secret);

/* Frees the memory, overwritten first when secret. Safe twice. */
void efr_buf_finish(struct efr_buf *buf);

/* Makes room for more bytes after len and returns the place; the caller adds to len. */
char *efr_buf_reserve(struct efr_buf *buf, size_t more);

/* Appends bytes, a NUL-terminated text, one byte. */
void efr_buf_append(struct efr_buf *buf, const void *data, size_t len_bytes);
void efr_buf_puts(struct efr_buf *buf, const char *text);
void efr_buf_putc(struct efr_buf *buf, char c);

/* Drops the first count bytes; the rest moves to the front. */
void efr_buf_consume(struct efr_buf *buf, size_t count);

#endif
