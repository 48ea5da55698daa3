/* Pid 1 of a call: builds the sandbox around itself, starts the command, serves its connects,
 * reaps, and ends everything when the command has ended.
 * Owns: the order of confinement. Must not know: the call's directory; results go to the
 * launcher as messages. */
#ifndef EFR_SBX_INIT_H
#define EFR_SBX_INIT_H

#include "mount.h"
#include "plan.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct init_args {
    const struct plan *plan; /* borrowed */
    int status_fd;           /* write end: messages to the launcher */
    int lifeline_fd; /* read end: a byte continues a stopped command, the end ends all */
    int records_fd;  /* becomes descriptor 3 of the command, or -1 */
    int deletes_fd;  /* where pid 1 lists what was deleted from caches, or -1 */
    int terminal_fd; /* 0..2, or -1 */
    const char *terminal; /* its path on the host, or NULL */
    bool foreground;      /* the launcher's group has the terminal: the command gets it */
    gid_t gid;            /* read before the new user namespace hides it */
    sigset_t mask;        /* signal mask of the launcher's caller, for the command */
};

/* Runs in the child of ns_clone: the native backend. */
void init_run(const struct init_args *args) __attribute__((noreturn));

/* The parts that both backends share, in their order. */

/* Failures go to the launcher from now on; this process ends with it, and takes no signal. */
void init_begin(const struct init_args *args);

/* Tells the launcher that it is its turn (text: for MESSAGE_WAITING) and waits until it has done its
 * part. Ends this process when the launcher does. */
void init_wait(const struct init_args *args, const char *text);

/* Directory, no_new_privs and Landlock. Closes the places of the result. Dies. */
void init_fence(const struct init_args *args, struct mount_result *mounts);

/* Starts the command and serves it. capabilities: what this process keeps. */
void init_serve(const struct init_args *args, const struct mount_result *mounts,
                uint64_t capabilities) __attribute__((noreturn));

#endif
