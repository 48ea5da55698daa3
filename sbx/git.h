/* `efr-sbx git`: the domain in which efr's own git runs.
 * Owns: the options, the Landlock domain, the environment and the end of that git.
 * Must not know: what git is asked; the caller's arguments go to it as they are.
 * Runs in a process of its own; the parent half waits for git and ends it at the time limit. */
#ifndef EFR_SBX_GIT_H
#define EFR_SBX_GIT_H

#define GIT_EXIT_TIMEOUT 124

/* Runs git with the options of docs/protocol.md, "efr's own git". Returns git's exit status,
 * 128 + the signal that ended it, or GIT_EXIT_TIMEOUT; a domain that could not be built ends
 * this process with EFR_EXIT_SETUP. */
int git_run(int argc, char **argv);

#endif
