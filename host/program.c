/*
 * One run of a program: see program.h. Main thread only.
 */
#include "program.h"

#include <stdio.h>
#include <uv.h>

#include "err.h"
#include "loop.h"
#include "state.h"

#define EXIT_BUG 70 /* EX_SOFTWARE of sysexits(3) */

static int fail(const struct efr_program *program, const struct efr_err *err)
{
    (void)fprintf(stderr, "%s: %s\n", program->name, err->text);
    return EXIT_BUG;
}

static int run_state(const struct efr_program *program, uv_loop_t *loop)
{
    struct efr_err err = {0};
    struct efr_state_opts opts = {.memory_max_bytes = program->memory_max_bytes,
                                  .loop = loop};
    struct efr_state *state = efr_state_create(&opts, &err);
    if (!state)
        return fail(program, &err);
    int code = efr_state_run(state, program->role, program->args, &err);
    if (code < 0)
        code = fail(program, &err);
    efr_state_destroy(state);
    return code;
}

int efr_program_run(const struct efr_program *program)
{
    struct efr_err err = {0};
    uv_loop_t loop;
    if (efr_process_setup(&err) != 0 || efr_loop_open(&loop, &err) != 0)
        return fail(program, &err);
    int code = run_state(program, &loop);
    (void)efr_loop_close(&loop);
    return code;
}
