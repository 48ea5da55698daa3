/* Tries one thing that a contained call must not be able to do: `attempts NAME [ARGUMENT...]`.
 * Prints `NAME: worked` and ends with 0, or `NAME: ERRNO` and ends with 1. `attempts batch` reads
 * such lines and prints an outcome for each. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static char **words; /* the arguments after the name */

static long number(int i)
{
    return words[i] ? strtol(words[i], NULL, 0) : 0;
}

/* call NR A B C D: any system call with small arguments */
static long any_call(void)
{
    return syscall(number(0), number(1), number(2), number(3), number(4), number(5));
}

static long any_socket(void)
{
    return socket((int)number(0), (int)number(1) | SOCK_CLOEXEC, (int)number(2));
}

/* Children until the kernel refuses one; prints why and, rounded, how many. */
static long bomb(void)
{
    long made = 0;
    pid_t pid;
    while ((pid = fork()) != 0) {
        if (pid < 0) {
            (void)printf("%s after %s8000\n", strerrorname_np(errno),
                         made > 8000 ? "more than " : "at most ");
            (void)fflush(stdout);
            return number(0) ? pause() : 0;
        }
        made++;
        if (made > 20000)
            return -1;
    }
    (void)pause();
    _exit(0);
}

static long any_pair(void)
{
    int ends[2];
    return socketpair((int)number(0), (int)number(1), 0, ends);
}

/* ioctl REQUEST: on standard input */
static long any_ioctl(void)
{
    char byte[64] = "x";
    return ioctl(0, (unsigned long)number(0), byte);
}

/* Prints what is no AF_UNIX, AF_INET, AF_INET6 or AF_NETLINK and yet known. */
static long all_families(void)
{
    for (int family = 0; family < 256; family++) {
        bool open_one = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
                        family == AF_NETLINK;
        for (int type = 1; type <= 10 && !open_one; type++)
            if (socket(family, type, 0) >= 0 || errno != EAFNOSUPPORT)
                (void)printf("family %d type %d: %d\n", family, type, errno);
    }
    return 0;
}

/* udp HOST: no connect before */
static long udp_send(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = 0x0900};
    (void)inet_pton(AF_INET, words[0], &name.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return sendto(fd, "x", 1, 0, (const struct sockaddr *)&name, sizeof name);
}

/* The upper half of the register is not what the kernel looks at. */
static long wide_ioctl(void)
{
    char byte[64] = "x";
    return syscall(SYS_ioctl, 0, 0x100000000UL | (unsigned long)number(0), byte);
}

static long wide_socket(void)
{
    return syscall(SYS_socket, 0x100000000UL | (unsigned long)number(0), SOCK_STREAM, 0);
}

static long clone_flags(void)
{
    long pid = syscall(SYS_clone, number(0) | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return pid;
}

static long openat2_call(void)
{
    struct open_how how = {.flags = O_RDONLY};
    return syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how);
}

/* chmod MODE PATH, creat, open and mknod alike */
static long chmod_call(void)
{
    return chmod(words[1], (mode_t)number(0));
}

static long fchmodat2_call(void)
{
    return syscall(452, AT_FDCWD, words[1], number(0), 0);
}

static long open_mode(void)
{
    return open(words[1], O_CREAT | O_WRONLY | O_CLOEXEC, (mode_t)number(0));
}

static long tmpfile_mode(void)
{
    return open(words[1], O_TMPFILE | O_WRONLY | O_CLOEXEC, (mode_t)number(0));
}

static long mknod_call(void)
{
    return mknod(words[1], (mode_t)number(0), 0);
}

static long utimes_call(void)
{
    return utimes(words[0], NULL);
}

static long setxattr_call(void)
{
    return setxattr(words[0], "user.efr", "1", 1, 0);
}

static long chown_call(void)
{
    return chown(words[0], getuid(), getgid());
}

static long truncate_call(void)
{
    return truncate(words[0], 0);
}

static long removexattr_call(void)
{
    return removexattr(words[0], "user.efr");
}

/* The same by a descriptor that was opened for reading. */
static long fchmod_call(void)
{
    return fchmod(open(words[0], O_RDONLY | O_CLOEXEC), 0644);
}

static long futimens_call(void)
{
    return futimens(open(words[0], O_RDONLY | O_CLOEXEC), NULL);
}

static long fsetxattr_call(void)
{
    return fsetxattr(open(words[0], O_RDONLY | O_CLOEXEC), "user.efr", "1", 1, 0);
}

static long link_call(void)
{
    return link(words[0], words[1]);
}

static long rename_call(void)
{
    return rename(words[0], words[1]);
}

static long write_open(void)
{
    return open(words[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static long read_open(void)
{
    return open(words[0], O_RDONLY | O_CLOEXEC);
}

static long mount_call(void)
{
    return mount("none", words[0], "tmpfs", 0, NULL);
}

static long remount_call(void)
{
    return mount(NULL, words[0], NULL, MS_REMOUNT | MS_BIND, NULL);
}

static long umount_call(void)
{
    return umount2(words[0], MNT_DETACH);
}

static long kill_call(void)
{
    return kill((pid_t)number(0), (int)number(1));
}

static long trace(void)
{
    return ptrace(PTRACE_SEIZE, (pid_t)number(0), NULL, NULL);
}

static long write_memory(void)
{
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    return process_vm_writev((pid_t)number(0), &part, 1, &part, 1, 0);
}

static long take_descriptor(void)
{
    long pidfd = syscall(SYS_pidfd_open, number(0), 0);
    return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, number(1), 0);
}

/* unix PATH; a first @ makes it an abstract name */
static long unix_connect(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t len = sizeof name;
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", words[0]);
    if (name.sun_path[0] == '@') {
        len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name.sun_path));
        name.sun_path[0] = '\0';
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&name, len);
}

/* content PATH: worked only when there is something to read */
static long content_of(void)
{
    char byte;
    int fd = open(words[0], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, &byte, 1);
    if (n == 0)
        errno = ENODATA; /* stands for "empty" */
    return n == 1 ? 0 : -1;
}

static long memory_of(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/mem", number(0));
    return open(path, O_RDWR | O_CLOEXEC);
}

/* tcp TYPE PROTOCOL HOST PORT: a connect */
static long tcp_connect(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)number(3))};
    (void)inet_pton(AF_INET, words[2], &name.sin_addr);
    int fd = socket(AF_INET, (int)number(0) | SOCK_CLOEXEC, (int)number(1));
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&name, sizeof name);
}

static long tcp6_connect(void)
{
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    (void)inet_pton(AF_INET6, words[0], &name.sin6_addr);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&name, sizeof name);
}

/* fast-open HOST: data in the first packet, with no connect */
static long fast_open(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(9)};
    (void)inet_pton(AF_INET, words[0], &name.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return sendto(fd, "x", 1, MSG_FASTOPEN, (const struct sockaddr *)&name, sizeof name);
}

/* unix-in DIRECTORY NAME: a relative path from there */
static long unix_from(void)
{
    if (chdir(words[0]) < 0)
        return -1;
    words++;
    return unix_connect();
}

static long seqpacket_connect(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", words[0]);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&name, sizeof name);
}

/* write-by PREFIX DIRECTORY NAME: through PREFIX/N, a descriptor of the directory */
static long write_by(void)
{
    char path[512];
    int fd = open(words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "%s/%d/%s", words[0], fd, words[2]);
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* unix-by DIRECTORY NAME: a socket through /proc/self/fd */
static long unix_by(void)
{
    static char path[512];
    int fd = open(words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, words[1]);
    words[0] = path;
    return unix_connect();
}

/* chmod-by FILE: through a descriptor's name */
static long chmod_by(void)
{
    char path[64];
    int fd = open(words[0], O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return chmod(path, 0600);
}

static long remove_name(void)
{
    return unlink(words[0]);
}

static long make_directory(void)
{
    return mkdir(words[0], 0700);
}

/* capabilities: worked when this process has any, or could get one */
static long any_capability(void)
{
    char line[256];
    unsigned long long all = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "Cap", 3) == 0)
            all |= strtoull(line + 7, NULL, 16);
    errno = EPERM;
    return file && all ? 0 : -1;
}

/* A tracer may skip a call by making it -1; that is no x32 call. */
static long x32_call(void)
{
    return syscall(0x40000000L + SYS_getpid);
}

static long i386_call(void)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
    return result;
#else
    return -1;
#endif
}

static const struct attempt {
    const char *name;
    long (*run)(void);
} ATTEMPTS[] = {
    {"call", any_call},
    {"socket", any_socket},
    {"socketpair", any_pair},
    {"ioctl", any_ioctl},
    {"wide-ioctl", wide_ioctl},
    {"wide-socket", wide_socket},
    {"clone", clone_flags},
    {"openat2", openat2_call},
    {"chmod", chmod_call},
    {"fchmodat2", fchmodat2_call},
    {"open-mode", open_mode},
    {"tmpfile-mode", tmpfile_mode},
    {"mknod", mknod_call},
    {"utimes", utimes_call},
    {"setxattr", setxattr_call},
    {"bomb", bomb},
    {"chown", chown_call},
    {"truncate", truncate_call},
    {"removexattr", removexattr_call},
    {"fchmod", fchmod_call},
    {"futimens", futimens_call},
    {"fsetxattr", fsetxattr_call},
    {"families", all_families},
    {"udp", udp_send},
    {"link", link_call},
    {"rename", rename_call},
    {"write", write_open},
    {"read", read_open},
    {"mount", mount_call},
    {"remount", remount_call},
    {"umount", umount_call},
    {"kill", kill_call},
    {"trace", trace},
    {"write-memory", write_memory},
    {"take-descriptor", take_descriptor},
    {"unix", unix_connect},
    {"content", content_of},
    {"memory", memory_of},
    {"tcp", tcp_connect},
    {"tcp6", tcp6_connect},
    {"fast-open", fast_open},
    {"unix-in", unix_from},
    {"seqpacket", seqpacket_connect},
    {"write-by", write_by},
    {"unix-by", unix_by},
    {"chmod-by", chmod_by},
    {"unlink", remove_name},
    {"mkdir", make_directory},
    {"capability", any_capability},
    {"x32", x32_call},
    {"i386", i386_call},
};

static const struct attempt *find(const char *name)
{
    for (size_t i = 0; i < sizeof ATTEMPTS / sizeof *ATTEMPTS; i++)
        if (strcmp(name, ATTEMPTS[i].name) == 0)
            return &ATTEMPTS[i];
    return NULL;
}

/* One line of a batch, in a process of its own: its outcome as a word. */
static const char *outcome_of(char *line)
{
    static char *parts[16];
    size_t count = 0;
    int status = 0;
    char *rest = line;
    for (char *word; count < 15 && (word = strsep(&rest, " ")) != NULL;)
        parts[count++] = word;
    parts[count] = NULL;
    const struct attempt *attempt = find(parts[0]);
    if (!attempt)
        return "no such attempt";
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        words = parts + 1;
        _exit(attempt->run() >= 0 ? 0 : errno);
    }
    if (waitpid(pid, &status, 0) != pid)
        return "no process";
    if (WIFSIGNALED(status))
        return sigabbrev_np(WTERMSIG(status));
    if (WEXITSTATUS(status) == ENODATA)
        return "empty";
    return WEXITSTATUS(status) ? strerrorname_np(WEXITSTATUS(status)) : "worked";
}

/* Lines "NAME ARGUMENT..." of standard input: prints the outcome of each, one a line. */
static int batch(void)
{
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        (void)puts(outcome_of(line));
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "batch") == 0)
        return batch();
    words = argv + 2;
    const struct attempt *attempt = find(argv[1]);
    if (!attempt)
        return 2;
    if (attempt->run() >= 0) {
        (void)printf("%s: worked\n", argv[1]);
        return 0;
    }
    (void)printf("%s: %s\n", argv[1], strerrorname_np(errno));
    return 1;
}
