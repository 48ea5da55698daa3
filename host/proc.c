/*
 * Children on the loop: see proc.h. Loop thread only.
 */
#include "proc.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "spawn.h"
#include "util.h"

#define CODE_UNKNOWN 255 /* somebody else reaped the child */

struct efr_proc {
    uv_poll_t poll; /* first: the handle is the object */
    pid_t pid;
    int pidfd;
    efr_proc_exit_fn on_exit; /* NULL when nobody asks any more */
    void *arg;
    bool running;
    bool owned; /* the creator still holds the pointer */
    struct efr_proc *next;
    struct efr_proc **link; /* what points at us in the list of all */
};

static struct efr_proc *all_procs;

static void unlink_proc(struct efr_proc *proc)
{
    *proc->link = proc->next;
    if (proc->next)
        proc->next->link = proc->link;
}

static void link_proc(struct efr_proc *proc)
{
    proc->next = all_procs;
    proc->link = &all_procs;
    if (all_procs)
        all_procs->link = &proc->next;
    all_procs = proc;
}

static void on_closed(uv_handle_t *handle)
{
    struct efr_proc *proc = handle->data;
    efr_close(&proc->pidfd);
    if (!proc->owned)
        free(proc);
}

/* Ends the watch. The memory goes when the creator has given the pointer up, too. */
static void stop(struct efr_proc *proc)
{
    proc->running = false;
    unlink_proc(proc);
    uv_close((uv_handle_t *)&proc->poll, on_closed);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct efr_proc *proc = poll->data;
    siginfo_t info = {0};
    int rc = waitid(P_PID, (id_t)proc->pid, &info, WEXITED | WNOHANG);
    if (rc == 0 && info.si_pid == 0)
        return; /* not yet */
    bool exited = rc != 0 || info.si_code == CLD_EXITED;
    int code = rc != 0 ? CODE_UNKNOWN : exited ? info.si_status : 0;
    int sig = exited ? 0 : info.si_status;
    efr_proc_exit_fn fn = proc->on_exit;
    void *arg = proc->arg;
    stop(proc);
    if (fn)
        fn(arg, code, sig);
}

/* A child that cannot be watched must not run on unseen. */
static void abandon(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

struct efr_proc *efr_proc_create(uv_loop_t *loop, const struct efr_spawn *what,
                                 efr_proc_exit_fn on_exit, void *arg, struct efr_err *err)
{
    pid_t pid = efr_spawn(what, err);
    if (pid < 0)
        return NULL;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec */
    if (pidfd < 0) {
        efr_err_errno(err, errno, "watch %s", what->path);
        abandon(pid);
        return NULL;
    }
    struct efr_proc *proc = xcalloc(1, sizeof(*proc));
    *proc = (struct efr_proc){.pid = pid, .pidfd = pidfd, .on_exit = on_exit, .arg = arg};
    int rc = uv_poll_init(loop, &proc->poll, pidfd);
    if (rc != 0) {
        efr_err_errno(err, -rc, "watch %s", what->path);
        abandon(pid);
        efr_close(&pidfd);
        free(proc);
        return NULL;
    }
    proc->poll.data = proc;
    proc->running = true;
    proc->owned = true;
    link_proc(proc);
    rc = uv_poll_start(&proc->poll, UV_READABLE, on_readable);
    if (rc != 0) {
        efr_err_errno(err, -rc, "watch %s", what->path);
        abandon(pid);
        proc->owned = false;
        stop(proc);
        return NULL;
    }
    return proc;
}

void efr_proc_destroy(struct efr_proc *proc)
{
    if (!proc)
        return;
    proc->on_exit = NULL;
    proc->owned = false;
    if (proc->running)
        uv_unref((uv_handle_t *)&proc->poll);
    else if (proc->pidfd < 0) /* closed already */
        free(proc);
}

pid_t efr_proc_pid(const struct efr_proc *proc)
{
    return proc->pid;
}

bool efr_proc_running(const struct efr_proc *proc)
{
    return proc->running;
}

int efr_proc_kill(struct efr_proc *proc, int sig, struct efr_err *err)
{
    if (!proc->running)
        return efr_err_errno(err, ESRCH, "signal process %d", (int)proc->pid);
    if (syscall(SYS_pidfd_send_signal, proc->pidfd, sig, NULL, 0) != 0)
        return efr_err_errno(err, errno, "signal process %d", (int)proc->pid);
    return 0;
}

void efr_proc_finish_all(void)
{
    while (all_procs)
        stop(all_procs);
}
