/*
 * efrd: the daemon. Reads its flags and starts the role; all else is in lua/efr/daemon.
 * Main thread.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "embed.h"
#include "log.h"
#include "program.h"
#include "rules.h"

#define LUA_MEMORY_MAX_BYTES ((size_t)1 << 30)
#define MMAP_FROM_BYTES (64 * 1024)
#define EXIT_USAGE 2

static const char usage_text[] =
    "usage: efrd [--log FILTER] [--print-config] [--version]\n"
    "The daemon of efr. It is started on demand by efr, or as a user unit.\n"
    "  --log FILTER     error, warn, info, debug or trace, or PART=LEVEL pairs with "
    "commas\n"
    "  --print-config   print the configuration that would be used, and end\n"
    "  --version        print the version, and end\n";

enum option_id {
    OPT_LOG = 256,
    OPT_PRINT_CONFIG,
    OPT_VERSION,
    OPT_HELP,
    OPT_ROLE,
    OPT_TEST_SEAMS,
};

static const struct option options[] = {
    {"log", required_argument, NULL, OPT_LOG},
    {"print-config", no_argument, NULL, OPT_PRINT_CONFIG},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {"role", required_argument, NULL, OPT_ROLE},
    {"test-seams", no_argument, NULL, OPT_TEST_SEAMS},
    {NULL, 0, NULL, 0},
};

/* What the flags ask for. The daemon gets its flags as "log=FILTER" and "print-config". */
struct flags {
    char *args[8];
    int count;
};

static void add_arg(struct flags *flags, const char *name, const char *value)
{
    char *arg = NULL;
    if (asprintf(&arg, "%s%s", name, value) < 0)
        abort();
    flags->args[flags->count++] = arg;
}

static void free_args(struct flags *flags)
{
    for (int i = 0; i < flags->count; i++)
        free(flags->args[i]);
}

static int usage_error(const char *text, const char *value)
{
    (void)fprintf(stderr, "efrd: %s%s\n%s", text, value, usage_text);
    return EXIT_USAGE;
}

/* Returns -1 to go on, else the exit code. */
static int parse_flags(int argc, char **argv, struct flags *flags)
{
    const char *filter = NULL;
    int print_config = 0;
    int id;
    while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (id) {
        case OPT_LOG:
            filter = optarg;
            break;
        case OPT_PRINT_CONFIG:
            print_config = 1;
            break;
        case OPT_TEST_SEAMS:
            return puts(efr_embed_from_tree() ? "on" : "off") < 0 ? 1 : 0;
        case OPT_VERSION:
            return puts("efrd " EFR_VERSION) < 0 ? 1 : 0;
        case OPT_HELP:
            return fputs(usage_text, stdout) < 0 ? 1 : 0;
        case OPT_ROLE:
            if (strcmp(optarg, "rules") != 0)
                return usage_error("unknown role ", optarg);
            return efr_rules_run();
        default:
            return usage_error("cannot read the flags", "");
        }
    }
    if (optind < argc)
        return usage_error("unexpected argument ", argv[optind]);
    if (filter)
        add_arg(flags, "log=", filter);
    if (print_config)
        add_arg(flags, "print-config", "");
    return -1;
}

/* systemd sets JOURNAL_STREAM to "DEVICE:INODE" of the stream that stderr is. */
static int stderr_is_journal(void)
{
    const char *value = getenv("JOURNAL_STREAM");
    struct stat st;
    if (!value || fstat(STDERR_FILENO, &st) != 0)
        return 0;
    char *end = NULL;
    errno = 0;
    unsigned long long device = strtoull(value, &end, 10);
    if (errno || *end != ':')
        return 0;
    unsigned long long inode = strtoull(end + 1, &end, 10);
    return !errno && *end == '\0' && device == st.st_dev && inode == st.st_ino;
}

int main(int argc, char **argv)
{
    struct flags flags = {0};
    int code = parse_flags(argc, argv, &flags);
    if (code >= 0)
        return code;
    (void)umask(077);
    /* Read buffers hold what clients send, keys too: the allocator overwrites what is freed. */
    (void)mallopt(M_PERTURB, 0x5a);
    /* One heap, and nothing large in it: what a turn needed for a moment would stay between what a
     * conversation keeps. Both threads that allocate do so seldom at once. */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_FROM_BYTES);
    efr_log_setup("efrd", STDERR_FILENO, EFR_LOG_INFO, stderr_is_journal());
    struct efr_program program = {
        .name = "efrd",
        .role = "daemon",
        .args = flags.args,
        .memory_max_bytes = LUA_MEMORY_MAX_BYTES,
    };
    code = efr_program_run(&program);
    free_args(&flags);
    return code;
}
