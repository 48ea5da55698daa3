/* Times how long commands take from spawn to exit, taking turns, so that load on the machine
 * hits all alike. Usage: spawn_times COUNT NAME CMD... [-- NAME CMD...]...; the word {} in a
 * command becomes the number of the round. Prints median and p95 in microseconds, and the
 * ratio of the medians to the first command. */
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_COMMANDS 16
#define MAX_WORDS 512

extern char **environ;

struct command {
    const char *name;
    char **words;
    int count;
    int64_t *times_us;
};

static int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static char *fill(const char *word, int round)
{
    const char *mark = strstr(word, "{}");
    char *text = NULL;
    if (!mark)
        return strdup(word);
    if (asprintf(&text, "%.*s%d%s", (int)(mark - word), word, round, mark + 2) < 0)
        abort();
    return text;
}

static int64_t run(const struct command *c, int round)
{
    char *argv[MAX_WORDS + 1];
    pid_t pid;
    int status = 0;
    for (int i = 0; i < c->count; i++)
        argv[i] = fill(c->words[i], round);
    argv[c->count] = NULL;
    int64_t start = now_us();
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0) {
        (void)fprintf(stderr, "cannot run %s\n", argv[0]);
        exit(1);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    int64_t took = now_us() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "%s failed\n", c->name);
        exit(1);
    }
    for (int i = 0; i < c->count; i++)
        free(argv[i]);
    return took;
}

static int ascending(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

int main(int argc, char **argv)
{
    struct command commands[MAX_COMMANDS];
    int rounds = argc > 2 ? atoi(argv[1]) : 0;
    int count = 0;
    for (int i = 2; i < argc && count < MAX_COMMANDS; i++) {
        struct command *c = &commands[count++];
        *c = (struct command){.name = argv[i], .words = &argv[i + 1]};
        i++;
        while (i < argc && strcmp(argv[i], "--") != 0) {
            c->count++;
            i++;
        }
        c->times_us = calloc((size_t)(rounds > 0 ? rounds : 1), sizeof *c->times_us);
        if (!c->times_us || c->count == 0 || c->count > MAX_WORDS)
            return 2;
    }
    if (rounds < 1 || count == 0)
        return 2;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            commands[i].times_us[round] = run(&commands[i], round);
    int64_t base = 0;
    for (int i = 0; i < count; i++) {
        qsort(commands[i].times_us, (size_t)rounds, sizeof(int64_t), ascending);
        int64_t median = commands[i].times_us[rounds / 2];
        int64_t p95 = commands[i].times_us[rounds * 95 / 100];
        if (i == 0)
            base = median > 0 ? median : 1;
        (void)printf("%-34s %7.2f ms median %7.2f ms p95  %6.2f x\n", commands[i].name,
                     (double)median / 1000, (double)p95 / 1000,
                     (double)median / (double)base);
    }
    return 0;
}
