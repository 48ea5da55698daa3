/* Fuzzes the plan parser: any bytes are refused with a reason or give a complete plan. */
// sources: sbx/plan.c sbx/util.c sbx/cleanup.c
#include "plan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int depth_of(const char *path)
{
    unsigned int count = 0;
    for (; *path; path++)
        count += *path == '/';
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan plan;
    char message[200] = "";
    int parsed = plan_parse(&plan, (const char *)data, size, message, sizeof message);
    if (parsed < 0 && message[0] == '\0')
        abort();
    if (parsed == 0 && (!plan.nonce || strlen(plan.nonce) != PLAN_NONCE_LEN ||
                        plan.cwd[0] != '/' || plan.argv.items[plan.argv.count]))
        abort();
    for (size_t i = 0; parsed == 0 && i < plan.mount_count; i++) {
        const char *mount = plan.mounts[i].path;
        if (mount[0] != '/' || mount[1] == '\0' || strstr(mount, "/../") ||
            strstr(mount, "//") || path_below(mount, "/proc") ||
            path_below(mount, "/dev"))
            abort();
        if (i > 0 && depth_of(mount) < depth_of(plan.mounts[i - 1].path))
            abort();
    }
    for (size_t i = 0; parsed == 0 && i < plan.devices.count; i++)
        if (!path_below(plan.devices.items[i], "/dev"))
            abort();
    if (parsed == 0 && plan_add(&plan, MOUNT_FLOOR, "/a/floor") == 0 &&
        plan.mount_count == 0)
        abort();
    plan_finish(&plan);
    return 0;
}
