/* `efr-sbx self-test`: run inside a call, tries what a call must not be able to do.
 * Owns: the checks and their exact error codes. Must not know: the plan. */
#ifndef EFR_SBX_SELFTEST_H
#define EFR_SBX_SELFTEST_H

/* Prints one line for each check (`name ok` or `name FAILED: what was seen`). Returns 0 when
 * all hold, else 1. Outside of a call it fails, and that is right. */
int selftest_run(void);

#endif
