/* Races against the check of a connect: another thread changes what the call names while it is
 * checked. `socket_race MODE HOST ROUNDS DIR`: connects to a server of its own below DIR, which
 * is allowed, while a thread turns it into HOST, which is not. MODE says what changes: address (the
 * path in memory), rename (a link on disk), chdir (the directory of a relative path), swap (the
 * names of the two directories), descriptor (the number names an internet socket, which no path
 * concerns, or a Unix socket).
 * Prints `MODE: N escapes`, and that both sides of the race were seen; ends with 1 at the first
 * escape: the host's server answers with the byte H. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define SWAPPED_FD 50

static struct sockaddr_un names[2]; /* the host's, our own */
static struct sockaddr_un target;
static char dirs[2][108];
static char link_path[100];
static char spare[100];
static atomic_int sockets[2]; /* mode descriptor: Unix, internet */
static atomic_int stop;
static int escapes, allowed, refused;
static bool swapped; /* mode swap: the names are those of the other one */

static void flip_address(unsigned int i)
{
    memcpy(target.sun_path, names[i].sun_path, sizeof target.sun_path);
}

static void flip_link(unsigned int i)
{
    (void)unlink(spare);
    (void)!symlink(names[i].sun_path, spare);
    (void)rename(spare, link_path);
}

static void flip_directory(unsigned int i)
{
    (void)!chdir(dirs[i]);
}

/* The two directories change their names, so one path leads to the one or the other. */
static void flip_names(unsigned int i)
{
    swapped = !(i & 1);
    (void)syscall(SYS_renameat2, AT_FDCWD, dirs[0], AT_FDCWD, dirs[1], RENAME_EXCHANGE);
}

static void flip_descriptor(unsigned int i)
{
    (void)dup2(atomic_load(&sockets[i]), SWAPPED_FD);
}

static const struct mode {
    const char *name;
    void (*flip)(unsigned int i);
} MODES[] = {
    {"address", flip_address},       {"rename", flip_link}, {"chdir", flip_directory},
    {"descriptor", flip_descriptor}, {"swap", flip_names},
};

static void *run_flip(void *argument)
{
    const struct mode *mode = argument;
    for (unsigned int i = 0; !atomic_load(&stop); i++)
        mode->flip(i & 1);
    return NULL;
}

static void *serve(void *argument)
{
    int server = *(int *)argument;
    for (;;) {
        int peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0)
            return NULL;
        (void)!write(peer, "P", 1);
        (void)close(peer);
    }
}

/* Who answers on a connected socket. */
static void count_answer(int fd)
{
    char byte = 0;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, 5000) != 1 || read(fd, &byte, 1) != 1)
        return;
    escapes += byte == 'H';
    allowed += byte == 'P';
}

static void try_name(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&target, sizeof target) == 0)
        count_answer(fd);
    else
        refused += errno == EACCES;
    (void)close(fd);
}

/* Both kinds of answer show that the swap was met: EACCES for the Unix socket, EAFNOSUPPORT or
 * EINVAL for the other one. The sockets of the last round stay open, since the thread may
 * still name them. */
static void try_descriptor(void)
{
    static int old[2] = {-1, -1};
    int last[2] = {atomic_load(&sockets[0]), atomic_load(&sockets[1])};
    int fresh = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    atomic_store(&sockets[0], fresh);
    atomic_store(&sockets[1], socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(SWAPPED_FD, (const struct sockaddr *)&names[0], sizeof names[0]) == 0) {
        struct sockaddr_un peer;
        socklen_t len = sizeof peer;
        for (int i = 0; i < 2; i++) {
            int fd = i ? last[0] : fresh;
            if (fd >= 0 && getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
                count_answer(fd);
        }
    } else {
        refused += errno == EACCES;
        allowed += errno == EAFNOSUPPORT || errno == EINVAL;
    }
    for (int i = 0; i < 2; i++) {
        if (old[i] >= 0)
            (void)close(old[i]);
        old[i] = last[i];
    }
}

static int prepare(const char *mode, const char *host, const char *own_dir)
{
    const char *base = strrchr(host, '/') + 1;
    (void)mkdir(own_dir, 0700);
    (void)snprintf(link_path, sizeof link_path, "%s/link", own_dir);
    (void)snprintf(spare, sizeof spare, "%s/spare", own_dir);
    for (int i = 0; i < 2; i++)
        names[i].sun_family = AF_UNIX;
    (void)snprintf(names[0].sun_path, sizeof names[0].sun_path, "%s", host);
    (void)snprintf(names[1].sun_path, sizeof names[1].sun_path, "%s/%s", own_dir, base);
    (void)snprintf(dirs[0], sizeof dirs[0], "%.*s", (int)(base - host - 1), host);
    (void)snprintf(dirs[1], sizeof dirs[1], "%s", own_dir);
    target = names[1];
    if (strcmp(mode, "rename") == 0)
        (void)snprintf(target.sun_path, sizeof target.sun_path, "%s", link_path);
    if (strcmp(mode, "chdir") == 0)
        (void)snprintf(target.sun_path, sizeof target.sun_path, "%s", base);
    atomic_store(&sockets[0], -1);
    atomic_store(&sockets[1], -1);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unlink(names[1].sun_path);
    if (bind(server, (const struct sockaddr *)&names[1], sizeof names[1]) < 0 ||
        listen(server, 64) < 0)
        return -1;
    return server;
}

/* On a busy machine the threads may take turns so slowly that one side never shows. */
static bool go_on(int round, int rounds)
{
    if (escapes)
        return false;
    return round < rounds || (!(allowed && refused) && round < 20 * rounds);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const struct mode *mode = NULL;
    if (argc != 5)
        return 2;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        if (strcmp(argv[1], MODES[i].name) == 0)
            mode = &MODES[i];
    int server = mode ? prepare(mode->name, argv[2], argv[4]) : -1;
    if (server < 0 || pthread_create(&thread, NULL, serve, &server) != 0 ||
        pthread_create(&thread, NULL, run_flip, (void *)(uintptr_t)mode) != 0)
        return 2;
    int rounds = atoi(argv[3]);
    for (int i = 0; go_on(i, rounds); i++) {
        if (mode->flip == flip_descriptor)
            try_descriptor();
        else
            try_name();
    }
    atomic_store(&stop, 1);
    (void)pthread_join(thread, NULL);
    if (swapped)
        flip_names(1);
    (void)printf("%s: %d escapes%s\n", mode->name, escapes,
                 allowed && refused ? ", both sides seen" : "");
    return escapes != 0;
}
