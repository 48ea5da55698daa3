/* Single steps of the mount API of descriptors. Each dies naming what it worked on. */
#ifndef EFR_SBX_MOUNT_UTIL_H
#define EFR_SBX_MOUNT_UTIL_H

#include <stdbool.h>
#include <stdint.h>

/* Makes every mount of this namespace read-only and private. */
void mount_everything_readonly(void);

/* A detached recursive clone of what the O_PATH descriptor names. path only for messages. */
int mount_clone(int fd, const char *path);

/* A detached clone of one place without the mounts below it; name "" is dir itself. */
int mount_clone_at(int dir, const char *name);

void mount_attrs(int mount_fd, const char *path, bool recursive, uint64_t set,
                 uint64_t clear);

/* Attaches a detached mount on the place that target names. */
void mount_attach(int mount_fd, int target, const char *path);

/* Makes the directories of relative, and a file or directory as its last part, below dir.
 * What exists must be of the right kind and no link. */
void mount_make_point(int dir, const char *relative, bool is_dir);

/* The tmpfs of the call, attached on /dev. Returns O_PATH of its root. */
int mount_pool(void);

/* A new procfs on /proc, read-only; or with only the files of processes writable, for a command
 * that may make namespaces (it writes their id maps). */
void mount_proc(bool processes_writable);

/* Whether an entry of /proc belongs to no process: settings and switches of the machine. */
bool mount_is_of_machine(int proc, const char *name);

/* A new instance of devpts on target. */
void mount_devpts(int target);

#endif
