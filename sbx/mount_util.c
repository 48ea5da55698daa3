/* See mount_util.h. */
#include "mount_util.h"

#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

void mount_everything_readonly(void)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE};
    if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) < 0)
        die_errno("make / read-only");
}

int mount_clone(int fd, const char *path)
{
    int clone = open_tree(
        fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
    if (clone < 0)
        die_errno("clone %s", path);
    return clone;
}

int mount_clone_at(int dir, const char *name)
{
    int clone = open_tree(dir, name,
                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
                              AT_SYMLINK_NOFOLLOW);
    if (clone < 0)
        die_errno("clone %s", name);
    return clone;
}

void mount_attrs(int mount_fd, const char *path, bool recursive, uint64_t set,
                 uint64_t clear)
{
    struct mount_attr attr = {.attr_set = set, .attr_clr = clear};
    unsigned int flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U);
    if (mount_setattr(mount_fd, "", flags, &attr, sizeof attr) < 0)
        die_errno("attributes of %s", path);
}

void mount_attach(int mount_fd, int target, const char *path)
{
    if (move_mount(mount_fd, "", target, "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        die_errno("mount on %s", path);
}

static void make_file(int dir, const char *name)
{
    CLEANUP_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        die_errno("mount point %s", name);
}

void mount_make_point(int dir, const char *relative, bool is_dir)
{
    CLEANUP_FREE char *parts = xstrdup(relative);
    CLEANUP_FD int at = -1;
    char *rest = parts;
    for (char *part = strsep(&rest, "/"); part; part = strsep(&rest, "/")) {
        int parent = at >= 0 ? at : dir;
        if (!rest && !is_dir) {
            make_file(parent, part);
            return;
        }
        if (mkdirat(parent, part, 0700) < 0 && errno != EEXIST)
            die_errno("mount point %s", relative);
        int next = open_real(parent, part, O_DIRECTORY);
        if (next < 0)
            die_errno("mount point %s", relative);
        if (at >= 0)
            (void)close(at);
        at = next;
    }
}

/* A new file system as a detached mount. option may be NULL. */
static int make_fs(const char *type, const char *const *option, uint64_t attrs)
{
    CLEANUP_FD int fs = fsopen(type, FSOPEN_CLOEXEC);
    if (fs < 0)
        die_errno("fsopen %s", type);
    for (; option && *option; option += 2)
        if (fsconfig(fs, FSCONFIG_SET_STRING, option[0], option[1], 0) < 0)
            die_errno("%s: option %s", type, option[0]);
    if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        die_errno("create %s", type);
    int mount_fd = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned int)attrs);
    if (mount_fd < 0)
        die_errno("mount %s", type);
    return mount_fd;
}

int mount_pool(void)
{
    static const char *const OPTIONS[] = {"mode", "0755", NULL};
    CLEANUP_FD int target = open_real(AT_FDCWD, "/dev", O_DIRECTORY);
    if (target < 0)
        die_errno("open /dev");
    int pool = make_fs("tmpfs", OPTIONS, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    mount_attach(pool, target, "/dev");
    return pool;
}

bool mount_is_of_machine(int proc, const char *name)
{
    struct stat st;
    if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9'))
        return false;
    if (fstatat(proc, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(st.st_mode))
        return false;
    return S_ISDIR(st.st_mode) || (st.st_mode & 0222);
}

static void lock_machine_entries(void)
{
    int fd = open_real(AT_FDCWD, "/proc", O_DIRECTORY);
    CLEANUP_FD int list_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = list_fd < 0 ? NULL : fdopendir(steal_fd(&list_fd));
    CLEANUP_FD int proc = fd;
    if (!list)
        die_errno("open /proc");
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        if (!mount_is_of_machine(proc, entry->d_name))
            continue;
        CLEANUP_FD int target = open_real(proc, entry->d_name, 0);
        if (target < 0)
            die_errno("open /proc/%s", entry->d_name);
        CLEANUP_FD int clone = mount_clone_at(proc, entry->d_name);
        mount_attrs(clone, entry->d_name, false, MOUNT_ATTR_RDONLY, 0);
        mount_attach(clone, target, entry->d_name);
    }
    (void)closedir(list);
}

void mount_proc(bool processes_writable)
{
    CLEANUP_FD int target = open_real(AT_FDCWD, "/proc", O_DIRECTORY);
    if (target < 0)
        die_errno("open /proc");
    uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    CLEANUP_FD int proc =
        make_fs("proc", NULL, attrs | (processes_writable ? 0 : MOUNT_ATTR_RDONLY));
    mount_attach(proc, target, "/proc");
    if (processes_writable)
        lock_machine_entries();
}

void mount_devpts(int target)
{
    static const char *const OPTIONS[] = {"ptmxmode", "0666", "mode", "0620", NULL};
    CLEANUP_FD int pts =
        make_fs("devpts", OPTIONS, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    mount_attach(pts, target, "/dev/pts");
}
