/*
 * Files as input of `git fast-import`: see tree_feed.h. A blob's length stands before its bytes.
 * So a small file is read whole first; of a long one that became shorter the rest is zeros, and
 * what was sent is nobody's: its mark is given again, or never used.
 */
#include "tree_feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "dir.h"
#include "err.h"
#include "util.h"

#define WHOLE_BYTES ((size_t)1 << 20) /* a longer file goes in parts */
#define PART_BYTES ((size_t)1 << 18)
#define PIPE_BYTES (1 << 20)
#define TRIES 3

enum outcome { FED, NOT_STILL, BROKEN };

struct feeder {
    const struct efr_tree_feed *feed;
    int root_fd;
    struct efr_buf out;  /* not yet written */
    struct efr_buf body; /* of one file */
    struct efr_err *err;
};

/* ---- the pipe ---- */

static int flush(struct feeder *feeder)
{
    const char *data = feeder->out.data;
    size_t left = feeder->out.len;
    while (left > 0) {
        ssize_t n = write(feeder->feed->fd, data, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return efr_err_errno(feeder->err, errno, "write to git");
        data += n;
        left -= (size_t)n;
    }
    feeder->out.len = 0;
    return 0;
}

static void put_head(struct feeder *feeder, uint64_t mark, uint64_t size)
{
    char head[96];
    (void)snprintf(head, sizeof(head), "blob\nmark :%" PRIu64 "\ndata %" PRIu64 "\n",
                   mark, size);
    efr_buf_puts(&feeder->out, head);
}

static enum outcome put_body(struct feeder *feeder, uint64_t mark)
{
    put_head(feeder, mark, feeder->body.len);
    efr_buf_append(&feeder->out, feeder->body.data, feeder->body.len);
    efr_buf_putc(&feeder->out, '\n');
    return feeder->out.len >= PART_BYTES && flush(feeder) != 0 ? BROKEN : FED;
}

/* ---- one file ---- */

/* Whether nothing was written between two looks, as far as the kernel's clock can tell. */
static bool is_still(int fd, const struct stat *before)
{
    struct stat now;
    return fstat(fd, &now) == 0 && now.st_size == before->st_size &&
           now.st_ctim.tv_sec == before->st_ctim.tv_sec &&
           now.st_ctim.tv_nsec == before->st_ctim.tv_nsec;
}

/* Reads at most len bytes to the end of out. Returns how many, or -1 with errno set. */
static ssize_t read_part(int fd, struct efr_buf *out, size_t len)
{
    char *at = efr_buf_reserve(out, len);
    ssize_t n;
    do
        n = read(fd, at, len);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        out->len += (size_t)n;
    return n;
}

static enum outcome feed_whole(struct feeder *feeder, int fd, const struct stat *st,
                               uint64_t mark)
{
    size_t size = (size_t)st->st_size;
    ssize_t n = 1;
    feeder->body.len = 0;
    while (n > 0 && feeder->body.len <= size)
        n = read_part(fd, &feeder->body, size + 1 - feeder->body.len);
    if (n < 0 || feeder->body.len != size || !is_still(fd, st))
        return NOT_STILL;
    return put_body(feeder, mark);
}

static enum outcome feed_parts(struct feeder *feeder, int fd, const struct stat *st,
                               uint64_t mark)
{
    uint64_t left = (uint64_t)st->st_size;
    bool is_short = false;
    put_head(feeder, mark, left);
    while (left > 0) {
        if (flush(feeder) != 0)
            return BROKEN;
        size_t want = left < PART_BYTES ? (size_t)left : PART_BYTES;
        ssize_t n = is_short ? 0 : read_part(fd, &feeder->out, want);
        if (n <= 0) {
            is_short = true;
            memset(efr_buf_reserve(&feeder->out, want), 0, want);
            feeder->out.len += want;
            n = (ssize_t)want;
        }
        left -= (uint64_t)n;
    }
    efr_buf_putc(&feeder->out, '\n');
    if (flush(feeder) != 0)
        return BROKEN;
    return !is_short && is_still(fd, st) ? FED : NOT_STILL;
}

static enum outcome feed_file(struct feeder *feeder, const char *path, uint64_t mark)
{
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        CLEANUP_FD int fd = efr_dir_open_file(feeder->root_fd, path);
        if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
            (uint64_t)st.st_size > feeder->feed->max_bytes)
            return NOT_STILL;
        enum outcome outcome = (uint64_t)st.st_size <= WHOLE_BYTES
                                   ? feed_whole(feeder, fd, &st, mark)
                                   : feed_parts(feeder, fd, &st, mark);
        if (outcome != NOT_STILL)
            return outcome;
    }
    return NOT_STILL;
}

static enum outcome feed_link(struct feeder *feeder, const char *path, uint64_t mark)
{
    feeder->body.len = 0;
    ssize_t n = efr_dir_read_link(feeder->root_fd, path,
                                  efr_buf_reserve(&feeder->body, PATH_MAX), PATH_MAX);
    if (n < 0 || n >= PATH_MAX)
        return NOT_STILL;
    feeder->body.len = (size_t)n;
    return put_body(feeder, mark);
}

int efr_tree_feed(int root_fd, const struct efr_tree_feed *feed, struct efr_err *err)
{
    struct feeder feeder = {.feed = feed, .root_fd = root_fd, .err = err};
    enum outcome outcome = FED;
    (void)fcntl(feed->fd, F_SETPIPE_SZ, PIPE_BYTES);
    for (size_t i = 0; i < feed->count && outcome != BROKEN; i++) {
        const char *path = feed->paths[i];
        uint64_t mark = feed->first_mark + i;
        outcome =
            feed->links ? feed_link(&feeder, path, mark) : feed_file(&feeder, path, mark);
        feed->failed[i] = outcome != FED;
    }
    int rc = outcome == BROKEN ? -1 : flush(&feeder);
    efr_buf_finish(&feeder.out);
    efr_buf_finish(&feeder.body);
    return rc;
}
