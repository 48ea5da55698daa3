/* The first process of the command, from fork to exec.
 * Owns: what the command starts with (descriptors, group, terminal, rights, environment). */
#ifndef EFR_SBX_COMMAND_H
#define EFR_SBX_COMMAND_H

#include "init.h"

#include <sys/types.h>

struct command {
    pid_t pid;
    int channel;  /* to the child until its exec */
    int listener; /* for its connect calls */
};

/* Forks it; it confines itself and waits. Dies when that fails. */
void command_fork(struct command *command, const struct init_args *args);

/* Receives the listener that the child made. Dies when the child failed. */
int command_listener(struct command *command);

/* Lets it execute. Returns 0 once it has, else the errno of exec. */
int command_go(struct command *command);

#endif
