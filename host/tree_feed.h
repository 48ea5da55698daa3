/*
 * The content of files and links of a tree as the input of `git fast-import`: one blob with a mark
 * each. Reads by descriptor below the root, through no link and onto no mount; the bytes are copied
 * and never looked at. Knows nothing of what the marks are used for. Any thread; it may wait for
 * whoever reads the pipe.
 */
#ifndef EFR_TREE_FEED_H
#define EFR_TREE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct efr_err;

struct efr_tree_feed {
    int fd;                   /* a pipe, blocking; borrowed */
    const char *const *paths; /* relative to the root; borrowed */
    size_t count;
    uint64_t first_mark; /* of paths[0]; the next ones follow */
    uint64_t max_bytes;  /* of a file */
    bool links;          /* the paths are links: their texts count */
    bool *failed; /* count places, filled: it could not be read, or did not hold still */
};

/* Writes a blob for every path but those that failed. Memory stays small, however long the files
 * are. Returns 0, or -1 with *err set when the pipe broke. */
int efr_tree_feed(int root_fd, const struct efr_tree_feed *feed, struct efr_err *err);

#endif
