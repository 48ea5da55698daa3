/* efr-sbx: builds the sandbox of one call, runs it and reports.
 * Owns: the list of subcommands. Must not know: how any of them works. */
#include "git.h"
#include "inner.h"
#include "keep.h"
#include "landlock.h"
#include "launch.h"
#include "outside.h"
#include "probe.h"
#include "selftest.h"
#include "util.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2
#define MAX_ABI_DIGITS 4

#define RUN_USAGE "efr-sbx run --call-dir DIR [--max-abi N]"
#define PROBE_USAGE "efr-sbx probe --call-dir DIR --dir DIR --name NAME [--max-abi N]"

/* A cap below the ABI that a call needs refuses the call, so it never weakens one beyond what an
 * older kernel gives. */
static int read_cap(int argc, char **argv, int *max_abi)
{
    if (argc == 0)
        return 0;
    if (argc != 2 || strcmp(argv[0], "--max-abi") != 0 ||
        strspn(argv[1], "0123456789") != strlen(argv[1]) ||
        strlen(argv[1]) - 1 >= MAX_ABI_DIGITS)
        return -1;
    *max_abi = (int)strtol(argv[1], NULL, 10);
    return 1;
}

static int run(int argc, char **argv)
{
    int max_abi = 0;
    int capped = argc < 2 || strcmp(argv[0], "--call-dir") != 0
                     ? -1
                     : read_cap(argc - 2, argv + 2, &max_abi);
    if (capped < 0) {
        say("usage: " RUN_USAGE);
        return EXIT_USAGE;
    }
    if (capped)
        landlock_cap(max_abi);
    return launch_run(argv[1]);
}

static int outside(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[0], "--call-dir") != 0) {
        say("usage: efr-sbx outside --call-dir DIR (efrd starts it)");
        return EXIT_USAGE;
    }
    return outside_run(argv[1]);
}

static int probe(int argc, char **argv)
{
    int max_abi = INT_MAX;
    if (argc < 6 || strcmp(argv[0], "--call-dir") != 0 || strcmp(argv[2], "--dir") != 0 ||
        strcmp(argv[4], "--name") != 0 || read_cap(argc - 6, argv + 6, &max_abi) < 0) {
        say("usage: " PROBE_USAGE);
        return EXIT_USAGE;
    }
    return probe_run(argv[1], argv[3], argv[5], max_abi);
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
    return selftest_run(argc, argv);
}

static int keep(int argc, char **argv)
{
    char *end = NULL;
    long shell = argc == 1 ? strtol(argv[0], &end, 10) : 0;
    if (shell <= 1 || shell != (pid_t)shell || *end != '\0') {
        say("usage: efr-sbx keep PID (efrd starts it)");
        return EXIT_USAGE;
    }
    return keep_run((pid_t)shell);
}

static const struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv);
} SUBCOMMANDS[] = {
    {"run", run},         {"git", git_run},
    {"keep", keep},       {"landlock-abi", landlock_number},
    {"probe", probe},     {"self-test", self_test},
    {"outside", outside}, {"inner", inner_run},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof SUBCOMMANDS / sizeof *SUBCOMMANDS; i++)
        if (strcmp(argv[1], SUBCOMMANDS[i].name) == 0)
            return SUBCOMMANDS[i].run(argc - 2, argv + 2);
    say("usage: " RUN_USAGE " | probe | landlock-abi | self-test | "
        "git --root DIR [OPTION]... -- ARG...");
    return EXIT_USAGE;
}
