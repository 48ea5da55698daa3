/* See sequences.h. An ESC goes on with the byte after it, so libvterm never sees one whose meaning is open. */
#include "sequences.h"

#include <string.h>

#define ESC '\033'
#define BEL '\a'
#define CAN '\030'
#define SUB '\032'
#define NUMBER_MAX 9999
#define REPEAT_MAX 500
#define NUMBERS_MAX 16 /* libvterm keeps as many */

static void collect(struct sequences *s, const char *bytes, size_t len)
{
    if (s->is_osc && s->len < OSC_MAX_BYTES) {
        size_t room = OSC_MAX_BYTES - s->len;
        memcpy(s->body + s->len, bytes, len < room ? len : room);
    }
    s->len += len;
}

static void complete(struct sequences *s)
{
    s->at = AT_GROUND;
    if (s->is_osc && s->len <= OSC_MAX_BYTES)
        s->osc(s->user, s->body, s->len);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Remembers the last character of a piece of text. */
static void remember_last(struct sequences *s, const char *bytes, size_t len)
{
    size_t from = len - 1;
    while (from > 0 && len - from < sizeof(s->last) && (bytes[from] & 0xc0) == 0x80)
        from--;
    unsigned char lead = (unsigned char)bytes[from];
    s->last_len = 0;
    if (lead < 0x20 || (lead & 0xc0) == 0x80)
        return;
    s->last_len = len - from;
    memcpy(s->last, bytes + from, s->last_len);
}

static void repeat_last(struct sequences *s)
{
    char out[4 * REPEAT_MAX];
    size_t count = 0, len = 0;
    for (size_t at = 0; at + 1 < s->len && is_digit(s->body[at]); at++) {
        count = count * 10 + (size_t)(s->body[at] - '0');
        if (count > REPEAT_MAX)
            count = REPEAT_MAX;
    }
    for (size_t i = 0; i < (count ? count : 1); i++) {
        memcpy(out + len, s->last, s->last_len);
        len += s->last_len;
    }
    if (len)
        s->text(s->user, out, len);
}

static size_t ground(struct sequences *s, const char *bytes, size_t len)
{
    const char *escape = memchr(bytes, ESC, len);
    size_t n = escape ? (size_t)(escape - bytes) : len;
    if (n) {
        s->text(s->user, bytes, n);
        remember_last(s, bytes, n);
    }
    if (!escape)
        return n;
    s->at = AT_ESCAPE;
    return n + 1;
}

/* A number of at most NUMBER_MAX; moves *at behind the digits. */
static size_t put_number(char *to, const char *digits, size_t *at)
{
    unsigned int value = 0;
    for (; is_digit(digits[*at]); ++*at) {
        value = value * 10 + (unsigned int)(digits[*at] - '0');
        if (value > NUMBER_MAX)
            value = NUMBER_MAX;
    }
    size_t len = 0;
    for (unsigned int unit = 1000; unit > 0; unit /= 10) {
        if (value >= unit || len > 0 || unit == 1)
            to[len++] = (char)('0' + value / unit % 10);
    }
    return len;
}

/* Whether a private mode sequence names the mode of cursor keys. */
static bool names_cursor_keys(const char *body, size_t len)
{
    for (size_t at = 1; at + 1 < len; at++) {
        bool begins = body[at - 1] == '?' || body[at - 1] == ';';
        bool ends = body[at + 1] == ';' || at + 2 == len;
        if (begins && body[at] == '1' && ends)
            return true;
    }
    return false;
}

/* Keeps the mode of cursor keys: CSI ? 1 h and l, and the soft reset. */
static void note_mode(struct sequences *s)
{
    char final = s->body[s->len - 1];
    if (final == 'p' && s->len == 2 && s->body[0] == '!')
        s->application_keys = false;
    if ((final == 'h' || final == 'l') && s->body[0] == '?' &&
        names_cursor_keys(s->body, s->len))
        s->application_keys = final == 'h';
}

/* The collected sequence, ending with its final byte, as libvterm may see it. */
static void emit_csi(struct sequences *s)
{
    char out[CSI_MAX_BYTES + 4] = {ESC, '['};
    size_t len = 2;
    const char *body = s->body;
    char final = body[s->len - 1];
    int numbers = 1;
    if (final == 'b') {
        repeat_last(s);
        return;
    }
    for (size_t at = 0; at < s->len;) {
        char c = body[at];
        bool dropped = numbers > NUMBERS_MAX && at + 1 < s->len;
        if (is_digit(c)) {
            char number[8];
            size_t n = put_number(number, body, &at);
            if (dropped)
                continue;
            memcpy(out + len, number, n);
            len += n;
            continue;
        }
        if (c == ';' || c == ':')
            dropped = ++numbers > NUMBERS_MAX;
        if (!dropped)
            out[len++] = c;
        at++;
    }
    s->text(s->user, out, len);
}

static size_t csi(struct sequences *s, const char *bytes)
{
    unsigned char c = (unsigned char)*bytes;
    if (c == ESC) {
        s->at = AT_ESCAPE;
        return 1;
    }
    if (c < 0x20) {
        s->text(s->user, bytes, 1);
        if (c == CAN || c == SUB)
            s->at = AT_GROUND;
        return 1;
    }
    if (c >= 0x80) {
        s->at = AT_GROUND;
        return 0;
    }
    if (s->len < CSI_MAX_BYTES)
        s->body[s->len] = (char)c;
    s->len++;
    if (c < 0x40 || c == 0x7f)
        return 1;
    s->at = AT_GROUND;
    if (s->len <= CSI_MAX_BYTES) {
        note_mode(s);
        emit_csi(s);
    }
    return 1;
}

static size_t escape(struct sequences *s, const char *bytes)
{
    char c = *bytes;
    if (c == ESC)
        return 1;
    if ((unsigned char)c < 0x20) {
        /* A control inside the sequence. */
        s->text(s->user, bytes, 1);
        if (c == CAN || c == SUB)
            s->at = AT_GROUND;
        return 1;
    }
    if (c == '[') {
        s->at = AT_CSI;
        s->len = 0;
        return 1;
    }
    if (c && strchr("]PX^_", c)) {
        s->at = AT_STRING;
        s->is_osc = c == ']';
        s->len = 0;
        return 1;
    }
    s->at = AT_GROUND;
    if (c >= 0x20 && c < 0x30) {
        s->at = AT_CHARSET;
        s->body[0] = c;
    } else if (strchr("78=>DEHMc", c)) {
        if (c == 'c')
            s->application_keys = false;
        s->text(s->user, (const char[]){ESC, c}, 2);
    }
    return 1;
}

/* After ESC and an intermediate byte: character sets, and the test pattern. */
static size_t charset(struct sequences *s, const char *bytes)
{
    char c = *bytes;
    unsigned char byte = (unsigned char)c;
    if (byte >= 0x20 && byte < 0x30) {
        s->body[0] = 0; /* no sequence that we know has two */
        return 1;
    }
    s->at = c == ESC ? AT_ESCAPE : AT_GROUND;
    if (byte < 0x20 || byte >= 0x7f)
        return c == ESC;
    bool known = strchr("()", s->body[0]) ? strchr("0AB", c) != NULL
                                          : s->body[0] == '#' && c == '8';
    if (s->body[0] && known)
        s->text(s->user, (const char[]){ESC, s->body[0], c}, 3);
    return 1;
}

static bool ends_string(const struct sequences *s, char c)
{
    return c == ESC || c == CAN || c == SUB || (c == BEL && s->is_osc);
}

static size_t string(struct sequences *s, const char *bytes, size_t len)
{
    size_t n = 0;
    while (n < len && !ends_string(s, bytes[n]))
        n++;
    collect(s, bytes, n);
    if (n == len)
        return n;
    if (bytes[n] == ESC)
        s->at = AT_STRING_ESCAPE;
    else if (bytes[n] == BEL)
        complete(s);
    else
        s->at = AT_GROUND;
    return n + 1;
}

static size_t string_escape(struct sequences *s, const char *bytes)
{
    if (*bytes == '\\') {
        complete(s);
        return 1;
    }
    if (*bytes == ESC) {
        collect(s, bytes, 1);
        s->at = AT_STRING;
        return 1;
    }
    s->at = AT_ESCAPE;
    return 0;
}

void sequences_feed(struct sequences *s, const char *bytes, size_t len)
{
    size_t at = 0;
    while (at < len) {
        if (s->at == AT_GROUND)
            at += ground(s, bytes + at, len - at);
        else if (s->at == AT_ESCAPE)
            at += escape(s, bytes + at);
        else if (s->at == AT_CHARSET)
            at += charset(s, bytes + at);
        else if (s->at == AT_CSI)
            at += csi(s, bytes + at);
        else if (s->at == AT_STRING)
            at += string(s, bytes + at, len - at);
        else
            at += string_escape(s, bytes + at);
    }
}
