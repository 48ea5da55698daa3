/*
 * Small helpers of the host: memory that cannot fail, release at scope end, time,
 * randomness, wiping. Allocation failure aborts. CLEANUP_* must not be used in a function
 * that calls the Lua API: Lua raises by longjmp, which skips them (luax_guard is the
 * means there).
 */
#ifndef EFR_UTIL_H
#define EFR_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* malloc, calloc, realloc, strdup and memdup that abort instead of returning NULL. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *data, size_t len_bytes)
    __attribute__((malloc, returns_nonnull));

/* Overwrites memory that held a secret; the compiler cannot drop it. */
void efr_wipe(void *data, size_t len_bytes);

/* Closes a descriptor and sets it to -1; keeps errno. -1 is fine. */
void efr_close(int *fd);

/* Fills a buffer from getrandom; aborts when the kernel has none. */
void efr_random(void *out, size_t len_bytes);

/* Microseconds of the wall clock since 1970, and of the monotonic clock. */
int64_t efr_now_us(void);
int64_t efr_mono_us(void);

/* Writes a time-ordered UUID (version 7) in its text form of 36 characters and a NUL. */
void efr_uuid7(char out[37]);

static inline void efr_cleanup_free(void *slot)
{
    free(*(void **)slot);
}

static inline void efr_cleanup_fd(int *fd)
{
    efr_close(fd);
}

#define CLEANUP_FREE __attribute__((cleanup(efr_cleanup_free)))
#define CLEANUP_FD __attribute__((cleanup(efr_cleanup_fd)))

/* Gives the owned descriptor away: the variable becomes -1. */
static inline int steal_fd(int *fd)
{
    int kept = *fd;
    *fd = -1;
    return kept;
}

static inline void *efr_steal_ptr(void *slot)
{
    void **ptr = slot;
    void *kept = *ptr;
    *ptr = NULL;
    return kept;
}

/* Gives the owned pointer away: the variable becomes NULL. */
#define steal_ptr(slot) ((__typeof__(*(slot)))efr_steal_ptr(slot))

#endif
