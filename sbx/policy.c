/* See policy.h. */
#include "policy.h"

#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAGIC 0x65667269U /* "efri" */
#define MAX_BYTES (16 * 1024 * 1024)

/* The parts of the file: this head, the entries with their paths, the terminal, the
 * environment, the plan. Every string ends with a NUL byte. */
struct head {
    uint32_t magic;
    uint32_t size;
    struct policy policy; /* its pointers mean nothing here */
    uint32_t variables;
    bool has_terminal;
};

struct writer {
    char *bytes;
    size_t used;
};

struct reader {
    char *bytes;
    size_t len;
    size_t at;
};

void policy_namespaces(uint64_t *numbers)
{
    static const char *const NAMES[POLICY_NAMESPACES] = {"user", "mnt",    "pid", "ipc",
                                                         "uts",  "cgroup", "net"};
    for (size_t i = 0; i < POLICY_NAMESPACES; i++) {
        char path[40];
        struct stat st;
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", NAMES[i]);
        if (stat(path, &st) < 0)
            die_errno("%s", path);
        numbers[i] = st.st_ino;
    }
}

static void put(struct writer *w, const void *bytes, size_t len)
{
    w->bytes = xrealloc(w->bytes, w->used + len);
    memcpy(w->bytes + w->used, bytes, len);
    w->used += len;
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text) + 1);
}

int policy_write(const struct policy *policy)
{
    struct head head = {.magic = MAGIC, .size = sizeof head, .policy = *policy};
    head.has_terminal = policy->init.terminal != NULL;
    for (char *const *variable = policy->environment; *variable; variable++)
        head.variables++;
    struct writer w = {0};
    put(&w, &head, sizeof head);
    for (size_t i = 0; i < policy->entry_count; i++) {
        put(&w, &policy->entries[i], sizeof policy->entries[i]);
        put_text(&w, policy->entries[i].path);
    }
    put_text(&w, head.has_terminal ? policy->init.terminal : "");
    for (char *const *variable = policy->environment; *variable; variable++)
        put_text(&w, *variable);
    put(&w, policy->plan_bytes, policy->plan_len);
    CLEANUP_FREE char *bytes = w.bytes;
    CLEANUP_FD int fd = memfd_create("efr-policy", MFD_CLOEXEC);
    if (w.used > MAX_BYTES)
        die("the environment is larger than %d bytes", MAX_BYTES);
    if (fd < 0 || write_all(fd, bytes, w.used) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        die_errno("policy");
    return steal_fd(&fd);
}

static void *take(struct reader *r, size_t len)
{
    if (r->len - r->at < len)
        die("the policy is cut off");
    void *bytes = r->bytes + r->at;
    r->at += len;
    return bytes;
}

static char *take_text(struct reader *r)
{
    size_t len = strnlen(r->bytes + r->at, r->len - r->at);
    return take(r, len + 1);
}

void policy_read(struct policy *policy, int fd)
{
    struct head head;
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES)
        die("descriptor %d holds no policy", fd);
    struct reader r = {.bytes = xcalloc(1, (size_t)st.st_size)};
    ssize_t len = read_full(fd, r.bytes, (size_t)st.st_size);
    r.len = len < 0 ? 0 : (size_t)len;
    memcpy(&head, take(&r, sizeof head), sizeof head);
    if (head.magic != MAGIC || head.size != sizeof head)
        die("descriptor %d holds no policy", fd);
    *policy = head.policy;
    policy->entries = xcalloc(policy->entry_count, sizeof *policy->entries);
    for (size_t i = 0; i < policy->entry_count; i++) {
        memcpy(&policy->entries[i], take(&r, sizeof *policy->entries),
               sizeof *policy->entries);
        policy->entries[i].path = take_text(&r);
    }
    const char *terminal = take_text(&r);
    policy->init.terminal = head.has_terminal ? terminal : NULL;
    policy->environment = xcalloc(head.variables + 1U, sizeof *policy->environment);
    for (uint32_t i = 0; i < head.variables; i++)
        policy->environment[i] = take_text(&r);
    policy->plan_bytes = take(&r, policy->plan_len);
    (void)close(fd);
}
