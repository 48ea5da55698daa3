/* See landlock.h. The structures are our own: the headers of Debian 12 end at ABI 2. */
#include "landlock.h"

#ifdef EFR_SBX_TEST_UNSAFE
#include "unsafe.h" /* tests/sbx: never in what ships */
#endif

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FS_EXECUTE (1ULL << 0)
#define FS_WRITE_FILE (1ULL << 1)
#define FS_READ_FILE (1ULL << 2)
#define FS_READ_DIR (1ULL << 3)
#define FS_REMOVE_DIR (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_CHAR (1ULL << 6)
#define FS_MAKE_DIR (1ULL << 7)
#define FS_MAKE_REG (1ULL << 8)
#define FS_MAKE_SOCK (1ULL << 9)
#define FS_MAKE_FIFO (1ULL << 10)
#define FS_MAKE_BLOCK (1ULL << 11)
#define FS_MAKE_SYM (1ULL << 12)
#define FS_REFER (1ULL << 13)        /* ABI 2 */
#define FS_TRUNCATE (1ULL << 14)     /* ABI 3 */
#define FS_IOCTL_DEV (1ULL << 15)    /* ABI 5 */
#define FS_RESOLVE_UNIX (1ULL << 16) /* ABI 9 */
#define FS_ABI1 (FS_REFER - 1)
#define FS_OF_A_FILE                                                                     \
    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV |            \
     FS_RESOLVE_UNIX)

#define NET_BIND_TCP (1ULL << 0) /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)

#define SCOPE_ABSTRACT_UNIX (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ULL << 1)

#define CREATE_VERSION 1U
#define CREATE_ERRATA 2U
#define RULE_PATH_BENEATH 1

struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/* The rights that the last rule set handles: a rule must not name others. */
static uint64_t handled_fs;

static int cap = INT_MAX;

int landlock_abi(void)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return abi < cap ? abi : cap;
}

void landlock_cap(int max_abi)
{
    cap = max_abi;
}

bool landlock_sees_moved_directories(void)
{
    long errata = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_ERRATA);
#ifdef EFR_SBX_TEST_UNSAFE
    if (unsafe_form("erratum"))
        return false;
#endif
    return errata > 0 && (errata & (1L << (LANDLOCK_ERRATUM_MOVED - 1)));
}

static uint64_t fs_rights(int abi)
{
    uint64_t rights = FS_ABI1;
    if (abi >= 2)
        rights |= FS_REFER;
    if (abi >= 3)
        rights |= FS_TRUNCATE;
    if (abi >= 5)
        rights |= FS_IOCTL_DEV;
    /* Sockets of the same domain need no rule: those that a call makes stay in reach. */
    if (abi >= 9 && landlock_sees_moved_directories())
        rights |= FS_RESOLVE_UNIX;
    return rights;
}

int landlock_ruleset(int min_abi, int with_net)
{
    int abi = landlock_abi();
    if (abi < 0)
        return -1;
    if (abi < min_abi) {
        errno = ENOTSUP;
        return -1;
    }
    struct ruleset_attr attr = {.handled_access_fs = fs_rights(abi)};
    if (with_net && abi >= 4)
        attr.handled_access_net = NET_BIND_TCP | NET_CONNECT_TCP;
    if (abi >= 6)
        attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
    /* Older kernels accept the longer structure because its tail is zero there. */
    long fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (fd >= 0)
        handled_fs = attr.handled_access_fs;
    return (int)fd;
}

static uint64_t class_rights(enum landlock_class class)
{
    switch (class) {
    case LANDLOCK_READ:
        return FS_EXECUTE | FS_READ_FILE | FS_READ_DIR;
    case LANDLOCK_LOOK:
        return FS_READ_FILE | FS_READ_DIR;
    case LANDLOCK_STORE:
        return (FS_ABI1 | FS_REFER | FS_TRUNCATE) &
               ~(FS_EXECUTE | FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_MAKE_SOCK | FS_MAKE_FIFO);
    case LANDLOCK_WRITE:
        return (FS_ABI1 | FS_REFER | FS_TRUNCATE) & ~(FS_MAKE_CHAR | FS_MAKE_BLOCK);
    case LANDLOCK_SINK:
        return FS_READ_FILE | FS_WRITE_FILE;
    case LANDLOCK_TERMINAL:
        return FS_READ_FILE | FS_WRITE_FILE | FS_IOCTL_DEV;
    case LANDLOCK_PROC:
        return FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE;
    case LANDLOCK_SOCKET:
        return FS_RESOLVE_UNIX;
    }
    return 0;
}

int landlock_allow(int ruleset, int path_fd, enum landlock_class class)
{
    struct stat st;
    if (fstat(path_fd, &st) < 0)
        return -1;
    uint64_t rights = class_rights(class) & handled_fs;
    if (!S_ISDIR(st.st_mode))
        rights &= FS_OF_A_FILE;
    if (rights == 0)
        return 0; /* a right that this ABI does not handle: nothing to allow */
    struct path_beneath_attr attr = {.allowed_access = rights, .parent_fd = path_fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0);
}

int landlock_enter(int ruleset)
{
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
