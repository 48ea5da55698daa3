/* See bounds.h. */
#include "bounds.h"

#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#define OOM_SCORE 500
#define OOM_SCORE_TEXT "500"

/* The kernel counts processes for each user namespace (Linux 5.14), so in the call's own
 * namespace this is a limit of the call, not of the user. */
static void lower(__rlimit_resource_t what, uint64_t value)
{
    struct rlimit limit;
    if (value == 0 || getrlimit(what, &limit) < 0)
        return;
    if (limit.rlim_max > value)
        limit.rlim_max = value;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(what, &limit);
}

/* The kernel counts processes for each user namespace (Linux 5.14), so in the call's own
 * namespace RLIMIT_NPROC is a limit of the call, not of the user. Root is exempt from it. A PID namespace has a pid_max of its own since Linux 6.14;
 * before, this file is the machine's and must not be touched. */
static void limit_tasks_of_root(uint64_t count)
{
    char text[24];
    struct utsname system;
    char *end;
    if (uname(&system) < 0)
        return;
    long major = strtol(system.release, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major < 6 || (major == 6 && minor < 14))
        return;
    CLEANUP_FD int fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    if (fd >= 0)
        (void)write_all(fd, text, strlen(text));
}

void bounds_out_of_memory(void)
{
    char text[16] = "";
    CLEANUP_FD int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return;
    if (strtol(text, NULL, 10) < OOM_SCORE)
        (void)write_all(fd, OOM_SCORE_TEXT, strlen(OOM_SCORE_TEXT));
}

void bounds_for_call(const struct plan *plan)
{
    lower(RLIMIT_NPROC, plan->max_processes);
    if (plan->uid == 0 && plan->max_processes)
        limit_tasks_of_root(plan->max_processes);
}

void bounds_for_command(const struct plan *plan)
{
    lower(RLIMIT_FSIZE, plan->max_file_bytes);
    lower(RLIMIT_NOFILE, plan->max_open_files);
}
