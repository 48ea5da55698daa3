/* A bubblewrap that does not do what it was told: leaves out or changes one option, then runs the
 * real one. Which stands in its own name: bwrap-OPTION leaves OPTION out, bwrap-mask the masks
 * of directories, bwrap-proc leaves /proc writable, bwrap-writable binds / writable, bwrap-other
 * shows /usr in place of each read-only descriptor, bwrap-moved puts each of them on /tmp. And
 * bwrap-stuck is one whose child waits for it for ever, as the real one's does in its first moment.
 * For tests/sbx/bwrap.sh: pid 1 of the call has to see it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_BYTES 1048576

static char in[MAX_BYTES];
static int out;

static void put(const char *text)
{
    if (write(out, text, strlen(text) + 1) < 0)
        _exit(99);
}

/* How many fields follow an option. */
static int values_of(const char *option)
{
    static const char *const TWO[] = {"--ro-bind",  "--ro-bind-fd",   "--bind-fd",
                                      "--dev-bind", "--ro-bind-data", NULL};
    static const char *const ONE[] = {
        "--tmpfs", "--perms", "--remount-ro", "--proc",           "--dev",
        "--dir",   "--chdir", "--cap-drop",   "--json-status-fd", NULL};
    for (int i = 0; TWO[i]; i++)
        if (strcmp(TWO[i], option) == 0)
            return 2;
    for (int i = 0; ONE[i]; i++)
        if (strcmp(ONE[i], option) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    int from = argc > 2 ? atoi(argv[2]) : -1;
    if (len < 0 || from < 0)
        return 98;
    self[len] = '\0';
    const char *name = strrchr(self, '-') ? strstr(self, "bwrap-") + 6 : "";
    if (strcmp(name, "stuck") == 0) {
        if (fork() == 0 && write(1, "stuck", 5) < 0)
            return 95;
        for (;;)
            pause();
    }
    ssize_t size = read(from, in, sizeof in);
    const char *perms = NULL; /* goes with the option that follows */
    out = memfd_create("liar", 0);
    for (char *at = in; at < in + size;) {
        const char *field[3] = {at, "", ""};
        int count = 1 + values_of(at);
        for (int i = 0; i < count; i++, at += strlen(at) + 1)
            field[i] = at;
        if (strcmp(field[0], "--perms") == 0) {
            perms = field[1];
            continue;
        }
        const char *mode = perms;
        perms = NULL;
        if (strcmp(field[0], name) == 0 ||
            (strcmp(name, "proc") == 0 && strcmp(field[0], "--remount-ro") == 0 &&
             strcmp(field[1], "/proc") == 0))
            continue;
        if (strcmp(name, "mask") == 0 && mode && strcmp(mode, "0500") == 0 &&
            strcmp(field[0], "--tmpfs") == 0)
            continue;
        if (strcmp(name, "mask") == 0 && strcmp(field[0], "--remount-ro") == 0 &&
            strcmp(field[1], "/proc") != 0 && strcmp(field[1], "/dev") != 0)
            continue;
        if (mode) {
            put("--perms");
            put(mode);
        }
        if (strcmp(name, "writable") == 0 && strcmp(field[0], "--ro-bind") == 0)
            field[0] = "--bind";
        if (strcmp(field[0], "--ro-bind-fd") == 0 && strcmp(name, "other") == 0) {
            field[0] = "--ro-bind";
            field[1] = "/usr";
        }
        if (strcmp(field[0], "--ro-bind-fd") == 0 && strcmp(name, "moved") == 0)
            field[2] = "/tmp";
        for (int i = 0; i < count; i++)
            put(field[i]);
    }
    if (lseek(out, 0, SEEK_SET) < 0)
        return 97;
    char number[16];
    snprintf(number, sizeof number, "%d", out);
    argv[2] = number;
    execv("/usr/bin/bwrap", argv);
    return 96;
}
