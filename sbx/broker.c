/* See broker.h. */
#include "broker.h"

#include "util.h"

#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h" /* tests/sbx: for the control runs of the races, never in what ships */
#endif

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

#define MAX_IN_FLIGHT 256
#define MAX_WORKERS (MAX_IN_FLIGHT + 1) /* the last one refuses */
#define MIN_WORKERS 2
/* How late an interrupted connect is noticed: the kernel does not tell. */
#define WATCH_MS 10
#define THREAD_STACK_BYTES 131072UL
#define WAKE_SIGNAL SIGUSR1

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

/* One connect in flight. */
struct flight {
    uint64_t id;
    pid_t tid; /* the caller */
    int fd;    /* in the caller */
    uint64_t address;
    size_t address_len;
};

/* A thread that waits for a connect or serves one. The flight is its own; the rest is behind
 * the lock. */
struct worker {
    bool exists;
    bool busy;
    struct flight flight;
    pthread_t thread;
};

static int listener = -1;
static struct socket_policy policy;
static uint64_t own_netns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker workers[MAX_WORKERS];
static size_t in_flight;
static size_t idle; /* threads that wait for a connect */
static int watch = -1;
static bool watch_armed;

enum broker_address broker_read_address(const void *bytes, size_t len_bytes, char *path)
{
    sa_family_t family;
    if (len_bytes < sizeof family)
        return BROKER_INVALID;
    memcpy(&family, bytes, sizeof family);
    if (family != AF_UNIX)
        return BROKER_OTHER;
    if (len_bytes > sizeof(struct sockaddr_un) || len_bytes == sizeof family)
        return BROKER_INVALID;
    const char *name = (const char *)bytes + sizeof family;
    size_t name_len = len_bytes - sizeof family;
    if (name[0] == '\0')
        return BROKER_ABSTRACT;
    size_t used = strnlen(name, name_len);
    memcpy(path, name, used);
    path[used] = '\0';
    return BROKER_PATH;
}

static bool still_valid(uint64_t id)
{
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Threads have pidfds of their own since Linux 6.9; before, the leader shares its files. */
static int open_caller(pid_t tid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);
    if (pidfd >= 0 || errno != EINVAL)
        return pidfd;
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/status", tid);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);
    if (len < 0)
        return -1;
    text[len] = '\0';
    const char *line = strstr(text, "\nTgid:");
    long leader = line ? strtol(line + 6, NULL, 10) : 0;
    if (leader <= 0) {
        errno = ESRCH;
        return -1;
    }
    return (int)syscall(SYS_pidfd_open, (pid_t)leader, 0);
}

/* The caller's number in the procfs that is mounted here, which may be the host's; 0 when it is
 * gone. */
static pid_t number_in_proc(int pidfd)
{
    char path[64];
    char text[1024];
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read_full(fd, text, sizeof text - 1);
    text[len < 0 ? 0 : len] = '\0';
    const char *line = strstr(text, "\nPid:");
    long number = line ? strtol(line + 5, NULL, 10) : 0;
    return number > 0 ? (pid_t)number : 0;
}

static int take_socket(const struct flight *flight, int pidfd)
{
    int taken = (int)syscall(SYS_pidfd_getfd, pidfd, flight->fd, 0);
    if (taken >= 0 && !still_valid(flight->id)) {
        (void)close(taken);
        errno = ESRCH;
        return -1;
    }
    return taken;
}

/* The address is read exactly once; the caller may change its memory as it likes. */
static ssize_t read_address(const struct flight *flight, void *bytes)
{
    if (flight->address_len > BROKER_ADDRESS_MAX) {
        errno = EINVAL;
        return -1;
    }
    struct iovec local = {.iov_base = bytes, .iov_len = flight->address_len};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)flight->address,
                           .iov_len = flight->address_len};
    ssize_t len = flight->address_len == 0
                      ? 0
                      : process_vm_readv(flight->tid, &local, 1, &remote, 1, 0);
    if (len >= 0 && (size_t)len != flight->address_len) {
        errno = EFAULT;
        return -1;
    }
    return len;
}

/* One of the caller's directories: "cwd" or "root". */
static int open_of_caller(int pidfd, const char *what)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", number_in_proc(pidfd), what);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool is_own_root(int fd)
{
    struct statx theirs;
    struct statx ours;
    unsigned int want = STATX_MNT_ID | STATX_INO;
    return statx(fd, "", AT_EMPTY_PATH, want, &theirs) == 0 &&
           statx(AT_FDCWD, "/", 0, want, &ours) == 0 &&
           theirs.stx_mnt_id == ours.stx_mnt_id && theirs.stx_ino == ours.stx_ino;
}

/* Opens the target as the caller would name it: relative to its directory or, in a call that may
 * make namespaces, to a root of its own; links followed, no magic links. */
static int open_target(int pidfd, const char *path)
{
    bool absolute = path[0] == '/';
    CLEANUP_FD int base = -1;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    int fd;
    if (!absolute || policy.other_roots) {
        base = open_of_caller(pidfd, absolute ? "root" : "cwd");
        if (base < 0)
            return -1;
        if (absolute && !is_own_root(base))
            how.resolve |= RESOLVE_IN_ROOT;
    }
    do
        fd = (int)syscall(SYS_openat2, base, path, &how, sizeof how);
    while (fd < 0 && errno == EAGAIN && (how.resolve & RESOLVE_IN_ROOT));
    if (fd < 0 && errno == ELOOP)
        errno = EACCES;
    return fd;
}

/* The one connect that is made for a caller. path is NULL when the address is none. */
static int connect_now(const struct flight *flight, int taken, const char *path,
                       const struct sockaddr *address, socklen_t len)
{
#ifdef EFR_SBX_TEST_UNSAFE
    return unsafe_connect(flight->tid, taken, path, address, len);
#endif
    (void)flight;
    (void)path;
    return connect(taken, address, len);
}

static int connect_path(const struct flight *flight, int pidfd, int taken,
                        const char *path)
{
    CLEANUP_FD int target = open_target(pidfd, path);
    if (target < 0 || socket_policy_check(&policy, target) < 0)
        return -1;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d", target);
    return connect_now(flight, taken, path, (const struct sockaddr *)&name, sizeof name);
}

/* A socket that came in from outside belongs to another network. */
static bool of_this_network(int taken)
{
    uint64_t cookie = 0;
    socklen_t len = sizeof cookie;
    return getsockopt(taken, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 &&
           cookie == own_netns;
}

static int emulate(const struct flight *flight)
{
    char bytes[BROKER_ADDRESS_MAX] __attribute__((aligned(8))) = {0};
    char path[BROKER_ADDRESS_MAX + 1];
    int domain = 0;
    socklen_t domain_len = sizeof domain;
    CLEANUP_FD int pidfd = open_caller(flight->tid);
    CLEANUP_FD int taken = pidfd < 0 ? -1 : take_socket(flight, pidfd);
    if (taken < 0)
        return -1;
    if (getsockopt(taken, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0)
        return -1; /* ENOTSOCK */
    ssize_t len = read_address(flight, bytes);
    if (len < 0)
        return -1;
    if (!still_valid(flight->id)) {
        errno = ESRCH;
        return -1;
    }
    if (!of_this_network(taken)) {
        errno = EACCES;
        return -1;
    }
    if (domain == AF_UNIX) {
        enum broker_address kind = broker_read_address(bytes, (size_t)len, path);
        if (kind == BROKER_INVALID) {
            errno = EINVAL;
            return -1;
        }
        if (kind == BROKER_PATH)
            return connect_path(flight, pidfd, taken, path);
        if (kind == BROKER_ABSTRACT && policy.refuse_abstract) {
            errno = EACCES;
            return -1;
        }
    }
    return connect_now(flight, taken, NULL, (const struct sockaddr *)(const void *)bytes,
                       (socklen_t)len);
}

static void answer(uint64_t id, int error)
{
    struct seccomp_notif_resp response = {.id = id, .error = -error};
#ifdef EFR_SBX_TEST_UNSAFE
    if (error == UNSAFE_CONTINUE)
        response = (struct seccomp_notif_resp){.id = id,
                                               .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
#endif
    /* ENOENT: the caller was interrupted meanwhile, so nobody waits for the answer. */
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static int serve(const struct flight *flight)
{
    for (;;) {
        int error = emulate(flight) < 0 ? errno : 0;
        /* EINTR here is our own wake signal, or one that the command sent to pid 1. */
        if (error != EINTR || !still_valid(flight->id))
            return error;
    }
}

/* Takes the next notice, or waits for it. Returns 0, or -1 with errno set: EINTR, ENOENT (the
 * caller was interrupted before we looked), or no process is left that could call. */
static int receive(struct flight *flight)
{
    /* The kernel's structure may be longer than ours on a later kernel. */
    union {
        struct seccomp_notif notice;
        char room[512];
    } u;
    memset(&u, 0, sizeof u);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &u.notice) < 0)
        return -1;
    flight->id = u.notice.id;
    flight->tid = (pid_t)u.notice.pid;
    flight->fd = (int)u.notice.data.args[0];
    flight->address = u.notice.data.args[1];
    flight->address_len = (uint32_t)u.notice.data.args[2];
    return 0;
}

/* Pid 1 looks after the connects in flight in a while. With the lock held. */
static void arm_watch(void)
{
    struct itimerspec soon = {.it_value = {.tv_nsec = WATCH_MS * 1000000L}};
    if (!watch_armed)
        watch_armed = timerfd_settime(watch, 0, &soon, NULL) == 0;
}

static bool start_worker(void);

/* One connect: there is always a thread left that takes the next one, or this one is refused.
 * Returns whether this thread goes on. */
static bool take_flight(struct worker *worker)
{
    (void)pthread_mutex_lock(&lock);
    idle--;
    bool serves = in_flight < MAX_IN_FLIGHT && (idle > 0 || start_worker());
    if (serves) {
        in_flight++;
        worker->busy = true;
        arm_watch();
    }
    (void)pthread_mutex_unlock(&lock);
    answer(worker->flight.id, serves ? serve(&worker->flight) : EAGAIN);
    (void)pthread_mutex_lock(&lock);
    in_flight -= serves;
    worker->busy = false;
    bool stays = idle < MIN_WORKERS;
    idle += stays;
    worker->exists = stays;
    (void)pthread_mutex_unlock(&lock);
    return stays;
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        if (receive(&worker->flight) == 0) {
            if (!take_flight(worker))
                return NULL;
        } else if (errno != EINTR && errno != ENOENT) {
            break;
        }
    }
    (void)pthread_mutex_lock(&lock);
    idle--;
    worker->exists = false;
    (void)pthread_mutex_unlock(&lock);
    return NULL;
}

/* Starts a thread that waits for a connect. With the lock held. */
static bool start_worker(void)
{
    struct worker *worker = NULL;
    for (size_t i = 0; i < MAX_WORKERS && !worker; i++)
        if (!workers[i].exists)
            worker = &workers[i];
    if (!worker)
        return false;
    pthread_attr_t attr;
    sigset_t old;
    sigset_t wake;
    (void)sigemptyset(&wake);
    (void)sigaddset(&wake, WAKE_SIGNAL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_sigmask(SIG_UNBLOCK, &wake, &old);
    worker->exists = pthread_create(&worker->thread, &attr, run_worker, worker) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    idle += worker->exists;
    return worker->exists;
}

static void on_wake(int signal)
{
    (void)signal; /* only there to end a blocked call */
}

int broker_start(int listener_fd, const struct socket_policy *allowed)
{
    struct sigaction action = {.sa_handler = on_wake};
    CLEANUP_FD int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof own_netns;
    if (probe < 0 || getsockopt(probe, SOL_SOCKET, SO_NETNS_COOKIE, &own_netns, &len) < 0)
        die_errno("network number (Linux 5.14 has it)");
    if (sigaction(WAKE_SIGNAL, &action, NULL) < 0)
        die_errno("sigaction");
    watch = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watch < 0)
        die_errno("timerfd");
    policy = *allowed;
    listener = listener_fd;
    return watch;
}

bool broker_serve(void)
{
    (void)pthread_mutex_lock(&lock);
    while (idle < MIN_WORKERS && start_worker())
        continue;
    bool started = idle > 0;
    (void)pthread_mutex_unlock(&lock);
    struct flight flight;
    if (!started && receive(&flight) == 0)
        answer(flight.id, EAGAIN);
    return started;
}

void broker_wake_orphans(void)
{
    uint64_t times;
    (void)!read(watch, &times, sizeof times);
    (void)pthread_mutex_lock(&lock);
    watch_armed = false;
    for (size_t i = 0; i < MAX_WORKERS; i++)
        if (workers[i].busy && !still_valid(workers[i].flight.id))
            (void)pthread_kill(workers[i].thread, WAKE_SIGNAL);
    if (in_flight > 0)
        arm_watch();
    (void)pthread_mutex_unlock(&lock);
}
