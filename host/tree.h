/*
 * A directory tree held open and walked by descriptors: what lies in it, compared with the walk
 * before, and whether anything happened since. No link is followed and no mount is entered. Knows
 * names as bytes and what stat says of them; which of them matter is the caller's business.
 * One walk at a time may run in another thread; all else on the loop thread.
 */
#ifndef EFR_TREE_H
#define EFR_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct efr_err;
struct efr_tree;

/* Why a place was not entered or a file is not to be read. */
enum efr_tree_mark {
    EFR_TREE_OK,
    EFR_TREE_SPECIAL,    /* a socket, a fifo, a device */
    EFR_TREE_UNREADABLE, /* this user may not read it */
    EFR_TREE_BIG,        /* longer than the limit */
    EFR_TREE_NESTED,     /* a directory with a repository of its own */
    EFR_TREE_MOUNT,      /* another file system begins there */
    EFR_TREE_PASSED,     /* the caller did not want it entered */
    EFR_TREE_UNREAD,     /* it could not be read when its content was wanted */
    EFR_TREE_OPEN,       /* a name of the list that the caller has not decided */
};

struct efr_tree_entry {
    size_t path_at; /* in the paths of its list */
    uint32_t path_len;
    uint32_t mode; /* type and permissions */
    uint32_t uid;
    uint32_t gid;
    uint64_t size;
    uint64_t ino;
    int64_t ctime_ns;
    uint8_t mark;   /* enum efr_tree_mark */
    uint8_t unsure; /* changed so lately that the next walk must not trust its times */
    uint8_t empty;  /* a directory without entries */
};

struct efr_tree_limits {
    uint64_t max_bytes; /* of a file */
    size_t max_entries; /* more is EFR_TREE_TOO_MANY */
    bool watch;         /* also watch the directories that are walked */
};

struct efr_tree_sums {
    size_t entries;
    size_t linked; /* files with more than one name */
    bool watched;  /* every walked directory is watched */
    bool remote; /* a network or user space file system: times and events prove nothing */
};

/* Opens the directory; no component may be a link. NULL with *err set. */
struct efr_tree *efr_tree_create(const char *path, struct efr_err *err);
void efr_tree_destroy(struct efr_tree *tree);

/* The root's descriptor; borrowed. */
int efr_tree_fd(const struct efr_tree *tree);

/* What becomes of directories: a path that is decided, or a name that must be decided first
 * (EFR_TREE_OPEN until then). Not while a walk runs. */
void efr_tree_decide(struct efr_tree *tree, const char *path, bool enter);
void efr_tree_forget(struct efr_tree *tree);
void efr_tree_ask_for(struct efr_tree *tree, const char *name);

/* Walks the tree. The result waits for efr_tree_next and efr_tree_commit. Any thread. Returns 0
 * or -1 with *err set. */
int efr_tree_walk(struct efr_tree *tree, const struct efr_tree_limits *limits,
                  struct efr_tree_sums *sums, struct efr_err *err);

/* One difference between the committed walk and the newest one. */
struct efr_tree_change {
    const char *path; /* not terminated; borrowed until the next walk or commit */
    size_t path_len;
    const struct efr_tree_entry *before; /* NULL: it was not there */
    const struct efr_tree_entry *after;  /* NULL: it is gone */
};

/* The next difference, in the order of the paths; false: no more. */
bool efr_tree_next(struct efr_tree *tree, struct efr_tree_change *change);

/* Marks what could not be read in the newest walk: a later walk gives it as a difference. The paths
 * stand in the order of efr_tree_next. Not while a walk runs. */
void efr_tree_mark_unread(struct efr_tree *tree, const char *const *paths,
                          const bool *failed, size_t count);

/* The newest walk is what later ones are compared with. */
void efr_tree_commit(struct efr_tree *tree);

/* Whether every directory of the newest walk is watched and nothing happened in any of them
 * since it began. Takes what it sees: after false only a walk brings true again. */
bool efr_tree_is_quiet(struct efr_tree *tree);

/* Writes the committed walk to a file of efr's own, or takes it from there; tag ties it to what
 * the caller keeps beside it. Returns 0 or -1 with *err set. */
int efr_tree_save(const struct efr_tree *tree, const char *path, const char *tag,
                  struct efr_err *err);
int efr_tree_load(struct efr_tree *tree, const char *path, const char *tag,
                  struct efr_err *err);

#endif
