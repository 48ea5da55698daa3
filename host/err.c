/*
 * Error values: see err.h. Runs on any thread.
 */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *efr_errno_name(int errnum)
{
    const char *name = strerrorname_np(errnum);
    return name ? name : "EFR_ERRNO";
}

int efr_err_set(struct efr_err *err, const char *code, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    (void)snprintf(err->code, sizeof(err->code), "%s", code);
    return -1;
}

int efr_err_errno(struct efr_err *err, int errnum, const char *fmt, ...)
{
    if (!err)
        return -1;
    char reason[128];
    const char *text = strerror_r(errnum, reason, sizeof(reason));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(err->text))
        (void)snprintf(err->text + used, sizeof(err->text) - used, ": %s", text);
    (void)snprintf(err->code, sizeof(err->code), "%s", efr_errno_name(errnum));
    return -1;
}

int efr_err_wrap(struct efr_err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char inner[sizeof(err->text)];
    memcpy(inner, err->text, sizeof(inner));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap);
    va_end(ap);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used < sizeof(err->text))
        (void)snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner);
    return -1;
}

void efr_err_reset(struct efr_err *err)
{
    err->code[0] = '\0';
    err->text[0] = '\0';
}
