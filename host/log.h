/*
 * The log of a program: one line per message on one descriptor (standard error unless
 * set), with a level. Knows nothing of parts, filters or redaction: lua/efr/util/log.lua
 * does those and hands finished text down.
 */
#ifndef EFR_LOG_H
#define EFR_LOG_H

#include <stddef.h>

enum efr_log_level {
    EFR_LOG_ERROR,
    EFR_LOG_WARN,
    EFR_LOG_INFO,
    EFR_LOG_DEBUG,
    EFR_LOG_TRACE,
};

/* Chooses the descriptor, the least important level that is written, and the name of the
 * program. With journal set, lines start with the "<N>" of sd-daemon(3) and carry no
 * time. name is borrowed for ever. */
void efr_log_setup(const char *name, int fd, enum efr_log_level limit, int journal);

/* Changes the limit. */
void efr_log_limit(enum efr_log_level limit);

/* The level of a name ("warn"); -1 for a name that is none. */
int efr_log_level_of(const char *name);

/* Writes one message. Each line of it gets the prefix; control characters are shown as
 * \xNN. */
void efr_log_text(enum efr_log_level level, const char *text, size_t len_bytes);
void efr_logf(enum efr_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
