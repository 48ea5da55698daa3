/* Fuzzes the reading of the kernel's socket list, whose names a sandboxed program chose: any bytes
 * give an answer, never a read beyond them. The first byte says which key is looked for. */
// sources: sbx/sockets.c sbx/util.c sbx/cleanup.c
#include "sockets.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct socket_key key = {.device = 42,
                             .inode = 7,
                             .name = data[0] & 1   ? NULL
                                     : data[0] & 2 ? "sock"
                                                   : ""};
    /* A copy of its own: aligned, and ASan sees the byte after it. */
    void *bytes = malloc(size - 1);
    if (size > 1 && !bytes)
        abort();
    if (size > 1)
        memcpy(bytes, data + 1, size - 1);
    enum socket_scan found = socket_scan(bytes, size - 1, &key);
    if (found == SOCKET_SCAN_FOUND && size - 1 < 16 + 16 + 12)
        abort(); /* no room for a socket with a file */
    free(bytes);
    return 0;
}
