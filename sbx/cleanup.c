/* Release at the end of a scope: see util.h. A file of its own, because efrd links the confinement
 * and has helpers of its own with the names of util.c. */
#include "util.h"

#include <stdlib.h>

void cleanup_fd(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        (void)close(*fd);
    errno = saved;
}

void cleanup_free(void *pointer)
{
    void **memory = pointer;
    free(*memory);
}
