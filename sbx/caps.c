/* See caps.h. */
#include "caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALL_LOCKED                                                                       \
    (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                     \
     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |                           \
     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int caps_keep_only(uint64_t mask)
{
    /* A process without CAP_SETPCAP can touch neither securebits nor the bounding set. */
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &head, data) < 0)
        return -1;
    if (data[0].effective & (1U << CAP_SETPCAP)) {
        if (prctl(PR_SET_SECUREBITS, ALL_LOCKED, 0, 0, 0) < 0)
            return -1;
        for (int cap = 0; cap < 64; cap++) {
            if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
                continue;
            if (errno == EINVAL)
                break; /* above the last capability of this kernel */
            return -1;
        }
    }
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        data[i].permitted = (uint32_t)(mask >> (32 * i));
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    return (int)syscall(SYS_capset, &head, data);
}
