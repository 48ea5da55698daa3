/* `efr-sbx run`: the launcher, outside of the sandbox.
 * Owns: the call's directory, the terminal's foreground group, the exit status. */
#ifndef EFR_SBX_LAUNCH_H
#define EFR_SBX_LAUNCH_H

/* Runs the call of the directory and returns the exit status for main: the command's own,
 * 128 + signal, or 125 when the sandbox was not built. */
int launch_run(const char *call_dir);

#endif
