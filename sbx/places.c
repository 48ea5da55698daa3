/* See places.h. */
#include "places.h"

#include "util.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define OCTAL_DIGITS 3

uint64_t mount_id_of(int fd)
{
    struct statx info;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) < 0 ||
        !(info.stx_mask & STATX_MNT_ID))
        return 0;
    return info.stx_mnt_id;
}

void place_add(struct mount_result *result, int fd, enum place_kind kind,
               const char *path)
{
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        die_errno("stat %s", path);
    struct mount_place place = {.id = mount_id_of(fd),
                                .kind = kind,
                                .subvolumes = fs.f_type == BTRFS_SUPER_MAGIC,
                                .root_dev = st.st_dev};
    if (place.id == 0)
        die("%s: this kernel does not number mounts (Linux 5.8 does)", path);
    size_t count = result->place_count;
    if ((count & (count + 1)) == 0)
        result->places =
            xrealloc(result->places, (2 * count + 2) * sizeof *result->places);
    result->places[result->place_count++] = place;
}

void place_writable(struct mount_result *result, const char *path, enum place_kind kind)
{
    int fd = open_real(AT_FDCWD, path, 0);
    if (fd < 0)
        die_errno("open %s again", path);
    result->write_fds[result->write_count++] = fd;
    place_add(result, fd, kind, path);
}

/* The kernel writes space, tab, newline and backslash as three octal digits. In place. */
static void decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; to++) {
        if (at[0] == '\\' && strspn(at + 1, "01234567") >= OCTAL_DIGITS) {
            char digits[OCTAL_DIGITS + 1] = {at[1], at[2], at[3], '\0'};
            *to = (char)strtol(digits, NULL, 8);
            at += OCTAL_DIGITS + 1;
        } else {
            *to = *at++;
        }
    }
    *to = '\0';
}

static bool is_place(const struct mount_result *result, uint64_t id)
{
    for (size_t i = 0; i < result->place_count; i++)
        if (result->places[i].id == id)
            return true;
    return false;
}

static bool is_below_dev(int fd, const char *path)
{
    struct stat st;
    if (!path_below(path, "/dev") || fstat(fd, &st) < 0)
        return false;
    return S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode) || strcmp(path, "/dev/pts") == 0;
}

void mount_table(void (*take)(void *context, const struct mount_line *line),
                 void *context)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    CLEANUP_FREE char *text = NULL;
    size_t room = 0;
    if (!file)
        die_errno("mountinfo");
    while (getline(&text, &room, file) > 0) {
        char *rest = text;
        char *field[6];
        for (size_t i = 0; i < 6; i++)
            field[i] = strsep(&rest, " ");
        if (!rest)
            die("mountinfo: a line that is none");
        decode(field[4]);
        struct mount_line line = {strtoull(field[0], NULL, 10), field[4], false};
        line.readonly = strcmp(field[5], "ro") == 0 || strncmp(field[5], "ro,", 3) == 0;
        take(context, &line);
    }
    if (ferror(file))
        die("mountinfo cannot be read");
    (void)fclose(file);
}

struct rest {
    const struct mount_result *result;
    bool proc_writable;
};

/* A mount that lies below another one, or where this user gets to no more, is out of reach. */
static void check_line(void *context, const struct mount_line *line)
{
    const struct rest *rest = context;
    if (line->readonly || is_place(rest->result, line->id))
        return;
    CLEANUP_FD int fd = open_real(AT_FDCWD, line->path, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        return;
    if (fd < 0)
        die_errno("open %s", line->path);
    if (mount_id_of(fd) != line->id || is_below_dev(fd, line->path) ||
        (rest->proc_writable && strcmp(line->path, "/proc") == 0))
        return;
    die("%s is writable, and the plan does not say so", line->path);
}

void places_check_rest(const struct mount_result *result, bool proc_writable)
{
    struct rest rest = {result, proc_writable};
    mount_table(check_line, &rest);
}
