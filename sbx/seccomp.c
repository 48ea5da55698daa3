/* See seccomp.h. */
#include "seccomp.h"

#include <stdint.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_programs.h"

#define PROGRAM(code)                                                                    \
    ((struct sock_fprog){.len = sizeof(code) / sizeof *(code),                           \
                         .filter = (struct sock_filter *)(uintptr_t)(code)})

int seccomp_enter_command(bool as_root)
{
    struct sock_fprog program =
        as_root ? PROGRAM(SECCOMP_COMMAND_ROOT) : PROGRAM(SECCOMP_COMMAND_USER);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

int seccomp_enter_init(bool as_root)
{
    struct sock_fprog program =
        as_root ? PROGRAM(SECCOMP_INIT_ROOT) : PROGRAM(SECCOMP_INIT_USER);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
