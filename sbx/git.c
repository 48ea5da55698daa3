/* See git.h.
 *
 * The trees that git reads are written by others at the same moment, and their settings can name
 * programs. So git gets a domain, not only settings: it reads the root, the given git
 * directories and the system; it writes the given store; it runs no program but git's own; it
 * has no socket. Each place is opened once, through no link, and Landlock gets the descriptor: a
 * name that means something else afterwards reaches nothing. No namespace is needed, so this
 * works where the sandbox of calls does not. */
#include "git.h"

#include "caps.h"
#include "git_env.h"
#include "landlock.h"
#include "seccomp.h"
#include "util.h"
#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h"
#endif

#include <elf.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define MIN_LANDLOCK_ABI 2
#define MAX_PLACES 64
#define MAX_INTERPRETER 256
#define MAX_HEADERS 64
#define DEFAULT_TIMEOUT_MS 60000
#define MAX_TIMEOUT_MS 3600000
#define MEMORY_BYTES (16ULL << 30)

struct places {
    const char *items[MAX_PLACES]; /* borrowed */
    size_t count;
};

struct options {
    const char *git;
    const char *root;
    const char *store;
    struct places git_dirs;
    struct places reads;
    long timeout_ms;
    bool user_config;
    char **args; /* what git gets after its own name */
};

/* What git needs of a system, whatever the distribution; what is missing is skipped. */
static const char *const SYSTEM[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
};
static const char *const GIT_PROGRAMS[] = {
    "/usr/bin/git",
    "/bin/git",
    "/usr/local/bin/git",
};

/* ---- options ---- */

static void usage(void) __attribute__((noreturn));

static void usage(void)
{
    die("usage: efr-sbx git --root DIR [--git PROGRAM] [--git-dir DIR]... [--read "
        "PATH]... "
        "[--store DIR] [--timeout-ms N] [--user-config] -- ARG...");
}

static void add_place(struct places *places, const char *path)
{
    if (places->count >= MAX_PLACES)
        die("more than %d places", MAX_PLACES);
    places->items[places->count++] = path;
}

static long read_ms(const char *text)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 1 || value > MAX_TIMEOUT_MS)
        die("--timeout-ms: not a number from 1 to %d", MAX_TIMEOUT_MS);
    return value;
}

static void take_option(struct options *o, const char *name, const char *value)
{
    if (!value)
        usage();
    if (strcmp(name, "--root") == 0)
        o->root = value;
    else if (strcmp(name, "--git") == 0)
        o->git = value;
    else if (strcmp(name, "--store") == 0)
        o->store = value;
    else if (strcmp(name, "--git-dir") == 0)
        add_place(&o->git_dirs, value);
    else if (strcmp(name, "--read") == 0)
        add_place(&o->reads, value);
    else if (strcmp(name, "--timeout-ms") == 0)
        o->timeout_ms = read_ms(value);
    else
        usage();
}

static void read_options(struct options *o, int argc, char **argv)
{
    int i = 0;
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--user-config") == 0) {
            o->user_config = true;
            continue;
        }
        take_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        i++;
    }
    if (!o->root || i + 1 >= argc)
        usage();
    if (o->root[0] != '/' || o->root[1] == '\0')
        die("--root is an absolute path and not /");
    o->args = argv + i + 1;
}

/* ---- the program ---- */

static int open_git(const char **path)
{
    if (*path)
        return open_real(AT_FDCWD, *path, 0);
    int fd = -1;
    for (size_t i = 0; fd < 0 && i < sizeof GIT_PROGRAMS / sizeof *GIT_PROGRAMS; i++) {
        *path = GIT_PROGRAMS[i];
        fd = open_real(AT_FDCWD, *path, 0);
    }
    return fd;
}

/* The program that the kernel starts to load git, or "" for a static one. */
static void read_interpreter(int git, char *name, size_t name_bytes)
{
    char link[64];
    Elf64_Ehdr head;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", git);
    CLEANUP_FD int fd = open(link, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        die_errno("read git");
    if (pread(fd, &head, sizeof head, 0) != sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
        head.e_phnum > MAX_HEADERS)
        die("git is no program of this machine");
    name[0] = '\0';
    for (unsigned int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head.e_phoff + i * sizeof part);
        if (pread(fd, &part, sizeof part, at) != sizeof part)
            die("git is cut off");
        if (part.p_type != PT_INTERP)
            continue;
        if (part.p_filesz == 0 || part.p_filesz > name_bytes ||
            pread(fd, name, part.p_filesz, (off_t)part.p_offset) !=
                (ssize_t)part.p_filesz)
            die("git is cut off");
        name[part.p_filesz - 1] = '\0';
        return;
    }
}

/* ---- the domain ---- */

static void allow_fd(int rules, int fd, enum landlock_class class, const char *path)
{
    if (landlock_allow(rules, fd, class) < 0)
        die_errno("landlock rule for %s", path);
}

/* Places of the system may be reached through links, which only root can change. */
static void allow_system(int rules, const char *path, enum landlock_class class)
{
    CLEANUP_FD int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        allow_fd(rules, fd, class, path);
    else if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
        die_errno("open %s", path);
}

static void allow_real(int rules, const char *path, enum landlock_class class)
{
    CLEANUP_FD int fd = open_real(AT_FDCWD, path, 0);
    if (fd < 0)
        die_errno("open %s", path);
    allow_fd(rules, fd, class, path);
}

/* git starts itself from the directory of its parts, and nothing else has the right to run. */
static void allow_programs(int rules, int git, const char *git_path)
{
    static const char *const PARTS[] = {"lib/git-core", "libexec/git-core"};
    char interpreter[MAX_INTERPRETER];
    int dir_len = (int)(strrchr(git_path, '/') - git_path);
    allow_fd(rules, git, LANDLOCK_READ, git_path);
    read_interpreter(git, interpreter, sizeof interpreter);
    if (interpreter[0] == '/')
        allow_system(rules, interpreter, LANDLOCK_READ);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        CLEANUP_FREE char *path = xasprintf("%.*s/../%s", dir_len, git_path, PARTS[i]);
        allow_system(rules, path, LANDLOCK_READ);
    }
}

static int make_domain(const struct options *o, int git, int root)
{
    int rules = landlock_ruleset(MIN_LANDLOCK_ABI, 1);
    if (rules < 0)
        die_errno("landlock (ABI %d or newer is needed)", MIN_LANDLOCK_ABI);
    for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
        allow_system(rules, SYSTEM[i], LANDLOCK_LOOK);
    allow_system(rules, "/dev/null", LANDLOCK_SINK);
    allow_system(rules, "/dev/urandom", LANDLOCK_LOOK);
    allow_programs(rules, git, o->git);
    allow_fd(rules, root, LANDLOCK_LOOK, o->root);
    for (size_t i = 0; i < o->git_dirs.count; i++)
        allow_real(rules, o->git_dirs.items[i], LANDLOCK_LOOK);
    for (size_t i = 0; i < o->reads.count; i++)
        allow_real(rules, o->reads.items[i], LANDLOCK_LOOK);
    if (o->user_config)
        allow_system(rules, "/etc/gitconfig", LANDLOCK_LOOK);
    if (o->store)
        allow_real(rules, o->store, LANDLOCK_STORE);
    return rules;
}

static void limit(__rlimit_resource_t what, uint64_t value)
{
    struct rlimit now;
    if (getrlimit(what, &now) < 0)
        die_errno("getrlimit");
    if (now.rlim_max > value)
        now.rlim_max = value;
    if (now.rlim_cur > now.rlim_max)
        now.rlim_cur = now.rlim_max;
    if (setrlimit(what, &now) < 0)
        die_errno("setrlimit");
}

static void enter_domain(const struct options *o, int rules)
{
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, MEMORY_BYTES);
    limit(RLIMIT_CPU, (uint64_t)(o->timeout_ms + 999) / 1000 + 1);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        die_errno("no_new_privs");
    if (caps_keep_only(0) < 0)
        die_errno("capabilities");
#ifdef EFR_SBX_TEST_UNSAFE
    if (unsafe_form("no-landlock"))
        return;
#endif
    if (landlock_enter(rules) < 0)
        die_errno("landlock");
    if (seccomp_enter_git(geteuid() == 0) < 0)
        die_errno("seccomp");
}

/* ---- running it ---- */

static void run_child(const struct options *o, int git, int root, int rules, pid_t parent)
    __attribute__((noreturn));

static void run_child(const struct options *o, int git, int root, int rules, pid_t parent)
{
    /* A group of its own, which it cannot leave: what git started ends with it. */
    if (setpgid(0, 0) < 0)
        die_errno("setpgid");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        die("the parent is gone");
    if (fchdir(root) < 0)
        die_errno("enter %s", o->root);
    if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        die_errno("close_range");
    (void)umask(077);
    CLEANUP_FREE char *dir =
        xasprintf("%.*s", (int)(strrchr(o->git, '/') - o->git), o->git);
    char **env = git_env_build(o->root, dir, o->user_config);
    size_t count = 0;
    while (o->args[count])
        count++;
    char **argv = xcalloc(count + 2, sizeof *argv);
    argv[0] = xstrdup("git");
    memcpy(argv + 1, o->args, count * sizeof *argv);
    enter_domain(o, rules);
    (void)syscall(SYS_execveat, git, "", argv, env, AT_EMPTY_PATH);
    die_errno("run %s", o->git);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether the child ended within the time. */
static bool wait_for(pid_t child, long timeout_ms)
{
    int64_t end = now_ms() + timeout_ms;
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    if (pidfd < 0)
        die_errno("pidfd_open");
    for (;;) {
        int64_t left = end - now_ms();
        struct pollfd ready = {.fd = pidfd, .events = POLLIN};
        int n = poll(&ready, 1, left > 0 ? (int)left : 0);
        if (n > 0)
            return true;
        if (n == 0)
            return false;
        if (errno != EINTR)
            die_errno("poll");
    }
}

int git_run(int argc, char **argv)
{
    struct options o = {.timeout_ms = DEFAULT_TIMEOUT_MS};
    stage("git");
    read_options(&o, argc, argv);
    CLEANUP_FD int git = open_git(&o.git);
    if (git < 0 || o.git[0] != '/')
        die_errno("no git program at %s", o.git);
    CLEANUP_FD int root = open_real(AT_FDCWD, o.root, O_DIRECTORY);
    if (root < 0)
        die_errno("open %s", o.root);
    CLEANUP_FD int rules = make_domain(&o, git, root);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child < 0)
        die_errno("fork");
    if (child == 0)
        run_child(&o, git, root, rules, parent);
    bool in_time = wait_for(child, o.timeout_ms);
    /* Before the child is reaped its number is nobody else's, nor is its group's. */
    (void)kill(-child, SIGKILL);
    (void)kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            die_errno("waitpid");
    if (!in_time) {
        say("efr-sbx: git: no end after %ld ms", o.timeout_ms);
        return GIT_EXIT_TIMEOUT;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
