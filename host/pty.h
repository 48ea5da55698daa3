/*
 * A pseudo-terminal with one program that leads its session. Owns both ends: the master
 * is read and written on the loop, a slave descriptor is kept so that the terminal can
 * be put back whatever a program left behind. Must not know shells, marks or Lua, and
 * reads nothing in what the terminal says. Loop thread only.
 */
#ifndef EFR_PTY_H
#define EFR_PTY_H

#include <stddef.h>
#include <sys/types.h>
#include <uv.h>

struct efr_err;
struct pty;

/* What to run. All strings are borrowed for the call. */
struct pty_spawn {
    const char *path;  /* absolute */
    char *const *argv; /* ends with NULL */
    char *const *envp; /* the whole environment; ends with NULL */
    const char *cwd;
    const char *keeper; /* absolute path of efr-sbx, or NULL for no keeper */
    unsigned short cols, rows;
};

/* Called on the loop; any of them may close the pty. user is the owner's. */
struct pty_events {
    void (*data)(void *user, const char *bytes, size_t len_bytes);
    /* Once, after the last output: exit code, or 0 and the signal. */
    void (*exit)(void *user, int exit_code, int term_signal);
    void *user;
};

struct pty_modes {
    int echo;
    int canonical;
};

/* Opens a terminal and starts the program as leader of a new session on it, with default signals, umask 022, no
 * descriptor but the terminal, and as the reaper of what its commands leave behind. NULL with *err set on failure;
 * nothing is left then. */
struct pty *pty_create(uv_loop_t *loop, const struct pty_spawn *spawn,
                       const struct pty_events *events, struct efr_err *err);

/* Brackets one command: should efrd be killed between the two, all that the program started in that time ends, also
 * what made a session of its own. Without a keeper only the hang-up is left. -1 with *err set: no keeper runs, and the
 * command must not. */
int pty_begin_call(struct pty *pty, struct efr_err *err);
void pty_end_call(struct pty *pty);

/* Ends what the running call started, then the program and its session, as a kill of efrd would; the
 * exit is told as always. -1 with *err set: there is no keeper. */
int pty_leave_call(struct pty *pty, struct efr_err *err);

/* Hangs up: closes both ends and stops all callbacks. The program gets SIGHUP from the kernel and is reaped later on
 * the loop. NULL is fine. */
void pty_destroy(struct pty *pty);

/* The program's pid; it stays reserved until pty_destroy, also after its end. */
pid_t pty_pid(const struct pty *pty);

/* Queues bytes for the terminal's input. -1 with EFR_FULL when 1 MiB already waits. */
int pty_write(struct pty *pty, const char *bytes, size_t len_bytes, struct efr_err *err);

/* Writes at most PTY_KEYS_MAX bytes of a person's keys at once, none while as many are unread: so what a program leaves
 * unread at its end is in the terminal, where it can be thrown away, and never in a queue behind it. Returns the count, 0
 * while there is no room, or -1 with *err set. */
#define PTY_KEYS_MAX 1025 /* an answer of input.respond and its return */
ssize_t pty_write_keys(struct pty *pty, const char *bytes, size_t len_bytes,
                       struct efr_err *err);

/* Whether output is left in the terminal, so that the program waits once it is full. The end of the program is seen
 * all the same, and what it wrote is read then. */
void pty_pause(struct pty *pty, int paused);

/* Puts the terminal back: line discipline, the modes it started with, flow, exclusive use, size; input that nobody
 * read is thrown away, also what waits in the queue. */
int pty_restore(struct pty *pty, struct efr_err *err);

/* Lets stopped output flow. */
int pty_resume_output(struct pty *pty, struct efr_err *err);

/* The foreground process group, or -1 with *err set. */
pid_t pty_foreground(const struct pty *pty, struct efr_err *err);

int pty_get_modes(const struct pty *pty, struct pty_modes *modes, struct efr_err *err);

int pty_resize(struct pty *pty, unsigned short cols, unsigned short rows,
               struct efr_err *err);

/* SIGINT to the foreground group, sent by the kernel through the terminal. */
int pty_interrupt(struct pty *pty, struct efr_err *err);

/* A signal for the program itself; ESRCH after its end. */
int pty_kill(struct pty *pty, int signum, struct efr_err *err);

/* A signal for every process of the program's session, the program included when with_leader is set. Returns how many
 * got it, or -1 with *err set. */
int pty_kill_session(struct pty *pty, int signum, int with_leader, struct efr_err *err);

#endif
