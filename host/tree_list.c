/*
 * Lists of a walk: see tree_list.h.
 */
#include "tree_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "fs.h"
#include "util.h"

#define MAGIC "efr-tree 2\n"
#define FILE_MAX_BYTES ((size_t)1 << 31)

/* ---- entries ---- */

static void *grow(void *items, size_t count, size_t *cap, size_t item_bytes)
{
    if (count < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 64;
    return xrealloc(items, *cap * item_bytes);
}

struct efr_tree_entry *tree_list_add(struct tree_list *list,
                                     const struct efr_tree_entry *entry,
                                     const struct efr_buf *dir, const char *name)
{
    list->items = grow(list->items, list->count, &list->cap, sizeof(*list->items));
    struct efr_tree_entry *added = &list->items[list->count++];
    *added = *entry;
    added->path_at = list->paths.len;
    efr_buf_append(&list->paths, dir->data, dir->len);
    efr_buf_puts(&list->paths, name);
    added->path_len = (uint32_t)(list->paths.len - added->path_at);
    return added;
}

/* A slash comes before every other byte, so that a directory's content follows it at once. */
static int rank(char c)
{
    return c == '/' ? 0 : (int)(unsigned char)c + 1;
}

int tree_list_compare(const struct tree_list *a, size_t a_at, const struct tree_list *b,
                      size_t b_at)
{
    if (a_at >= a->count)
        return 1;
    if (b_at >= b->count)
        return -1;
    const struct efr_tree_entry *one = &a->items[a_at], *other = &b->items[b_at];
    const char *p = a->paths.data + one->path_at, *q = b->paths.data + other->path_at;
    size_t len = one->path_len < other->path_len ? one->path_len : other->path_len;
    if (memcmp(p, q, len) != 0) {
        size_t i = 0;
        while (p[i] == q[i])
            i++;
        return rank(p[i]) - rank(q[i]);
    }
    return (one->path_len > other->path_len) - (one->path_len < other->path_len);
}

void tree_list_finish(struct tree_list *list)
{
    free(list->items);
    efr_buf_finish(&list->paths);
    *list = (struct tree_list){0};
}

/* ---- the file ---- */

struct head {
    char magic[sizeof(MAGIC) - 1];
    uint32_t entry_bytes;
    uint64_t tag_bytes;
    uint64_t count;
    uint64_t path_bytes;
};

static struct head head_of(const struct tree_list *list, const char *tag)
{
    struct head head;
    memset(&head, 0, sizeof(head)); /* its gaps, too */
    memcpy(head.magic, MAGIC, sizeof(head.magic));
    head.entry_bytes = sizeof(*list->items);
    head.tag_bytes = strlen(tag);
    head.count = list->count;
    head.path_bytes = list->paths.len;
    return head;
}

int tree_list_save(const struct tree_list *list, const char *path, const char *tag,
                   struct efr_err *err)
{
    struct efr_buf out;
    efr_buf_init(&out, false);
    struct head head = head_of(list, tag);
    efr_buf_append(&out, &head, sizeof(head));
    efr_buf_append(&out, tag, strlen(tag));
    efr_buf_append(&out, list->items, list->count * sizeof(*list->items));
    efr_buf_append(&out, list->paths.data, list->paths.len);
    struct efr_fs_write how = {
        .data = out.data, .len_bytes = out.len, .mode = 0600, .real = true};
    int rc = efr_fs_write(path, &how, err);
    efr_buf_finish(&out);
    return rc;
}

/* Whether the entries name places inside the paths. */
static bool is_sound(const struct tree_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct efr_tree_entry *entry = &list->items[i];
        if (entry->path_len == 0 || entry->path_at > list->paths.len ||
            entry->path_len > list->paths.len - entry->path_at)
            return false;
    }
    return true;
}

static int take(struct tree_list *list, const struct efr_buf *in, const char *tag)
{
    struct head head, want;
    if (in->len < sizeof(head))
        return -1;
    memcpy(&head, in->data, sizeof(head));
    *list = (struct tree_list){.count = head.count, .cap = head.count};
    list->paths.len = head.path_bytes;
    want = head_of(list, tag);
    list->paths.len = 0;
    size_t rest = in->len - sizeof(head), tag_bytes = strlen(tag);
    if (memcmp(&head, &want, sizeof(head)) != 0 ||
        head.count > rest / sizeof(*list->items) || head.path_bytes > rest ||
        rest != tag_bytes + head.count * sizeof(*list->items) + head.path_bytes)
        return -1;
    const char *at = in->data + sizeof(head);
    if (memcmp(at, tag, tag_bytes) != 0)
        return -1;
    at += tag_bytes;
    size_t bytes = head.count * sizeof(*list->items);
    if (bytes > 0)
        list->items = xmemdup(at, bytes);
    efr_buf_append(&list->paths, at + bytes, head.path_bytes);
    return is_sound(list) ? 0 : -1;
}

int tree_list_load(struct tree_list *list, const char *path, const char *tag,
                   struct efr_err *err)
{
    struct efr_buf in;
    efr_buf_init(&in, false);
    int rc = efr_fs_read(path, FILE_MAX_BYTES, true, &in, err);
    if (rc == 0 && take(list, &in, tag) != 0) {
        tree_list_finish(list);
        rc = efr_err_set(err, "EFR_TREE_STALE", "%s does not fit", path);
    }
    efr_buf_finish(&in);
    return rc;
}

/* ---- names ---- */

void tree_names_add(struct tree_names *names, const char *name)
{
    names->items = grow(names->items, names->count, &names->cap, sizeof(*names->items));
    names->items[names->count++] = names->text.len;
    efr_buf_append(&names->text, name, strlen(name) + 1);
}

const char *tree_names_at(const struct tree_names *names, size_t at)
{
    return names->text.data + names->items[at];
}

static int compare_names(const void *a, const void *b, void *text)
{
    return strcmp((const char *)text + *(const size_t *)a,
                  (const char *)text + *(const size_t *)b);
}

void tree_names_sort(struct tree_names *names)
{
    if (names->count > 1)
        qsort_r(names->items, names->count, sizeof(*names->items), compare_names,
                names->text.data);
}

bool tree_names_has(const struct tree_names *names, const char *name)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, tree_names_at(names, middle));
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

void tree_names_finish(struct tree_names *names)
{
    free(names->items);
    efr_buf_finish(&names->text);
    *names = (struct tree_names){0};
}

/* ---- sets ---- */

/* The place of the path, or where it belongs. */
static size_t place(const struct tree_set *set, const char *path, bool *is_there)
{
    size_t low = 0, high = set->count;
    *is_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(path, set->items[middle]);
        if (order == 0) {
            *is_there = true;
            return middle;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void tree_set_add(struct tree_set *set, const char *path)
{
    bool is_there;
    size_t at = place(set, path, &is_there);
    if (is_there)
        return;
    set->items = grow(set->items, set->count, &set->cap, sizeof(*set->items));
    memmove(set->items + at + 1, set->items + at,
            (set->count - at) * sizeof(*set->items));
    set->items[at] = xstrdup(path);
    set->count++;
}

bool tree_set_has(const struct tree_set *set, const char *path)
{
    bool is_there;
    (void)place(set, path, &is_there);
    return is_there;
}

void tree_set_finish(struct tree_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->items[i]);
    free(set->items);
    *set = (struct tree_set){0};
}
