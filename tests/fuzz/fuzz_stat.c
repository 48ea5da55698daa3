/* Fuzzes the keeper's reading of /proc/PID/stat, in which a process chose the name: any text gives an
 * answer, and what stands in the name never counts. */
// sources: sbx/keep.c sbx/util.c sbx/cleanup.c
#include "keep.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { NAME_MAX_BYTES = 64 };
    char text[1024], name[NAME_MAX_BYTES + 1];
    struct keep_stat stat = {0};
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)keep_parse_stat(text, &stat);

    size_t len = size < NAME_MAX_BYTES ? size : NAME_MAX_BYTES;
    memcpy(name, data, len);
    name[len] = '\0';
    (void)snprintf(text, sizeof text,
                   "7 (%s) S 41 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2\n",
                   name);
    if (!keep_parse_stat(text, &stat) || stat.state != 'S' || stat.parent != 41 ||
        stat.start_ticks != 987654)
        abort();
    return 0;
}
