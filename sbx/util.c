/* See util.h. */
#include "util.h"

#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h" /* tests/sbx: never in what ships */
#endif

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static const char *current_stage = "start";
static void (*current_sink)(const char *message);

void stage(const char *text)
{
    current_stage = text;
#ifdef EFR_SBX_TEST_UNSAFE
    unsafe_stage(text);
#endif
}

void die_sink(void (*sink)(const char *message))
{
    current_sink = sink;
}

static void die_with(const char *message)
{
    char line[1024];
    (void)snprintf(line, sizeof line, "%s: %s", current_stage, message);
    if (current_sink)
        current_sink(line);
    say("efr-sbx: %s", line);
    _exit(EFR_EXIT_SETUP);
}

void die(const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    die_with(text);
    abort();
}

void die_errno(const char *format, ...)
{
    int saved = errno;
    char text[768];
    char full[900];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)snprintf(full, sizeof full, "%s: %s", text, strerror(saved));
    die_with(full);
    abort();
}

void say(const char *format, ...)
{
    char text[1100];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    if (len < 0)
        return;
    size_t used = (size_t)len < sizeof text - 1 ? (size_t)len : sizeof text - 2;
    text[used] = '\n';
    (void)write_all(STDERR_FILENO, text, used + 1);
}

void *xcalloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        die("out of memory");
    return memory;
}

void *xrealloc(void *old, size_t size_bytes)
{
    void *memory = realloc(old, size_bytes ? size_bytes : 1);
    if (!memory)
        die("out of memory");
    return memory;
}

char *xstrdup(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        die("out of memory");
    return copy;
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        die("out of memory");
    return text;
}

int write_all(int fd, const void *bytes, size_t len_bytes)
{
    const char *at = bytes;
    while (len_bytes > 0) {
        ssize_t n = write(fd, at, len_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        at += n;
        len_bytes -= (size_t)n;
    }
    return 0;
}

ssize_t read_full(int fd, void *bytes, size_t cap_bytes)
{
    char *at = bytes;
    size_t used = 0;
    while (used < cap_bytes) {
        ssize_t n = read(fd, at + used, cap_bytes - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

int open_real(int dir, const char *path, int extra_flags)
{
    struct open_how how = {
        /* No O_NOFOLLOW: with it a link at the end would be opened itself, and not refused. */
        .flags = (uint64_t)(O_PATH | O_CLOEXEC | extra_flags),
        .resolve = RESOLVE_NO_SYMLINKS,
    };
    for (;;) {
        long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            return (int)fd;
    }
}
