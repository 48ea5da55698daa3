/* Namespaces of a call. Owns: the one clone3, the id maps and the loopback device. */
#ifndef EFR_SBX_NS_H
#define EFR_SBX_NS_H

#include <stdbool.h>
#include <sys/types.h>

/* Forks into new user, mount, pid, ipc, uts, cgroup and (own_network) network namespaces. Returns 0 in the
 * child (its pid 1), the pid in the launcher; dies with what an administrator can do. cgroup: directory of the
 * one that the child is to be in, if the kernel lets it, or -1. */
pid_t ns_clone(bool own_network, int cgroup);

/* In the child: maps the user and group to themselves, without setgroups. Dies. */
void ns_map_ids(uid_t uid, gid_t gid);

/* In the child: brings the loopback device up. Dies. */
void ns_loopback_up(void);

#endif
