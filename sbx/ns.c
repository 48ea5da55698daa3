/* See ns.h. */
#include "ns.h"

#include "util.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static void explain_and_die(void)
{
    int saved = errno;
    stage("namespaces");
    errno = saved;
    switch (saved) {
    case EPERM:
    case EACCES:
        die_errno("user namespaces are refused here (kernel.unprivileged_userns_clone, "
                  "kernel.apparmor_restrict_unprivileged_userns, a chroot or a container "
                  "profile)");
    case ENOSPC:
        die_errno("the limit of namespaces is reached (user.max_user_namespaces, "
                  "user.max_net_namespaces)");
    default:
        die_errno("clone3");
    }
}

pid_t ns_clone(bool own_network, int cgroup)
{
    struct clone_args args = {
        .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                 CLONE_NEWUTS | CLONE_NEWCGROUP | (own_network ? CLONE_NEWNET : 0),
        .exit_signal = SIGCHLD,
    };
    if (cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup;
    }
    long pid = syscall(SYS_clone3, &args, sizeof args);
    /* The launcher may stand where this user cannot move processes from (a login session). */
    if (pid < 0 && errno == EACCES && cgroup >= 0) {
        args.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
        pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid > 0)
            say("efr-sbx: no limit of memory: the terminal's cgroup cannot be left");
    }
    if (pid < 0)
        explain_and_die();
    return (pid_t)pid;
}

static void write_proc(const char *path, const char *text)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        die_errno("open %s", path);
    if (write_all(fd, text, strlen(text)) < 0)
        die_errno("write %s", path);
}

void ns_map_ids(uid_t uid, gid_t gid)
{
    char map[64];
    write_proc("/proc/self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "%u %u 1\n", uid, uid);
    write_proc("/proc/self/uid_map", map);
    (void)snprintf(map, sizeof map, "%u %u 1\n", gid, gid);
    write_proc("/proc/self/gid_map", map);
}

void ns_loopback_up(void)
{
    CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die_errno("socket");
    struct ifreq request = {.ifr_flags = IFF_UP};
    memcpy(request.ifr_name, "lo", sizeof "lo");
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        die_errno("loopback up");
}
