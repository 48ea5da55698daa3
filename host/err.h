/*
 * The error value of the host: a code for programs and a text for people. Plain data, no
 * allocation, so it can be filled on any thread and in any state. Knows nothing of Lua or
 * of the loop.
 */
#ifndef EFR_ERR_H
#define EFR_ERR_H

struct efr_err {
    char code[32];  /* errno name ("ENOENT") or "EFR_..." */
    char text[512]; /* what failed on what; empty when nothing failed */
};

/* Fills err with a code and a text and returns -1. err may be NULL. */
int efr_err_set(struct efr_err *err, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Fills err from an errno value: the text is "WHAT: strerror". Returns -1. err may be
 * NULL. */
int efr_err_errno(struct efr_err *err, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "WHAT: " before the text of an error that a callee set. Returns -1. err may be
 * NULL. */
int efr_err_wrap(struct efr_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Empties err. */
void efr_err_reset(struct efr_err *err);

/* The name of an errno value ("EACCES"), "EFR_ERRNO" for a number without one. Static
 * storage. */
const char *efr_errno_name(int errnum);

#endif
