/*
 * The lists that a walk of a tree makes: names of one directory, entries in the order of their
 * paths, sets of paths. Plain memory; knows nothing of the disk but the file that keeps a list.
 * Any thread, one at a time.
 */
#ifndef EFR_TREE_LIST_H
#define EFR_TREE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "tree.h"

/* Entries; a directory stands right before what lies in it. Zero is empty. */
struct tree_list {
    struct efr_tree_entry *items; /* owned */
    size_t count;
    size_t cap;
    struct efr_buf paths; /* all paths, one after another */
};

/* Adds an entry for a name below dir (which ends in a slash or is empty). Returns its place,
 * borrowed until the next one is added. */
struct efr_tree_entry *tree_list_add(struct tree_list *list,
                                     const struct efr_tree_entry *entry,
                                     const struct efr_buf *dir, const char *name);

/* The order of two entries by their paths: below 0 when a comes first. The end of a list comes
 * last; not both may be at the end. */
int tree_list_compare(const struct tree_list *a, size_t a_at, const struct tree_list *b,
                      size_t b_at);

/* A private file with the list and the tag. Returns 0 or -1 with *err set. */
int tree_list_save(const struct tree_list *list, const char *path, const char *tag,
                   struct efr_err *err);
int tree_list_load(struct tree_list *list, const char *path, const char *tag,
                   struct efr_err *err);
void tree_list_finish(struct tree_list *list);

/* The names of a directory. */
struct tree_names {
    size_t *items; /* owned: places in text */
    size_t count;
    size_t cap;
    struct efr_buf text;
};

void tree_names_add(struct tree_names *names, const char *name);
void tree_names_sort(struct tree_names *names);
const char *tree_names_at(const struct tree_names *names, size_t at);

/* Whether a sorted list holds the name. */
bool tree_names_has(const struct tree_names *names, const char *name);
void tree_names_finish(struct tree_names *names);

/* A set of paths; few enough to be kept sorted. */
struct tree_set {
    char **items; /* owned */
    size_t count;
    size_t cap;
};

void tree_set_add(struct tree_set *set, const char *path);
bool tree_set_has(const struct tree_set *set, const char *path);
void tree_set_finish(struct tree_set *set);

#endif
