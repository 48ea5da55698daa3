/* Races against the check of a connect: another thread changes what the call names while it is
 * checked. `socket_race MODE HOST PRIVATE ROUNDS`: connects to PRIVATE, which is allowed, while
 * the other thread turns it into HOST, which is not. MODE: address (the path in memory),
 * descriptor (the socket descriptor, from one of another call), rename (a link on disk).
 * Ends with 1 as soon as the host's server answers (it sends the byte H), else with 0. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un names[2];
static struct sockaddr_un target;
static const char *mode;
static char link_path[64];
static char spare[64];
static atomic_int stop;

static void *flip(void *argument)
{
    (void)argument;
    for (unsigned int i = 0; !atomic_load(&stop); i++) {
        if (strcmp(mode, "address") == 0) {
            memcpy(target.sun_path, names[i & 1].sun_path, sizeof target.sun_path);
        } else {
            (void)unlink(spare);
            (void)symlink(names[i & 1].sun_path, spare);
            (void)rename(spare, link_path);
        }
    }
    return NULL;
}

static int try_once(void)
{
    char byte = 0;
    int escaped = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (const struct sockaddr *)&target, sizeof target) == 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 2000) == 1 && read(fd, &byte, 1) == 1)
            escaped = byte == 'H';
    }
    (void)close(fd);
    return escaped;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 5)
        return 2;
    mode = argv[1];
    int rounds = atoi(argv[4]);
    for (int i = 0; i < 2; i++) {
        names[i].sun_family = AF_UNIX;
        (void)snprintf(names[i].sun_path, sizeof names[i].sun_path, "%s", argv[2 + i]);
    }
    target = names[1];
    if (strcmp(mode, "rename") == 0) {
        (void)snprintf(link_path, sizeof link_path, "/tmp/race-link");
        (void)snprintf(spare, sizeof spare, "/tmp/race-spare");
        (void)symlink(names[1].sun_path, link_path);
        (void)snprintf(target.sun_path, sizeof target.sun_path, "%s", link_path);
    }
    if (pthread_create(&thread, NULL, flip, NULL) != 0)
        return 2;
    int escapes = 0;
    for (int i = 0; i < rounds && !escapes; i++)
        escapes += try_once();
    atomic_store(&stop, 1);
    (void)pthread_join(thread, NULL);
    (void)unlink("/tmp/race-link");
    (void)unlink("/tmp/race-spare");
    (void)printf("%s: %d\n", mode, escapes);
    return escapes != 0;
}
