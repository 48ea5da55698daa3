/* Time of a connect to a Unix socket of its own: `connect_times PATH ROUNDS` prints the median and the
 * 95th percentile in microseconds. The server accepts in a thread; a path that begins with @ is an
 * abstract name. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void *take(void *argument)
{
    int server = *(int *)argument;
    for (;;) {
        int peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0)
            return NULL;
        (void)close(peer);
    }
}

static int64_t now_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len = sizeof name;
    pthread_t thread;
    if (argc != 3)
        return 2;
    int rounds = atoi(argv[2]);
    int64_t *times = calloc((size_t)rounds, sizeof *times);
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", argv[1]);
    if (name.sun_path[0] == '@') {
        len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(argv[1]));
        name.sun_path[0] = '\0';
    }
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!times || bind(server, (const struct sockaddr *)&name, len) < 0 ||
        listen(server, 128) < 0 || pthread_create(&thread, NULL, take, &server) != 0)
        return 1;
    for (int i = 0; i < rounds; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int64_t before = now_ns();
        if (connect(fd, (const struct sockaddr *)&name, len) < 0)
            return 1;
        times[i] = now_ns() - before;
        (void)close(fd);
    }
    qsort(times, (size_t)rounds, sizeof *times, by_size);
    (void)printf("%.1f %.1f\n", (double)times[rounds / 2] / 1000,
                 (double)times[rounds * 95 / 100] / 1000);
    if (argv[1][0] != '@')
        (void)unlink(argv[1]);
    return 0;
}
