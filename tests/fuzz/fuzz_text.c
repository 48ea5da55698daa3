/*
 * Fuzzes host/text: the functions agree with each other on any bytes, and what they give
 * out is UTF-8 and shows everything.
 */
// sources: host/text.c host/buf.c host/util.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void check_clean(const char *text, size_t len)
{
    struct efr_buf out;
    efr_buf_init(&out, false);
    efr_text_clean(text, len, &out);
    need(efr_text_is_utf8(out.data, out.len));
    bool same = out.len == len && (len == 0 || !memcmp(out.data, text, len));
    need(efr_text_is_utf8(text, len) == same);
    efr_buf_finish(&out);
}

static void check_printable(const char *text, size_t len)
{
    struct efr_buf out;
    efr_buf_init(&out, false);
    efr_text_printable(text, len, &out);
    need(efr_text_is_utf8(out.data, out.len));
    for (size_t i = 0; i < out.len; i++) {
        unsigned char c = (unsigned char)out.data[i];
        need(c >= 0x20 && c != 0x7f);
        need(c != 0xc2 || (unsigned char)out.data[i + 1] >= 0xa0); /* C1 controls */
    }
    struct efr_buf twice;
    efr_buf_init(&twice, false);
    efr_text_printable(out.data, out.len, &twice); /* what is visible stays as it is */
    need(twice.len == out.len &&
         (out.len == 0 || !memcmp(twice.data, out.data, out.len)));
    efr_buf_finish(&twice);
    efr_buf_finish(&out);
}

static void check_clusters(const char *text, size_t len)
{
    size_t width = 0;
    size_t at = 0;
    while (at < len) {
        size_t n = efr_text_cluster(text + at, len - at);
        need(n > 0 && n <= len - at);
        width += efr_text_width(text + at, n);
        at += n;
    }
    need(efr_text_width(text, len) == width);
    need(width <= 2 * len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    check_clean(text, size);
    check_printable(text, size);
    check_clusters(text, size);
    return 0;
}
