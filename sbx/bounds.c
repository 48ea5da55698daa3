/* See bounds.h. */
#include "bounds.h"

#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#define MAX_TASKS 8192
#define MAX_TASKS_TEXT "8192"
#define OOM_SCORE 500
#define OOM_SCORE_TEXT "500"

/* The kernel counts processes for each user namespace (Linux 5.14), so in the call's own
 * namespace this is a limit of the call, not of the user. */
static void limit_tasks(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NPROC, &limit) < 0)
        return;
    if (limit.rlim_max > MAX_TASKS)
        limit.rlim_max = MAX_TASKS;
    if (limit.rlim_cur > limit.rlim_max)
        limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NPROC, &limit);
}

/* Root is exempt from that limit. A PID namespace has a pid_max of its own since Linux 6.14;
 * before, this file is the machine's and must not be touched. */
static void limit_tasks_of_root(void)
{
    struct utsname system;
    char *end;
    if (uname(&system) < 0)
        return;
    long major = strtol(system.release, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major < 6 || (major == 6 && minor < 14))
        return;
    CLEANUP_FD int fd = open("/proc/sys/kernel/pid_max", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)write_all(fd, MAX_TASKS_TEXT, strlen(MAX_TASKS_TEXT));
}

static void end_first_without_memory(void)
{
    char text[16] = "";
    CLEANUP_FD int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        return;
    if (strtol(text, NULL, 10) < OOM_SCORE)
        (void)write_all(fd, OOM_SCORE_TEXT, strlen(OOM_SCORE_TEXT));
}

void bounds_for_call(uid_t uid)
{
    limit_tasks();
    if (uid == 0)
        limit_tasks_of_root();
    end_first_without_memory();
}
