/* See seccomp.h. */
#include "seccomp.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seccomp_programs.h"

#define PROGRAM(code)                                                                    \
    ((struct sock_fprog){.len = sizeof(code) / sizeof *(code),                           \
                         .filter = (struct sock_filter *)(uintptr_t)(code)})

int seccomp_enter_command(bool as_root, bool userns)
{
    struct sock_fprog program =
        as_root ? PROGRAM(SECCOMP_COMMAND_ROOT) : PROGRAM(SECCOMP_COMMAND_USER);
    if (userns)
        program = as_root ? PROGRAM(SECCOMP_USERNS_ROOT) : PROGRAM(SECCOMP_USERNS_USER);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

int seccomp_enter_init(bool as_root)
{
    struct sock_fprog program =
        as_root ? PROGRAM(SECCOMP_INIT_ROOT) : PROGRAM(SECCOMP_INIT_USER);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Closed for efr's own git, beside what the program of pid 1 closes. */
static const uint32_t GIT_CLOSED[] = {
    SYS_socket, SYS_socketpair,        SYS_connect,         SYS_bind,
    SYS_listen, SYS_accept4,           SYS_ptrace,          SYS_process_vm_readv,
    SYS_kcmp,   SYS_process_vm_writev, SYS_pidfd_getfd,     SYS_pidfd_send_signal,
    SYS_setsid, SYS_setpgid,           SYS_process_madvise,
};
#define GIT_CLOSED_COUNT (sizeof GIT_CLOSED / sizeof *GIT_CLOSED)

int seccomp_enter_git(bool as_root)
{
    /* The first program ends calls of a foreign architecture, so numbers are enough here. */
    struct sock_filter code[GIT_CLOSED_COUNT + 3];
    size_t n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < GIT_CLOSED_COUNT; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GIT_CLOSED[i],
                                                 (uint8_t)(GIT_CLOSED_COUNT - i), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    if (seccomp_enter_init(as_root) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
