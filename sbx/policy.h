/* What the launcher hands to `efr-sbx inner` through a file in memory: the plan, what the plan's
 * entries are on the host, and the descriptors that came along.
 * Owns: the bytes of that file; both ends are one build of one program, so it is no format.
 * Must not know: how bubblewrap is called. Written by the launcher, read in pid 1 of the call. */
#ifndef EFR_SBX_POLICY_H
#define EFR_SBX_POLICY_H

#include "init.h"
#include "plan.h"

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

#define POLICY_NAMESPACES 7

/* What an entry of the plan has to be in the call. */
struct policy_entry {
    enum mount_kind kind;
    bool shown; /* there is a mount for it */
    bool is_dir;
    uint64_t dev; /* of what is shown, as stat gives it; 0: a body of the call's own */
    uint64_t ino;
    const char *path; /* borrowed */
};

struct policy {
    struct init_args init;  /* terminal and plan are strings and bytes of their own */
    const char *plan_bytes; /* borrowed by the writer, owned by the reader */
    size_t plan_len;
    struct policy_entry *entries; /* one for each mount of the plan, in its order */
    size_t entry_count;
    char **environment;       /* of the launcher */
    int stderr_fd;            /* the call's standard error */
    int lock_fd;              /* held while pid 1 lives, or -1 */
    int max_abi;              /* cap of Landlock */
    bool waits;               /* the launcher adds overlays before the command starts */
    struct rlimit open_files; /* the launcher's, before it raised its own */
    uint64_t namespaces[POLICY_NAMESPACES]; /* the launcher's, see policy_namespaces */
};

/* The numbers of this process' namespaces: user, mnt, pid, ipc, uts, cgroup, net. Dies. */
void policy_namespaces(uint64_t *numbers);

/* The position of the network namespace in them. */
#define POLICY_NET 6

/* Writes a policy into a new file in memory and returns its descriptor. Dies. */
int policy_write(const struct policy *policy);

/* Reads one, taking fd. policy->init.plan is set by the caller. Dies. */
void policy_read(struct policy *policy, int fd);

#endif
