/*
 * store - the database of the daemon: one writer thread with a bounded inbox, one reader.
 *
 * Owns group commit, the order of results and the life of the two connections. Must not
 * know tables, events or Lua. All functions here run on the loop thread; the writer thread
 * is inside.
 */
#ifndef EFR_STORE_H
#define EFR_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "err.h"
#include "sql.h"

/* Batches that may be on their way: handed over and not yet reported back. */
#define STORE_INBOX_MAX 1024

struct store;
struct store_batch;

/* What one statement of a batch did. */
struct store_change {
    int64_t changes; /* rows inserted, updated or deleted */
    int64_t rowid;   /* of the last insert, else of an earlier one */
};

/* How a batch ended. err is NULL when it is committed. All is borrowed for the call. */
struct store_result {
    const struct efr_err *err;
    const struct store_change *changes; /* one for each statement */
    int n_changes;
};

/* Called once for each batch, on the loop thread, in commit order. It may use the store,
 * and close it. */
typedef void store_done_fn(void *arg, const struct store_result *result);

/* Opens or creates the database (sql_open_writer) and its reader. NULL with *err set. */
struct store *store_open(const char *path, struct efr_err *err);

/* Runs a script in one transaction, before store_start. 0 or -1 with *err set. */
int store_script(struct store *store, const char *text, struct efr_err *err);

/* Starts the writer thread. 0 or -1 with *err set. */
int store_start(struct store *store, uv_loop_t *loop, struct efr_err *err);

/* An empty batch. Statements keep their order; each copies its text and parameters. */
struct store_batch *store_batch_create(void);
/* Adds a statement; expect_changes < 0 = any number of changed rows is right. */
void store_batch_add(struct store_batch *batch, const char *text, size_t text_len,
                     int64_t expect_changes);
/* Adds the next parameter of the last statement. */
void store_batch_bind(struct store_batch *batch, struct sql_value value);
/* Frees a batch that was not handed over. Takes NULL. */
void store_batch_destroy(struct store_batch *batch);

/* Hands a batch to the writer: all of it is kept or nothing, and batches that wait at the
 * same time share a commit. durable = the commit waits for the disk. A constraint must not
 * be deferred: it would fail at the commit, for all. Takes the batch in any case. 0, or -1 with *err set (EFR_BUSY, EFR_STATE, EFR_CLOSED) and done not called. */
int store_write_take(struct store *store, struct store_batch *batch, bool durable,
                     store_done_fn *done, void *arg, struct efr_err *err);

/* The reader's connection, for sql_start and its kin; NULL when the store is closed. */
struct sql *store_reader(struct store *store);

/* Begins and ends one snapshot of the reader. 0 or -1 with *err set. */
int store_begin_read(struct store *store, struct efr_err *err);
int store_end_read(struct store *store, struct efr_err *err);

/* Commits what is on its way, reports it (the done functions run inside this call) and
 * closes the files. The memory goes with the loop's next turn. Takes NULL, is safe twice
 * until that turn. */
void store_close(struct store *store);

#endif
