/* See confine.h. The allow list becomes a plain chain of comparisons: a worker makes few
 * different calls, and the kernel answers the constant ones from its cache. */
#include "confine.h"

#include "caps.h"
#include "landlock.h"
#include "util.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "efr knows x86_64 and aarch64"
#endif

#define MAX_SYSCALLS 512

static int close_others(const struct efr_confine *c)
{
    unsigned int from = 0;
    for (size_t i = 0; i < c->keep_fd_count; i++) {
        unsigned int keep = (unsigned int)c->keep_fds[i];
        if (keep > from && syscall(SYS_close_range, from, keep - 1, 0) < 0)
            return -1;
        from = keep + 1;
    }
    return (int)syscall(SYS_close_range, from, ~0U, 0);
}

static int set_limit(__rlimit_resource_t what, uint64_t value)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};
    return setrlimit(what, &limit);
}

static int set_limits(const struct efr_confine *c)
{
    uint64_t files = c->open_files;
    if (files == 0 && c->keep_fd_count > 0)
        files = (uint64_t)c->keep_fds[c->keep_fd_count - 1] + 1;
    if (set_limit(RLIMIT_CORE, 0) < 0 || set_limit(RLIMIT_FSIZE, 0) < 0 ||
        set_limit(RLIMIT_MEMLOCK, 0) < 0 || set_limit(RLIMIT_MSGQUEUE, 0) < 0)
        return -1;
    if (c->memory_bytes && set_limit(RLIMIT_AS, c->memory_bytes) < 0)
        return -1;
    return set_limit(RLIMIT_NOFILE, files);
}

static int enter_landlock(void)
{
    CLEANUP_FD int rules = landlock_ruleset(1, 1);
    if (rules < 0)
        return -1;
    return landlock_enter(rules);
}

static int enter_seccomp(const struct efr_confine *c)
{
    struct sock_filter code[2 * MAX_SYSCALLS + 8];
    size_t n = 0;
    uint32_t deny = c->deny_errno ? SECCOMP_RET_ERRNO | (uint32_t)c->deny_errno
                                  : SECCOMP_RET_KILL_PROCESS;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, arch));
    code[n++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < c->syscall_count; i++) {
        uint32_t nr = (uint32_t)c->syscalls[i];
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, deny);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                        &program);
}

static int failed(char *message, size_t message_bytes, const char *step)
{
    (void)snprintf(message, message_bytes, "confine: %s: %s", step, strerror(errno));
    return -1;
}

int efr_confine(const struct efr_confine *c, char *message, size_t message_bytes)
{
    if (c->syscall_count > MAX_SYSCALLS) {
        errno = E2BIG;
        return failed(message, message_bytes, "allow list");
    }
    for (size_t i = 0; i < c->keep_fd_count; i++) {
        if (c->keep_fds[i] >= 0 && (i == 0 || c->keep_fds[i] > c->keep_fds[i - 1]))
            continue;
        errno = EINVAL;
        return failed(message, message_bytes, "descriptors are not ascending");
    }
    if (close_others(c) < 0)
        return failed(message, message_bytes, "close descriptors");
    if (clearenv() != 0)
        return failed(message, message_bytes, "empty the environment");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return failed(message, message_bytes, "non-dumpable");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failed(message, message_bytes, "no_new_privs");
    if (enter_landlock() < 0)
        return failed(message, message_bytes, "landlock");
    if (set_limits(c) < 0)
        return failed(message, message_bytes, "limits");
    if (caps_keep_only(0) < 0)
        return failed(message, message_bytes, "capabilities");
    if (enter_seccomp(c) < 0)
        return failed(message, message_bytes, "seccomp");
    return 0;
}
