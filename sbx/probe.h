/* `efr-sbx probe`: what the self-test of a call needs outside of it, while the call runs.
 * Owns: the listening sockets, the terminal. Must not know: the plan, the checks. */
#ifndef EFR_SBX_PROBE_H
#define EFR_SBX_PROBE_H

/* Listens as `socket` in dir and on the abstract name, and runs the call on a terminal of its own
 * (its standard output and error stay ours). max_abi caps the Landlock ABI (INT_MAX: no cap). Returns the launcher's exit
 * status. */
int probe_run(const char *call_dir, const char *dir, const char *name, int max_abi);

#endif
