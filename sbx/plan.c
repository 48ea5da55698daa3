/* See plan.h. The format is a list of records: a keyword and its fixed number of fields, each
 * ended by a NUL byte. There is no default for anything that matters: a missing or repeated
 * keyword is an error, as is every byte after `end`. */
#include "plan.h"

#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MOUNTS 1024
#define MAX_LIST 4096
#define MAX_PATH 4095
#define MAX_NAME 255

struct reader {
    const char *at;
    const char *end;
    char *message;
    size_t message_bytes;
};

static int refuse(struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(r->message, r->message_bytes, format, args);
    va_end(args);
    return -1;
}

static const char *next_field(struct reader *r)
{
    if (r->at >= r->end)
        return NULL;
    const char *field = r->at;
    const char *nul = memchr(field, '\0', (size_t)(r->end - field));
    if (!nul)
        return NULL;
    r->at = nul + 1;
    return field;
}

/* Absolute and normal: no empty, "." or ".." part, no slash at the end. */
static bool path_is_normal(const char *path)
{
    if (path[0] != '/' || strlen(path) > MAX_PATH)
        return false;
    if (path[1] == '\0')
        return true;
    const char *part = path + 1;
    for (;;) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        if (part[len] == '\0')
            return true;
        part += len + 1;
    }
}

bool path_below(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len == 1)
        return path[1] != '\0';
    return strncmp(path, dir, len) == 0 && path[len] == '/';
}

static bool at_or_below(const char *path, const char *dir)
{
    return strcmp(path, dir) == 0 || path_below(path, dir);
}

static unsigned int depth(const char *path)
{
    unsigned int count = 0;
    for (const char *c = path; *c; c++)
        count += *c == '/';
    return path[1] == '\0' ? 0 : count;
}

static int add(struct reader *r, struct plan_list *list, const char *text)
{
    if (list->count >= MAX_LIST)
        return refuse(r, "more than %d entries of one kind", MAX_LIST);
    if ((list->count & (list->count + 1)) == 0)
        list->items = xrealloc(list->items, (2 * list->count + 2) * sizeof *list->items);
    list->items[list->count++] = text;
    list->items[list->count] = NULL;
    return 0;
}

static int set_once(struct reader *r, const char **place, const char *what,
                    const char *value)
{
    if (*place)
        return refuse(r, "%s is given twice", what);
    *place = value;
    return 0;
}

static int set_path(struct reader *r, const char **place, const char *what,
                    const char *path)
{
    if (!path_is_normal(path))
        return refuse(r, "%s is not an absolute, normal path: %.200s", what, path);
    return set_once(r, place, what, path);
}

static int on_nonce(struct reader *r, struct plan *plan, const char *const *field)
{
    const char *hex = field[0];
    if (strlen(hex) != PLAN_NONCE_LEN ||
        strspn(hex, "0123456789abcdef") != PLAN_NONCE_LEN)
        return refuse(r, "nonce is not 32 hex digits");
    return set_once(r, &plan->nonce, "nonce", hex);
}

static int on_uid(struct reader *r, struct plan *plan, const char *const *field)
{
    char *rest = NULL;
    errno = 0;
    unsigned long value = strtoul(field[0], &rest, 10);
    if (field[0][0] < '0' || field[0][0] > '9' || *rest || errno || value > 0xfffffffeUL)
        return refuse(r, "uid is not a number");
    plan->uid = (unsigned int)value;
    return 0;
}

static int on_cwd(struct reader *r, struct plan *plan, const char *const *field)
{
    return set_path(r, &plan->cwd, "cwd", field[0]);
}

static int on_tmp(struct reader *r, struct plan *plan, const char *const *field)
{
    return set_path(r, &plan->tmp, "tmp", field[0]);
}

static int on_assets(struct reader *r, struct plan *plan, const char *const *field)
{
    return set_path(r, &plan->assets, "assets", field[0]);
}

static int on_bwrap(struct reader *r, struct plan *plan, const char *const *field)
{
    return set_path(r, &plan->bwrap, "bwrap", field[0]);
}

/* One part of a path: no slash, not "." or "..". */
static bool name_is_plain(const char *name)
{
    return name[0] && strlen(name) <= MAX_NAME && !strchr(name, '/') &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int on_layers(struct reader *r, struct plan *plan, const char *const *field)
{
    if (!name_is_plain(field[1]))
        return refuse(r, "layers: not a plain name: %.200s", field[1]);
    plan->layers_name = field[1];
    return set_path(r, &plan->layers, "layers", field[0]);
}

static int on_cgroup(struct reader *r, struct plan *plan, const char *const *field)
{
    if (!name_is_plain(field[1]))
        return refuse(r, "cgroup: not a plain name: %.200s", field[1]);
    plan->cgroup_name = field[1];
    return set_path(r, &plan->cgroup, "cgroup", field[0]);
}

static int on_replay(struct reader *r, struct plan *plan, const char *const *field)
{
    return set_path(r, &plan->replay, "replay", field[0]);
}

static int on_records(struct reader *r, struct plan *plan, const char *const *field)
{
    if (strcmp(field[0], "1") != 0)
        return refuse(r, "records is not 1");
    plan->records = true;
    return 0;
}

/* The kernel's own trees are made new in every call, so no entry may name them. */
static bool in_kernel_tree(const char *path)
{
    return at_or_below(path, "/proc") || at_or_below(path, "/dev") ||
           at_or_below(path, "/sys");
}

static int check_place(struct reader *r, const struct plan *plan,
                       const struct plan_mount *m)
{
    if (!path_is_normal(m->path))
        return refuse(r, "not an absolute, normal path: %.200s", m->path);
    if (m->path[1] == '\0')
        return refuse(r, "/ cannot be a write root, mask or floor");
    if (in_kernel_tree(m->path))
        return refuse(r, "%.200s lies in a tree of the kernel", m->path);
    bool is_tmp = strcmp(m->path, "/tmp") == 0 || strcmp(m->path, "/var/tmp") == 0;
    if ((m->kind == MOUNT_PRIVATE) != is_tmp)
        return refuse(r, "%.200s: only /tmp and /var/tmp are private", m->path);
    if (plan->mount_count == 0)
        return 0;
    const struct plan_mount *before = &plan->mounts[plan->mount_count - 1];
    unsigned int was = depth(before->path);
    unsigned int is = depth(m->path);
    if (is < was || (is == was && m->kind < before->kind))
        return refuse(r, "mounts are not sorted at %.200s", m->path);
    return 0;
}

static int on_mount(struct reader *r, struct plan *plan, enum mount_kind kind,
                    const char *path)
{
    struct plan_mount m = {.kind = kind, .path = path};
    if (check_place(r, plan, &m) < 0)
        return -1;
    if (plan->mount_count >= MAX_MOUNTS)
        return refuse(r, "more than %d mounts", MAX_MOUNTS);
    if (kind == MOUNT_RUNTIME && set_once(r, &plan->runtime, "runtime", path) < 0)
        return -1;
    plan->mounts[plan->mount_count++] = m;
    return 0;
}

static int on_mask(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_MASK, field[0]);
}

static int on_private(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_PRIVATE, field[0]);
}

static int on_runtime(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_RUNTIME, field[0]);
}

static int on_overlay(struct reader *r, struct plan *plan, const char *const *field)
{
    bool kept = strcmp(field[1], "tmp") != 0;
    if (!plan->layers)
        return refuse(r, "overlay before layers");
    if (!name_is_plain(field[1]))
        return refuse(r, "overlay: not a plain name: %.200s", field[1]);
    if (on_mount(r, plan, MOUNT_OVERLAY, field[0]) < 0)
        return -1;
    if (kept)
        plan->mounts[plan->mount_count - 1].layer = field[1];
    plan->keeps_layers |= kept;
    return 0;
}

static int on_root(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_ROOT, field[0]);
}

static int on_pin(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_PIN, field[0]);
}

static int on_floor(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_FLOOR, field[0]);
}

static int on_grant(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_GRANT, field[0]);
}

static int on_socket(struct reader *r, struct plan *plan, const char *const *field)
{
    return on_mount(r, plan, MOUNT_SOCKET, field[0]);
}

/* Terminals and shared memory are the call's own. */
static int on_device(struct reader *r, struct plan *plan, const char *const *field)
{
    const char *path = field[0];
    if (!path_is_normal(path) || !path_below(path, "/dev"))
        return refuse(r, "device: not below /dev: %.200s", path);
    if (at_or_below(path, "/dev/pts") || at_or_below(path, "/dev/shm"))
        return refuse(r, "device: the call has its own: %.200s", path);
    return add(r, &plan->devices, path);
}

static int on_network(struct reader *r, struct plan *plan, const char *const *field)
{
    if (strcmp(field[0], "host") != 0 || plan->host_network)
        return refuse(r, "network is not host, or given twice");
    plan->host_network = true;
    return 0;
}

static int on_userns(struct reader *r, struct plan *plan, const char *const *field)
{
    if (strcmp(field[0], "1") != 0 || plan->userns)
        return refuse(r, "userns is not 1, or given twice");
    plan->userns = true;
    return 0;
}

static int on_limit(struct reader *r, struct plan *plan, const char *const *field)
{
    const struct {
        const char *name;
        uint64_t *place;
    } limits[] = {
        {"processes", &plan->max_processes},
        {"memory_bytes", &plan->max_memory_bytes},
        {"file_bytes", &plan->max_file_bytes},
        {"open_files", &plan->max_open_files},
    };
    char *rest = NULL;
    errno = 0;
    unsigned long long value = strtoull(field[1], &rest, 10);
    if (field[1][0] < '1' || field[1][0] > '9' || *rest || errno)
        return refuse(r, "limit: not a number above 0: %.60s", field[1]);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (strcmp(limits[i].name, field[0]) != 0)
            continue;
        if (*limits[i].place)
            return refuse(r, "limit %s is given twice", field[0]);
        *limits[i].place = value;
        return 0;
    }
    return refuse(r, "unknown limit: %.60s", field[0]);
}

static int on_pass(struct reader *r, struct plan *plan, const char *const *field)
{
    return add(r, &plan->pass, field[0]);
}

static int on_unset(struct reader *r, struct plan *plan, const char *const *field)
{
    return add(r, &plan->unset, field[0]);
}

static int on_secret(struct reader *r, struct plan *plan, const char *const *field)
{
    return add(r, &plan->secret, field[0]);
}

static int on_keep(struct reader *r, struct plan *plan, const char *const *field)
{
    return add(r, &plan->keep, field[0]);
}

static int on_set(struct reader *r, struct plan *plan, const char *const *field)
{
    if (field[0][0] == '\0' || strchr(field[0], '='))
        return refuse(r, "set: not a variable name: %.200s", field[0]);
    if (add(r, &plan->set, field[0]) < 0)
        return -1;
    return add(r, &plan->set, field[1]);
}

static int on_move(struct reader *r, struct plan *plan, const char *const *field)
{
    if (field[0][0] == '\0' || strchr(field[0], '='))
        return refuse(r, "move: not a variable name: %.200s", field[0]);
    if (add(r, &plan->move, field[0]) < 0)
        return -1;
    return add(r, &plan->move, field[1]);
}

static int on_default(struct reader *r, struct plan *plan, const char *const *field)
{
    if (field[0][0] == '\0' || strchr(field[0], '='))
        return refuse(r, "default: not a variable name: %.200s", field[0]);
    if (add(r, &plan->defaults, field[0]) < 0)
        return -1;
    return add(r, &plan->defaults, field[1]);
}

static int on_arg(struct reader *r, struct plan *plan, const char *const *field)
{
    return add(r, &plan->argv, field[0]);
}

static const struct keyword {
    const char *name;
    int fields;
    int (*take)(struct reader *r, struct plan *plan, const char *const *field);
} KEYWORDS[] = {
    {"nonce", 1, on_nonce},     {"uid", 1, on_uid},         {"cwd", 1, on_cwd},
    {"tmp", 1, on_tmp},         {"assets", 1, on_assets},   {"records", 1, on_records},
    {"mask", 1, on_mask},       {"private", 1, on_private}, {"runtime", 1, on_runtime},
    {"root", 1, on_root},       {"pin", 1, on_pin},         {"floor", 1, on_floor},
    {"unset", 1, on_unset},     {"secret", 1, on_secret},   {"keep", 1, on_keep},
    {"set", 2, on_set},         {"arg", 1, on_arg},         {"pass", 1, on_pass},
    {"grant", 1, on_grant},     {"socket", 1, on_socket},   {"device", 1, on_device},
    {"network", 1, on_network}, {"userns", 1, on_userns},   {"limit", 2, on_limit},
    {"replay", 1, on_replay},   {"layers", 2, on_layers},   {"move", 2, on_move},
    {"overlay", 2, on_overlay}, {"default", 2, on_default}, {"bwrap", 1, on_bwrap},
    {"cgroup", 2, on_cgroup},
};

static const struct keyword *find_keyword(const char *name)
{
    for (size_t i = 0; i < sizeof KEYWORDS / sizeof *KEYWORDS; i++)
        if (strcmp(KEYWORDS[i].name, name) == 0)
            return &KEYWORDS[i];
    return NULL;
}

static int read_records(struct reader *r, struct plan *plan)
{
    for (;;) {
        const char *name = next_field(r);
        if (!name)
            return refuse(r, "the plan has no end");
        if (strcmp(name, "end") == 0)
            break;
        const struct keyword *keyword = find_keyword(name);
        if (!keyword)
            return refuse(r, "unknown keyword: %.60s", name);
        const char *field[2] = {NULL, NULL};
        for (int i = 0; i < keyword->fields; i++) {
            field[i] = next_field(r);
            if (!field[i])
                return refuse(r, "%s has too few fields", name);
        }
        if (keyword->take(r, plan, field) < 0)
            return -1;
    }
    return r->at == r->end ? 0 : refuse(r, "bytes after the end of the plan");
}

static int check_complete(struct reader *r, const struct plan *plan)
{
    if (!plan->nonce || !plan->cwd || !plan->tmp || !plan->runtime)
        return refuse(r, "nonce, cwd, tmp or runtime is missing");
    if (plan->replay && !plan->assets)
        return refuse(r, "replay without assets");
    if (plan->max_memory_bytes && !plan->cgroup)
        return refuse(r, "a limit of memory without a cgroup");
    if (plan->uid == ~0U)
        return refuse(r, "uid is missing");
    if (plan->argv.count == 0 || plan->argv.items[0][0] == '\0')
        return refuse(r, "no command");
    size_t private_count = 0;
    for (size_t i = 0; i < plan->mount_count; i++)
        private_count += plan->mounts[i].kind == MOUNT_PRIVATE;
    if (private_count != 2)
        return refuse(r, "/tmp and /var/tmp are not both private");
    return 0;
}

int plan_parse(struct plan *plan, const char *bytes, size_t len_bytes, char *message,
               size_t message_bytes)
{
    struct reader r = {bytes, bytes + len_bytes, message, message_bytes};
    memset(plan, 0, sizeof *plan);
    plan->uid = ~0U;
    plan->mounts = xcalloc(MAX_MOUNTS, sizeof *plan->mounts);
    if (len_bytes > PLAN_MAX_BYTES)
        return refuse(&r, "the plan is larger than %d bytes", PLAN_MAX_BYTES);
    const char *magic = next_field(&r);
    const char *version = next_field(&r);
    if (!magic || strcmp(magic, "efr-plan") != 0)
        return refuse(&r, "not a plan");
    if (!version || strcmp(version, "1") != 0)
        return refuse(&r, "this launcher reads plans of version 1");
    if (read_records(&r, plan) < 0)
        return -1;
    return check_complete(&r, plan);
}

int plan_add(struct plan *plan, enum mount_kind kind, const char *path)
{
    if (plan->mount_count >= MAX_MOUNTS || plan->owned.count >= MAX_LIST)
        return -1;
    char *copy = xstrdup(path);
    struct reader none = {0};
    (void)add(&none, &plan->owned, copy);
    size_t at = plan->mount_count;
    while (at > 0 && depth(plan->mounts[at - 1].path) > depth(path))
        at--;
    memmove(&plan->mounts[at + 1], &plan->mounts[at],
            (plan->mount_count - at) * sizeof *plan->mounts);
    plan->mounts[at] = (struct plan_mount){.kind = kind, .path = copy};
    plan->mount_count++;
    return 0;
}

void plan_finish(struct plan *plan)
{
    free(plan->mounts);
    free(plan->unset.items);
    free(plan->secret.items);
    free(plan->keep.items);
    free(plan->set.items);
    free(plan->move.items);
    free(plan->defaults.items);
    free(plan->argv.items);
    free(plan->pass.items);
    free(plan->devices.items);
    for (size_t i = 0; i < plan->owned.count; i++)
        free((char *)(uintptr_t)plan->owned.items[i]);
    free(plan->owned.items);
    memset(plan, 0, sizeof *plan);
}
