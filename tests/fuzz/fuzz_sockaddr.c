/* Fuzzes the broker's reading of a socket address: never beyond the bytes, always a string. */
// sources: sbx/broker.c sbx/socket_policy.c sbx/sockets.c sbx/util.c sbx/cleanup.c sbx/mount.c sbx/places.c sbx/overlay.c sbx/mount_dev.c sbx/mount_util.c sbx/plan.c
#include "broker.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[BROKER_ADDRESS_MAX + 1];
    if (size > BROKER_ADDRESS_MAX)
        return 0;
    memset(path, 'z', sizeof path);
    if (broker_read_address(data, size, path) == BROKER_PATH &&
        (!memchr(path, '\0', sizeof path) || path[0] == '\0'))
        abort();
    return 0;
}
