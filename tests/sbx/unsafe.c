/* See unsafe.h. */
#include "unsafe.h"

#include "landlock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define MOMENT_US 20
#define VARIABLE "EFR_SBX_TEST_UNSAFE"
#define CAP_VARIABLE "EFR_SBX_MAX_ABI"
#define STOP_VARIABLE "EFR_SBX_STOP_AT"

static const char *const FORMS[] = {"continue",  "path",    "no-landlock", "wait",
                                    "subvolume", "erratum", "disk-layers"};

bool unsafe_form(const char *name)
{
    const char *form = getenv(VARIABLE);
    return form && strcmp(form, name) == 0;
}

static const char *role(void)
{
    if (getpid() == 1)
        return "init";
    return getpid() == 2 && getppid() == 1 ? "command" : "launcher";
}

void unsafe_stage(const char *stage)
{
    const char *wanted = getenv(STOP_VARIABLE);
    const char *whose = role();
    size_t len = strlen(whose);
    char byte;
    if (!wanted || strncmp(wanted, whose, len) != 0 || wanted[len] != ':' ||
        strcmp(wanted + len + 1, stage) != 0)
        return;
    (void)!write(STDERR_FILENO, "stopped\n", 8);
    (void)!read(STDIN_FILENO, &byte, 1);
}

__attribute__((constructor)) static void refuse_without_a_form(void)
{
    const char *cap = getenv(CAP_VARIABLE);
    if (cap)
        landlock_cap((int)strtol(cap, NULL, 10));
    if ((cap || getenv(STOP_VARIABLE)) && !getenv(VARIABLE))
        return;
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (unsafe_form(FORMS[i]))
            return;
    (void)fputs(
        "efr-sbx-unsafe: for control runs of tests only, see tests/sbx/unsafe.h\n",
        stderr);
    _exit(125);
}

int unsafe_connect(pid_t tid, int taken, const char *path, const struct sockaddr *address,
                   socklen_t len)
{
    if (getenv(VARIABLE))
        (void)usleep(MOMENT_US);
    if (unsafe_form("continue")) {
        errno = UNSAFE_CONTINUE;
        return -1;
    }
    if (!path || !unsafe_form("path"))
        return connect(taken, address, len);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path[0] == '/')
        (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    else
        (void)snprintf(name.sun_path, sizeof name.sun_path, "/proc/%d/cwd/%s", tid, path);
    return connect(taken, (const struct sockaddr *)&name, sizeof name);
}
