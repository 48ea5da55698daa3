/*
 * What efrd and efr have in common: set up the process, the loop and the Lua state, run
 * a role of lua/efr/boot.lua, take everything down. Main thread only.
 */
#ifndef EFR_PROGRAM_H
#define EFR_PROGRAM_H

#include <stddef.h>

struct efr_program {
    const char *name;        /* how errors name it: "efrd" */
    const char *role;        /* "daemon" or "cli" */
    char **args;             /* NULL-terminated; what Lua gets */
    size_t memory_max_bytes; /* of Lua; 0 = no cap */
};

/* Runs the program and returns its exit code. Errors are printed as "NAME: ...". */
int efr_program_run(const struct efr_program *program);

#endif
