/* Writes the seccomp programs of a call as a C header, at build time.
 * Owns: the closed system calls and the shape of the program (a binary tree over the call
 * numbers). Must not know: anything at run time. libseccomp only translates names to numbers
 * of both architectures; the tree is our own, because libseccomp cannot say "any family but
 * these" without some hundred rules (docs/adr/sbx-seccomp.md).
 * The programs: for the command, for one that may make namespaces, and for pid 1 (which may
 * connect and openat2), each for an ordinary user and for root (where the set-group-id bit is closed too). */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEWEST_CALL 467 /* open_tree_attr; reviewed up to here, above is ENOSYS */
#define X32_BIT 0x40000000U
#define NEW_NAMESPACE_FLAGS 0x7e020000U /* mount cgroup uts ipc user pid net */
#define O_CREAT_FLAG 0x40U
#define O_TMPFILE_FLAG 0x400000U
#define AF_UNIX_NR 1U
#define MPTCP_NR 262U

/* What happens to a call. The first three are answers, the others look at arguments. */
enum answer {
    ANSWER_EPERM,
    ANSWER_ENOSYS,
    ANSWER_NOTIFY, /* to the broker of pid 1 */
    CHECK_IOCTL,
    CHECK_CLONE,
    CHECK_MODE_1, /* the mode is argument 1, and so on */
    CHECK_MODE_2,
    CHECK_OPEN_1, /* the flags are argument 1, the mode is the next one */
    CHECK_OPEN_2,
    CHECK_SOCKET,
    CHECK_PRLIMIT,
    ANSWER_COUNT,
};

struct rule {
    const char *name;
    int number; /* for calls that libseccomp 2.5.4 does not know; 0 = ask it */
    enum answer answer;
};

static const struct rule RULES[] = {
    {"keyctl", 0, ANSWER_EPERM},
    {"add_key", 0, ANSWER_EPERM},
    {"request_key", 0, ANSWER_EPERM},
    {"bpf", 0, ANSWER_EPERM},
    {"perf_event_open", 0, ANSWER_EPERM},
    {"userfaultfd", 0, ANSWER_EPERM},
    {"mount", 0, ANSWER_EPERM},
    {"umount2", 0, ANSWER_EPERM},
    {"pivot_root", 0, ANSWER_EPERM},
    {"chroot", 0, ANSWER_EPERM},
    {"move_mount", 0, ANSWER_EPERM},
    {"open_tree", 0, ANSWER_EPERM},
    {"fsopen", 0, ANSWER_EPERM},
    {"fsconfig", 0, ANSWER_EPERM},
    {"fsmount", 0, ANSWER_EPERM},
    {"fspick", 0, ANSWER_EPERM},
    {"mount_setattr", 0, ANSWER_EPERM},
    {"setns", 0, ANSWER_EPERM},
    {"unshare", 0, ANSWER_EPERM},
    {"open_by_handle_at", 0, ANSWER_EPERM},
    {"name_to_handle_at", 0, ANSWER_EPERM},
    {"kexec_load", 0, ANSWER_EPERM},
    {"kexec_file_load", 0, ANSWER_EPERM},
    {"init_module", 0, ANSWER_EPERM},
    {"finit_module", 0, ANSWER_EPERM},
    {"delete_module", 0, ANSWER_EPERM},
    {"reboot", 0, ANSWER_EPERM},
    {"swapon", 0, ANSWER_EPERM},
    {"swapoff", 0, ANSWER_EPERM},
    {"acct", 0, ANSWER_EPERM},
    {"iopl", 0, ANSWER_EPERM},
    {"ioperm", 0, ANSWER_EPERM},
    {"fanotify_init", 0, ANSWER_EPERM},
    {"quotactl", 0, ANSWER_EPERM},
    {"quotactl_fd", 443, ANSWER_EPERM},
    {"vhangup", 0, ANSWER_EPERM},
    {"lsm_set_self_attr", 460, ANSWER_EPERM},
    {"open_tree_attr", 467, ANSWER_EPERM},
    {"io_uring_setup", 0, ANSWER_ENOSYS},
    {"io_uring_enter", 0, ANSWER_ENOSYS},
    {"io_uring_register", 0, ANSWER_ENOSYS},
    {"clone3", 0, ANSWER_ENOSYS},
    {"openat2", 0, ANSWER_ENOSYS},
    {"connect", 0, ANSWER_NOTIFY},
    {"ioctl", 0, CHECK_IOCTL},
    {"clone", 0, CHECK_CLONE},
    {"chmod", 0, CHECK_MODE_1},
    {"fchmod", 0, CHECK_MODE_1},
    {"fchmodat", 0, CHECK_MODE_2},
    {"fchmodat2", 452, CHECK_MODE_2},
    {"creat", 0, CHECK_MODE_1},
    {"mknod", 0, CHECK_MODE_1},
    {"mknodat", 0, CHECK_MODE_2},
    {"open", 0, CHECK_OPEN_1},
    {"openat", 0, CHECK_OPEN_2},
    {"socket", 0, CHECK_SOCKET},
    {"socketpair", 0, CHECK_SOCKET},
    {"prlimit64", 0, CHECK_PRLIMIT},
};
#define RULE_COUNT (sizeof RULES / sizeof *RULES)

static const uint32_t CLOSED_IOCTLS[] = {
    0x5412, /* TIOCSTI */
    0x541c, /* TIOCLINUX */
    0x5423, /* TIOCSETD */
    0x540c, /* TIOCEXCL */
    /* New subvolumes of btrfs: they repeat inode numbers, which tell a call's own sockets
     * (sbx/socket_policy.c). SNAP_CREATE, SUBVOL_CREATE and their second forms. */
    0x50009401,
    0x5000940e,
    0x50009417,
    0x50009418,
};

/* AF_UNIX, AF_INET, AF_INET6, AF_NETLINK */
static const uint32_t OPEN_FAMILIES[] = {1, 2, 10, 16};

struct call {
    uint32_t number;
    enum answer answer;
};

struct program {
    struct sock_filter code[4096];
    size_t len;
    size_t fix_at[256]; /* jumps to an answer whose place is not known yet */
    enum answer fix_to[256];
    size_t fix_count;
    uint32_t mode_mask; /* file mode bits that are closed */
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
    if (p->len >= sizeof p->code / sizeof *p->code)
        abort();
    p->code[p->len++] = (struct sock_filter){.code = code, .jt = jt, .jf = jf, .k = k};
}

static void put_return(struct program *p, uint32_t value)
{
    put(p, BPF_RET | BPF_K, value, 0, 0);
}

static void put_errno(struct program *p, int number)
{
    put_return(p, SECCOMP_RET_ERRNO | (uint32_t)number);
}

static void load_low(struct program *p, unsigned int arg)
{
    put(p, BPF_LD | BPF_W | BPF_ABS,
        (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg), 0, 0);
}

/* The kernel takes these arguments as 32 bits, so only the low word counts. */
static void put_mode(struct program *p, unsigned int arg)
{
    load_low(p, arg);
    put(p, BPF_JMP | BPF_JSET | BPF_K, p->mode_mask, 0, 1);
    put_errno(p, EPERM);
    put_return(p, SECCOMP_RET_ALLOW);
}

static void put_open(struct program *p, unsigned int flags_arg)
{
    load_low(p, flags_arg);
    put(p, BPF_JMP | BPF_JSET | BPF_K, O_CREAT_FLAG | O_TMPFILE_FLAG, 1, 0);
    put_return(p, SECCOMP_RET_ALLOW);
    put_mode(p, flags_arg + 1);
}

static void put_socket(struct program *p)
{
    size_t families = sizeof OPEN_FAMILIES / sizeof *OPEN_FAMILIES;
    load_low(p, 0);
    for (size_t i = 0; i < families; i++)
        put(p, BPF_JMP | BPF_JEQ | BPF_K, OPEN_FAMILIES[i], (uint8_t)(families - i), 0);
    put_errno(p, EAFNOSUPPORT);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX_NR, 0, 6);
    load_low(p, 1);
    put(p, BPF_ALU | BPF_AND | BPF_K, 0xf, 0, 0);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 2, 0); /* SOCK_STREAM */
    put(p, BPF_JMP | BPF_JEQ | BPF_K, 5, 1, 0); /* SOCK_SEQPACKET */
    put_errno(p, EPROTONOSUPPORT);
    put_return(p, SECCOMP_RET_ALLOW);
    load_low(p, 2);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, MPTCP_NR, 0, 1);
    put_errno(p, EPROTONOSUPPORT);
    put_return(p, SECCOMP_RET_ALLOW);
}

static void put_ioctl(struct program *p)
{
    size_t count = sizeof CLOSED_IOCTLS / sizeof *CLOSED_IOCTLS;
    load_low(p, 1);
    for (size_t i = 0; i < count; i++)
        put(p, BPF_JMP | BPF_JEQ | BPF_K, CLOSED_IOCTLS[i], (uint8_t)(count - i), 0);
    put_return(p, SECCOMP_RET_ALLOW);
    put_errno(p, EPERM);
}

static void put_clone(struct program *p)
{
    load_low(p, 0);
    put(p, BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACE_FLAGS, 0, 1);
    put_errno(p, EPERM);
    put_return(p, SECCOMP_RET_ALLOW);
}

/* Limits of pid 1: with too few descriptors it could not tell how the call went. It has the
 * same user as the command, so the kernel would allow it (prlimit(2), permissions). */
static void put_prlimit(struct program *p)
{
    load_low(p, 0);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1);
    put_errno(p, EPERM);
    put_return(p, SECCOMP_RET_ALLOW);
}

static void put_answer(struct program *p, enum answer answer)
{
    switch (answer) {
    case ANSWER_EPERM:
        put_errno(p, EPERM);
        return;
    case ANSWER_ENOSYS:
        put_errno(p, ENOSYS);
        return;
    case ANSWER_NOTIFY:
        put_return(p, SECCOMP_RET_USER_NOTIF);
        return;
    case CHECK_IOCTL:
        put_ioctl(p);
        return;
    case CHECK_CLONE:
        put_clone(p);
        return;
    case CHECK_MODE_1:
        put_mode(p, 1);
        return;
    case CHECK_MODE_2:
        put_mode(p, 2);
        return;
    case CHECK_OPEN_1:
        put_open(p, 1);
        return;
    case CHECK_OPEN_2:
        put_open(p, 2);
        return;
    case CHECK_SOCKET:
        put_socket(p);
        return;
    case CHECK_PRLIMIT:
        put_prlimit(p);
        return;
    case ANSWER_COUNT:
        break;
    }
    abort();
}

/* A jump of any length to an answer, filled in when the answers are placed. */
static void jump_to(struct program *p, enum answer answer)
{
    if (p->fix_count >= sizeof p->fix_at / sizeof *p->fix_at)
        abort();
    p->fix_at[p->fix_count] = p->len;
    p->fix_to[p->fix_count++] = answer;
    put(p, BPF_JMP | BPF_JA, 0, 0, 0);
}

static void put_tree(struct program *p, const struct call *calls, size_t count)
{
    if (count <= 3) {
        for (size_t i = 0; i < count; i++) {
            put(p, BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
            jump_to(p, calls[i].answer);
        }
        put_return(p, SECCOMP_RET_ALLOW);
        return;
    }
    size_t half = count / 2;
    put(p, BPF_JMP | BPF_JGE | BPF_K, calls[half].number, 0, 1);
    size_t over = p->len;
    put(p, BPF_JMP | BPF_JA, 0, 0, 0);
    put_tree(p, calls, half);
    p->code[over].k = (uint32_t)(p->len - over - 1);
    put_tree(p, calls + half, count - half);
}

static int by_number(const void *a, const void *b)
{
    const struct call *left = a;
    const struct call *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* Whom a program is for. */
enum subject {
    FOR_COMMAND,
    FOR_USERNS, /* a command that may make namespaces, and change its root in one */
    FOR_INIT,
};

static bool is_open_for(const char *name, enum subject subject)
{
    static const char *const OPEN[][3] = {
        [FOR_USERNS] = {"clone", "unshare", "chroot"},
        [FOR_INIT] = {"connect", "openat2", NULL},
    };
    for (size_t i = 0; subject != FOR_COMMAND && i < 3 && OPEN[subject][i]; i++)
        if (strcmp(name, OPEN[subject][i]) == 0)
            return true;
    return false;
}

static size_t collect(struct call *calls, uint32_t arch, enum subject subject)
{
    size_t count = 0;
    for (size_t i = 0; i < RULE_COUNT; i++) {
        const struct rule *rule = &RULES[i];
        if (is_open_for(rule->name, subject))
            continue;
        int number = rule->number;
        if (number == 0)
            number = seccomp_syscall_resolve_name_arch(arch, rule->name);
        if (number == __NR_SCMP_ERROR) {
            (void)fprintf(stderr, "seccomp_gen: unknown call %s\n", rule->name);
            exit(1);
        }
        if (number < 0)
            continue; /* this architecture has no such call */
        calls[count++] = (struct call){(uint32_t)number, rule->answer};
    }
    qsort(calls, count, sizeof *calls, by_number);
    return count;
}

static void build(struct program *p, uint32_t arch, enum subject subject, bool for_root)
{
    struct call calls[RULE_COUNT];
    size_t count = collect(calls, arch, subject);
    memset(p, 0, sizeof *p);
    p->mode_mask = for_root ? 06000 : 04000;
    put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    put(p, BPF_JMP | BPF_JEQ | BPF_K, arch, 1, 0);
    put_return(p, SECCOMP_RET_KILL_PROCESS);
    put(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    /* -1 is what a tracer or an emulator writes to skip a call: not x32, just unknown. */
    put(p, BPF_JMP | BPF_JEQ | BPF_K, 0xffffffffU, 2, 0);
    put(p, BPF_JMP | BPF_JSET | BPF_K, X32_BIT, 0, 1);
    put_return(p, SECCOMP_RET_KILL_PROCESS);
    put(p, BPF_JMP | BPF_JGT | BPF_K, NEWEST_CALL, 0, 1);
    put_errno(p, ENOSYS);
    put_tree(p, calls, count);
    for (int answer = 0; answer < ANSWER_COUNT; answer++) {
        size_t place = p->len;
        put_answer(p, (enum answer)answer);
        for (size_t i = 0; i < p->fix_count; i++)
            if (p->fix_to[i] == (enum answer)answer)
                p->code[p->fix_at[i]].k = (uint32_t)(place - p->fix_at[i] - 1);
    }
}

static void print(const struct program *p, const char *name)
{
    (void)printf("static const struct sock_filter %s[] = {\n", name);
    for (size_t i = 0; i < p->len; i++)
        (void)printf("    {0x%02x, %u, %u, 0x%08x},\n", p->code[i].code, p->code[i].jt,
                     p->code[i].jf, p->code[i].k);
    (void)printf("};\n");
}

static void print_all(uint32_t arch)
{
    static struct program program;
    static const char *const NAMES[] = {"SECCOMP_COMMAND_USER", "SECCOMP_COMMAND_ROOT",
                                        "SECCOMP_USERNS_USER",  "SECCOMP_USERNS_ROOT",
                                        "SECCOMP_INIT_USER",    "SECCOMP_INIT_ROOT"};
    for (unsigned int i = 0; i < 6; i++) {
        build(&program, arch, (enum subject)(i / 2), i & 1);
        print(&program, NAMES[i]);
    }
}

int main(void)
{
    (void)printf("/* Generated by sbx/gen/seccomp_gen.c. */\n#if defined(__x86_64__)\n");
    print_all(SCMP_ARCH_X86_64);
    (void)printf("#elif defined(__aarch64__)\n");
    print_all(SCMP_ARCH_AARCH64);
    (void)printf("#else\n#error \"efr knows x86_64 and aarch64\"\n#endif\n");
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
