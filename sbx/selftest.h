/* `efr-sbx self-test`: run inside a call, tries what a call must not be able to do, and what it
 * must.
 * Owns: the checks and their exact answers. Must not know: the plan. */
#ifndef EFR_SBX_SELFTEST_H
#define EFR_SBX_SELFTEST_H

/* The arguments are pairs: what the caller prepared outside. A check that lacks its part is
 * skipped; each has a time limit. Prints one line for each check (`name ok`, `name skipped` or
 * `name FAILED: what was seen`). Returns 0 when none failed, else 1. Outside of a call it fails,
 * and that is right. */
int selftest_run(int argc, char **argv);

#endif
