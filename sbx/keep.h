/* efr-sbx keep: stands beside one hidden shell and outlives efrd, so that a killed efrd leaves no
 * process of the call that ran.
 * Owns: which processes end then, and in which order. Must not know: calls, plans, the terminal's
 * bytes. Runs in a process of its own, a child of efrd. */
#ifndef EFR_SBX_KEEP_H
#define EFR_SBX_KEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What efrd writes to standard input, each 8 bytes: the time (CLOCK_BOOTTIME, ns) at which the call
 * that runs began, or one of these. The end of the input without KEEP_DISMISS: efrd is gone. */
#define KEEP_NO_CALL ((uint64_t)0)
#define KEEP_DISMISS ((uint64_t)1)

/* Descriptors at the start: a master of the shell's terminal, which puts the hang-up off until this
 * process closes it, and the shell's pidfd. */
#define KEEP_MASTER_FD 3
#define KEEP_SHELL_FD 4

/* What matters of one /proc/PID/stat line. */
struct keep_stat {
    char state;
    pid_t parent;
    uint64_t start_ticks; /* since boot */
};

/* Reads the text of a stat line; the process chose the name in it. False: it is none. */
bool keep_parse_stat(const char *text, struct keep_stat *stat);

/* Sends a signal (0: none) to every process below one, its own children and all below them. Returns
 * how many had not ended. */
int keep_signal_below(pid_t root, int signum);

/* The whole life; shell is the shell's pid and its session's id. Returns the exit code. */
int keep_run(pid_t shell);

#endif
