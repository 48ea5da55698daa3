/* efr-sbx: builds the sandbox of one call, runs it and reports.
 * Owns: the list of subcommands. Must not know: how any of them works. */
#include "git.h"
#include "landlock.h"
#include "launch.h"
#include "selftest.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define MAX_ABI_DIGITS 4

#define RUN_USAGE "efr-sbx run --call-dir DIR [--max-abi N]"

/* A cap below the ABI that a call needs refuses the call, so it never weakens one beyond what an
 * older kernel gives. */
static int run(int argc, char **argv)
{
    bool capped = argc == 4 && strcmp(argv[2], "--max-abi") == 0 &&
                  strspn(argv[3], "0123456789") == strlen(argv[3]) &&
                  strlen(argv[3]) - 1 < MAX_ABI_DIGITS;
    if ((argc != 2 && !capped) || strcmp(argv[0], "--call-dir") != 0) {
        say("usage: " RUN_USAGE);
        return EXIT_USAGE;
    }
    if (capped)
        landlock_cap((int)strtol(argv[3], NULL, 10));
    return launch_run(argv[1]);
}

static int landlock_number(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    int abi = landlock_abi();
    (void)printf("%d\n", abi < 0 ? 0 : abi);
    return abi < 0;
}

static int self_test(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return selftest_run();
}

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
} SUBCOMMANDS[] = {
    {"run", run},
    {"landlock-abi", landlock_number},
    {"self-test", self_test},
    {"git", git_run},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof SUBCOMMANDS / sizeof *SUBCOMMANDS; i++)
        if (strcmp(argv[1], SUBCOMMANDS[i].name) == 0)
            return SUBCOMMANDS[i].run(argc - 2, argv + 2);
    say("usage: " RUN_USAGE " | landlock-abi | self-test | "
        "git --root DIR [OPTION]... -- ARG...");
    return EXIT_USAGE;
}
