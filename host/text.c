/*
 * Text: see text.h. Any thread.
 */
#include "text.h"

#include <stdio.h>
#include <utf8proc.h>

#include "buf.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define JOINER 0x200d
#define VARIATION_TEXT 0xfe0e
#define VARIATION_EMOJI 0xfe0f
#define REGIONAL_FIRST 0x1f1e6
#define REGIONAL_LAST 0x1f1ff

/* ---- UTF-8 ---- */

/* The table of Unicode 3.9, well-formed sequences: length and the range of byte two. */
static size_t lead(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef) {
        if (c == 0xe0)
            *low = 0xa0;
        if (c == 0xed)
            *high = 0x9f;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (c == 0xf0)
            *low = 0x90;
        if (c == 0xf4)
            *high = 0x8f;
        return 4;
    }
    return 0;
}

size_t efr_text_next(const char *text, size_t len_bytes, int32_t *out)
{
    const unsigned char *b = (const unsigned char *)text;
    unsigned char low;
    unsigned char high;
    size_t need = lead(b[0], &low, &high);
    *out = -1;
    if (need == 0)
        return 1;
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    int32_t code = b[0] & masks[need];
    for (size_t i = 1; i < need; i++) {
        if (i >= len_bytes || b[i] < low || b[i] > high)
            return i;
        code = code << 6 | (b[i] & 0x3f);
        low = 0x80;
        high = 0xbf;
    }
    *out = code;
    return need;
}

bool efr_text_is_utf8(const char *text, size_t len_bytes)
{
    int32_t code;
    for (size_t i = 0; i < len_bytes;) {
        i += efr_text_next(text + i, len_bytes - i, &code);
        if (code < 0)
            return false;
    }
    return true;
}

void efr_text_clean(const char *text, size_t len_bytes, struct efr_buf *out)
{
    int32_t code;
    size_t start = 0; /* of the good bytes that are not yet appended */
    for (size_t i = 0; i < len_bytes;) {
        size_t n = efr_text_next(text + i, len_bytes - i, &code);
        if (code < 0) {
            efr_buf_append(out, text + start, i - start);
            efr_buf_puts(out, REPLACEMENT);
            start = i + n;
        }
        i += n;
    }
    efr_buf_append(out, text + start, len_bytes - start);
}

/* ---- visible forms ---- */

static bool is_pictograph(int32_t code)
{
    return code >= 0 && utf8proc_get_property(code)->boundclass ==
                            UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

/* Characters without ink that can hide or turn the text around them. */
static bool is_hidden(int32_t code)
{
    if (code == VARIATION_TEXT || code == VARIATION_EMOJI)
        return false;
    utf8proc_category_t category = utf8proc_category(code);
    if (category >= UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_CN)
        return true; /* separators, controls, format, surrogates, private, unassigned */
    /* default-ignorable letters and marks, such as the Hangul fillers */
    return utf8proc_get_property(code)->ignorable;
}

static void put_stand_in(int32_t code, struct efr_buf *out)
{
    char text[16];
    if (code < 0x20 || code == 0x7f) { /* U+2400 and on: the control pictures */
        char picture = (char)(code == 0x7f ? 0xa1 : 0x80 + code);
        efr_buf_puts(out, "\xe2\x90");
        efr_buf_putc(out, picture);
        return;
    }
    (void)snprintf(text, sizeof(text), "<U+%04X>", (unsigned)code);
    efr_buf_puts(out, text);
}

void efr_text_printable(const char *text, size_t len_bytes, struct efr_buf *out)
{
    int32_t before =
        -1; /* the last character that is no variation selector or skin tone */
    for (size_t i = 0; i < len_bytes;) {
        int32_t code;
        int32_t next = -1;
        size_t n = efr_text_next(text + i, len_bytes - i, &code);
        if (i + n < len_bytes)
            (void)efr_text_next(text + i + n, len_bytes - i - n, &next);
        bool joins = code == JOINER && is_pictograph(before) && is_pictograph(next);
        if (code < 0)
            efr_buf_puts(out, REPLACEMENT);
        else if (is_hidden(code) && !joins)
            put_stand_in(code, out);
        else
            efr_buf_append(out, text + i, n);
        if (code != VARIATION_EMOJI && !(code >= 0x1f3fb && code <= 0x1f3ff))
            before = code;
        i += n;
    }
}

/* ---- clusters and widths ---- */

size_t efr_text_cluster(const char *text, size_t len_bytes)
{
    if (len_bytes == 0)
        return 0;
    int32_t state = 0;
    int32_t before;
    size_t end = efr_text_next(text, len_bytes, &before);
    while (before >= 0 && end < len_bytes) {
        int32_t code;
        size_t n = efr_text_next(text + end, len_bytes - end, &code);
        if (code < 0 || utf8proc_grapheme_break_stateful(before, code, &state))
            break;
        end += n;
        before = code;
    }
    return end;
}

static size_t cluster_width(const char *text, size_t len_bytes)
{
    size_t width = 0;
    for (size_t i = 0; i < len_bytes;) {
        int32_t code;
        i += efr_text_next(text + i, len_bytes - i, &code);
        int own = code < 0 ? 1 : utf8proc_charwidth(code);
        bool flag = code >= REGIONAL_FIRST && code <= REGIONAL_LAST;
        if (width == 1 && (code == VARIATION_EMOJI || flag))
            own = 2; /* shown as an emoji; two regional indicators are one flag */
        if (own > 0 && (size_t)own > width)
            width = (size_t)own;
    }
    return width;
}

size_t efr_text_width(const char *text, size_t len_bytes)
{
    size_t width = 0;
    for (size_t i = 0; i < len_bytes;) {
        if ((unsigned char)text[i] >= 0x20 && (unsigned char)text[i] < 0x7f &&
            (i + 1 == len_bytes || (unsigned char)text[i + 1] < 0x80)) {
            width++; /* plain ASCII, and nothing joins to it */
            i++;
            continue;
        }
        size_t n = efr_text_cluster(text + i, len_bytes - i);
        width += cluster_width(text + i, n);
        i += n;
    }
    return width;
}
