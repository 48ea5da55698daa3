/*
 * UTF-8 and what a terminal makes of it: checking, cleaning, clusters, widths. Bytes may
 * be anything. Over utf8proc. Any thread.
 */
#ifndef EFR_TEXT_H
#define EFR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct efr_buf;

/* Reads one character at text (len_bytes > 0). Returns its length and sets *out; for
 * bytes that are no UTF-8 it returns the length of the longest broken piece (Unicode 3.9:
 * maximal subpart) and sets *out to -1. Never returns 0. */
size_t efr_text_next(const char *text, size_t len_bytes, int32_t *out);

bool efr_text_is_utf8(const char *text, size_t len_bytes);

/* Appends text with U+FFFD in place of each broken piece. */
void efr_text_clean(const char *text, size_t len_bytes, struct efr_buf *out);

/* Appends text in a form that shows every character: controls, format characters, line
 * separators and what has no ink become stand-ins, broken pieces U+FFFD. Joiners between
 * two emoji and the emoji variation selectors stay. */
void efr_text_printable(const char *text, size_t len_bytes, struct efr_buf *out);

/* The length in bytes of the first grapheme cluster; 0 for an empty text. */
size_t efr_text_cluster(const char *text, size_t len_bytes);

/* Columns that the text takes on a terminal. Controls take none. */
size_t efr_text_width(const char *text, size_t len_bytes);

#endif
