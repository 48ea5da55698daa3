/*
 * Log lines: see log.h. Runs on any thread; each line is one write(2), so lines of
 * threads do not mix.
 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096

static const char *const names[] = {"error", "warn", "info", "debug", "trace"};
static const int priorities[] = {3, 4, 6, 7, 7};

static struct {
    const char *name;
    int fd;
    int limit;
    int journal;
} log_state = {.name = "efr", .fd = STDERR_FILENO, .limit = EFR_LOG_INFO};

void efr_log_setup(const char *name, int fd, enum efr_log_level limit, int journal)
{
    log_state.name = name;
    log_state.fd = fd;
    log_state.journal = journal;
    efr_log_limit(limit);
}

void efr_log_limit(enum efr_log_level limit)
{
    __atomic_store_n(&log_state.limit, (int)limit, __ATOMIC_RELAXED);
}

int efr_log_level_of(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!strcmp(name, names[i]))
            return (int)i;
    }
    return -1;
}

static size_t put_prefix(char *out, size_t size, enum efr_log_level level)
{
    if (log_state.journal)
        return (size_t)snprintf(out, size, "<%d>", priorities[level]);
    struct timespec ts = {0};
    struct tm tm = {0};
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &tm);
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    return n + (size_t)snprintf(out + n, size - n,
                                ".%03ldZ %s %s: ", ts.tv_nsec / 1000000, log_state.name,
                                names[level]);
}

static size_t put_char(char *out, unsigned char c)
{
    if ((c >= 0x20 && c != 0x7f) || c == '\t') {
        *out = (char)c;
        return 1;
    }
    static const char digits[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[c >> 4];
    out[3] = digits[c & 15];
    return 4;
}

/* A log that cannot be written has nobody to tell. */
static void put_line(enum efr_log_level level, const char *text, size_t len_bytes)
{
    char line[LINE_MAX_BYTES];
    size_t used = put_prefix(line, 128, level);
    for (size_t i = 0; i < len_bytes && used + 5 < sizeof(line); i++)
        used += put_char(line + used, (unsigned char)text[i]);
    line[used++] = '\n';
    ssize_t n = write(log_state.fd, line, used);
    (void)n;
}

void efr_log_text(enum efr_log_level level, const char *text, size_t len_bytes)
{
    if ((int)level > __atomic_load_n(&log_state.limit, __ATOMIC_RELAXED))
        return;
    while (len_bytes > 0) {
        const char *end = memchr(text, '\n', len_bytes);
        size_t n = end ? (size_t)(end - text) : len_bytes;
        if (n > 0)
            put_line(level, text, n);
        n += end ? 1 : 0;
        text += n;
        len_bytes -= n;
    }
}

void efr_logf(enum efr_log_level level, const char *fmt, ...)
{
    char text[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    efr_log_text(level, text, len);
}
