/* Two sockets with one inode number, in two subvolumes of a btrfs.
 * `btrfs_twin use-up DIR N` makes and removes N files, so that later inode numbers are higher.
 * `btrfs_twin connect HOST DIR` makes files in DIR until a socket there with HOST's last name has
 * HOST's inode number, then connects to HOST: prints "twin: " and the byte that its server sends,
 * or the error. `btrfs_twin subvolume DIR` tries to make a subvolume. */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int failed(void)
{
    (void)printf("twin: %s\n", strerrorname_np(errno));
    return 1;
}

/* The inode number that a new file in the working directory gets, and the file is gone again. */
static ino_t next_inode(void)
{
    struct stat st;
    int fd = open("spare", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0 || close(fd) < 0 || unlink("spare") < 0)
        exit(failed());
    return st.st_ino;
}

static struct sockaddr_un name_of(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    return name;
}

static int connect_twin(const char *host, const char *dir)
{
    struct stat st;
    struct stat own;
    struct sockaddr_un theirs = name_of(host);
    struct sockaddr_un ours = name_of(strrchr(host, '/') + 1);
    char byte = 0;
    if (stat(host, &st) < 0 || chdir(dir) < 0)
        return failed();
    while (next_inode() + 1 < st.st_ino)
        continue;
    (void)unlink(ours.sun_path);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server, (const struct sockaddr *)&ours, sizeof ours) < 0 ||
        listen(server, 1) < 0 || stat(ours.sun_path, &own) < 0)
        return failed();
    if (own.st_ino != st.st_ino || own.st_dev == st.st_dev) {
        (void)printf("twin: %lu is not %lu\n", own.st_ino, st.st_ino);
        return 2;
    }
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(client, (const struct sockaddr *)&theirs, sizeof theirs) < 0 ||
        read(client, &byte, 1) != 1)
        return failed();
    (void)printf("twin: %c\n", byte);
    return 0;
}

int main(int argc, char **argv)
{
    struct btrfs_ioctl_vol_args args = {.name = "new"};
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "connect") == 0 && argc == 4)
        return connect_twin(argv[2], argv[3]);
    if (strcmp(argv[1], "subvolume") == 0)
        return ioctl(open(argv[2], O_RDONLY | O_CLOEXEC), BTRFS_IOC_SUBVOL_CREATE,
                     &args) < 0
                   ? failed()
                   : 0;
    if (chdir(argv[2]) < 0)
        return failed();
    for (int i = 0; argc == 4 && i < atoi(argv[3]); i++)
        (void)next_inode();
    return 0;
}
