/* See keeper.h. The messages stand in docs/protocol.md, "The keeper". */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "err.h"
#include "proc.h"
#include "spawn.h"
#include "util.h"

enum { MASTER_FD = 3, SHELL_FD = 4 };

#define NO_CALL ((uint64_t)0)
#define DISMISS ((uint64_t)1)

struct keeper {
    uv_loop_t *loop;
    struct keeper_shell shell;
    struct efr_proc *proc;
    int pipe; /* the keeper reads the other end, and nobody else has ours */
};

/* Eight bytes are written whole or not at all. A keeper that reads nothing is as good as none. */
static int send_message(struct keeper *keeper, uint64_t message, struct efr_err *err)
{
    ssize_t n = write(keeper->pipe, &message, sizeof(message));
    return n == sizeof(message) ? 0
                                : efr_err_errno(err, errno, "tell the shell's keeper");
}

static int start(struct keeper *keeper, struct efr_err *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return efr_err_errno(err, errno, "make a pipe");
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    char name[] = "efr-sbx", role[] = "keep", pid[16];
    (void)snprintf(pid, sizeof(pid), "%d", (int)keeper->shell.pid);
    char *const argv[] = {name, role, pid, NULL};
    char *const env[] = {NULL};
    struct efr_spawn what = {
        .path = keeper->shell.program,
        .argv = argv,
        .env = env,
        .cwd = "/",
        .fds = {{0, ends[0]},
                {MASTER_FD, keeper->shell.master},
                {SHELL_FD, keeper->shell.pidfd}},
        .fd_count = 3,
        .umask_bits = -1,
        .setsid = true,
    };
    keeper->proc = efr_proc_create(keeper->loop, &what, NULL, NULL, err);
    efr_close(&ends[0]);
    if (!keeper->proc) {
        efr_close(&ends[1]);
        return efr_err_wrap(err, "start the shell's keeper");
    }
    keeper->pipe = ends[1];
    return 0;
}

struct keeper *keeper_create(uv_loop_t *loop, const struct keeper_shell *shell,
                             struct efr_err *err)
{
    struct keeper *keeper = xcalloc(1, sizeof(*keeper));
    *keeper = (struct keeper){.loop = loop, .shell = *shell, .pipe = -1};
    if (start(keeper, err) == 0)
        return keeper;
    free(keeper);
    return NULL;
}

/* It must not take the end of its input for ours, so one that cannot be told is killed. */
static void give_up(struct keeper *keeper)
{
    struct efr_err err = {0};
    if (keeper->proc && send_message(keeper, DISMISS, &err) < 0)
        (void)efr_proc_kill(keeper->proc, SIGKILL, &err);
    efr_close(&keeper->pipe);
    efr_proc_destroy(keeper->proc);
    keeper->proc = NULL;
}

int keeper_begin(struct keeper *keeper, struct efr_err *err)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (keeper->proc && send_message(keeper, ns, err) == 0)
        return 0;
    give_up(keeper);
    return start(keeper, err) < 0 ? -1 : send_message(keeper, ns, err);
}

void keeper_end(struct keeper *keeper)
{
    struct efr_err err = {0};
    /* One that is gone does nothing at all; the next begin starts another. */
    if (keeper->proc)
        (void)send_message(keeper, NO_CALL, &err);
}

int keeper_leave(struct keeper *keeper, struct efr_err *err)
{
    if (!keeper->proc)
        return efr_err_set(err, "ESRCH", "the shell's keeper is gone");
    efr_close(&keeper->pipe); /* an end without a word */
    efr_proc_destroy(keeper->proc);
    keeper->proc = NULL;
    return 0;
}

void keeper_destroy(struct keeper *keeper)
{
    if (!keeper)
        return;
    give_up(keeper);
    free(keeper);
}
