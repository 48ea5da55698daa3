/* See sockets.h. */
#include "sockets.h"

#include "util.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_BYTES 32768 /* the kernel fills no more than this at once */
#define TRIES 3            /* the list may skip a socket while others come and go */
#define KERNEL_MINOR_BITS 20
#define ALIGNED(n) (((n) + 3U) & ~(size_t)3U)

/* Whether name, as it was bound, ends in the part wanted. */
static bool name_matches(const char *name, size_t len, const char *wanted)
{
    len = strnlen(name, len);
    size_t start = len;
    while (start > 0 && name[start - 1] != '/')
        start--;
    size_t wanted_len = strlen(wanted);
    return len - start == wanted_len && memcmp(name + start, wanted, wanted_len) == 0;
}

/* One socket: its attributes lie after the message of fixed size. */
static bool socket_matches(const char *bytes, size_t len, const struct socket_key *key)
{
    bool here = false;
    bool named = key->name == NULL;
    size_t at = ALIGNED(sizeof(struct unix_diag_msg));
    while (at <= len && len - at >= sizeof(struct nlattr)) {
        struct nlattr head;
        memcpy(&head, bytes + at, sizeof head);
        if (head.nla_len < sizeof head || head.nla_len > len - at)
            return false;
        const char *value = bytes + at + sizeof head;
        size_t value_len = head.nla_len - sizeof head;
        if (head.nla_type == UNIX_DIAG_VFS && value_len >= sizeof(struct unix_diag_vfs)) {
            struct unix_diag_vfs file;
            memcpy(&file, value, sizeof file);
            here = file.udiag_vfs_dev == key->device && file.udiag_vfs_ino == key->inode;
        }
        if (head.nla_type == UNIX_DIAG_NAME && !named)
            named = name_matches(value, value_len, key->name);
        at += ALIGNED(head.nla_len);
    }
    return here && named;
}

enum socket_scan socket_scan(const void *bytes, size_t len_bytes,
                             const struct socket_key *key)
{
    const char *at = bytes;
    while (len_bytes > 0) {
        struct nlmsghdr head;
        if (len_bytes < sizeof head)
            return SOCKET_SCAN_BROKEN;
        memcpy(&head, at, sizeof head);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > len_bytes)
            return SOCKET_SCAN_BROKEN;
        if (head.nlmsg_type == NLMSG_DONE)
            return SOCKET_SCAN_END;
        if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
            return SOCKET_SCAN_BROKEN; /* NLMSG_ERROR among others */
        if (socket_matches(at + sizeof head, head.nlmsg_len - sizeof head, key))
            return SOCKET_SCAN_FOUND;
        size_t step = ALIGNED((size_t)head.nlmsg_len);
        if (step > len_bytes)
            step = len_bytes;
        at += step;
        len_bytes -= step;
    }
    return SOCKET_SCAN_MORE;
}

static int ask(int fd)
{
    struct {
        struct nlmsghdr head;
        struct unix_diag_req request;
    } question = {
        .head = {.nlmsg_len = sizeof question,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        /* Every state: a bound socket that does not listen yet is the call's as well. */
        .request = {.sdiag_family = AF_UNIX,
                    .udiag_states = ~0U,
                    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS},
    };
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    ssize_t n = sendto(fd, &question, sizeof question, 0,
                       (const struct sockaddr *)&kernel, sizeof kernel);
    return n == sizeof question ? 0 : -1;
}

/* One reading of the list. Sets *parts to the number of its datagrams. */
static int read_list(const struct socket_key *key, void *answer, unsigned int *parts)
{
    CLEANUP_FD int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0 || ask(fd) < 0)
        return -1;
    for (*parts = 1;; (*parts)++) {
        struct sockaddr_nl from = {0};
        socklen_t from_len = sizeof from;
        ssize_t n =
            recvfrom(fd, answer, ANSWER_BYTES, 0, (struct sockaddr *)&from, &from_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (from.nl_pid != 0)
            continue; /* not the kernel */
        switch (socket_scan(answer, (size_t)n, key)) {
        case SOCKET_SCAN_FOUND:
            return 1;
        case SOCKET_SCAN_END:
            return 0;
        case SOCKET_SCAN_BROKEN:
            errno = EOPNOTSUPP;
            return -1;
        case SOCKET_SCAN_MORE:
            break;
        }
    }
}

int socket_made_here(const struct socket_key *key)
{
    CLEANUP_FREE void *answer = malloc(ANSWER_BYTES);
    if (!answer)
        return -1;
    for (int i = 0; i < TRIES; i++) {
        unsigned int parts = 0;
        int found = read_list(key, answer, &parts);
        /* One datagram is written at one moment; a longer list may have missed a socket. */
        if (found != 0 || parts <= 2)
            return found;
    }
    return 0;
}

int mount_devices(const uint64_t *mount_ids, uint32_t *devices, size_t count)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    CLEANUP_FREE char *line = NULL;
    size_t room = 0;
    size_t found = 0;
    if (!file)
        return -1;
    while (getline(&line, &room, file) > 0) {
        unsigned long long id = 0;
        unsigned int major = 0;
        unsigned int minor = 0;
        if (sscanf(line, "%llu %*u %u:%u ", &id, &major, &minor) != 3)
            continue;
        for (size_t i = 0; i < count; i++) {
            if (mount_ids[i] != id)
                continue;
            devices[i] = major << KERNEL_MINOR_BITS | minor;
            found++;
        }
    }
    (void)fclose(file);
    errno = ENOENT;
    return found == count ? 0 : -1;
}
