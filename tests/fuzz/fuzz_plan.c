/* Fuzzes the plan parser: any bytes are refused with a reason or give a complete plan. */
// sources: sbx/plan.c sbx/util.c sbx/cleanup.c
#include "plan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    for (size_t i = 1; parsed == 0 && i < plan.mount_count; i++)
        if (plan.mounts[i].path[0] != '/' || plan.mounts[i].path[1] == '\0')
            abort();
    plan_finish(&plan);
    return 0;
}
