/*
 * efr: the command. Everything it does is in cli/main.lua; this file only starts it. Main
 * thread.
 */
#include "program.h"

#define LUA_MEMORY_MAX_BYTES ((size_t)512 << 20)

int main(int argc, char **argv)
{
    static char *none[] = {NULL};
    struct efr_program program = {
        .name = "efr",
        .role = "cli",
        .args = argc > 0 ? argv + 1 : none,
        .memory_max_bytes = LUA_MEMORY_MAX_BYTES,
    };
    return efr_program_run(&program);
}
