/* `efr-sbx inner`: pid 1 of a call that bubblewrap built.
 * Owns: the check that what was built is what the plan says; then it goes on as the native
 * backend's pid 1 (init.h). Needs no capability. Must not know: how bubblewrap was called. */
#ifndef EFR_SBX_INNER_H
#define EFR_SBX_INNER_H

/* argv: "--policy-fd", N. Returns only for a wrong use. */
int inner_run(int argc, char **argv);

#endif
