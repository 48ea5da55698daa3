/*
 * store - group commit on a writer thread. See store.h for the contract.
 *
 * The mutex guards inbox, finished and stop. The writer's connection belongs to the loop
 * thread until store_start and after the join in store_close, else to the writer.
 */
#include "store.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

struct statement {
    size_t text; /* offset in bytes */
    size_t text_len;
    int64_t expect_changes;
    int first_value;
    int n_values;
};

/* Texts live in one growing block, so until the batch is whole a value holds an offset. */
struct store_batch {
    struct store_batch *next;
    char *bytes; /* owned */
    size_t len, size;
    struct statement *statements; /* owned */
    int n_statements, size_statements;
    struct sql_value *values; /* owned; text values point into bytes once sealed */
    size_t *offsets;          /* owned */
    int n_values, size_values;
    struct store_change *changes; /* owned; written by the writer */
    bool durable;
    bool failed;
    struct efr_err err;
    store_done_fn *done;
    void *arg;
};

struct list {
    struct store_batch *first, *last;
};

struct store {
    /* loop thread */
    struct sql *reader;
    uv_async_t async;
    struct list ready; /* finished ones, not yet reported */
    int in_flight;
    bool started, closed, reading;
    /* writer thread, see above */
    struct sql *writer;
    pthread_t thread;
    /* both */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct list inbox, finished;
    bool stop;
};

static void list_push(struct list *list, struct store_batch *batch)
{
    batch->next = NULL;
    if (list->last != NULL)
        list->last->next = batch;
    else
        list->first = batch;
    list->last = batch;
}

static struct store_batch *list_pop(struct list *list)
{
    struct store_batch *batch = list->first;

    if (batch == NULL)
        return NULL;
    list->first = batch->next;
    if (list->first == NULL)
        list->last = NULL;
    batch->next = NULL;
    return batch;
}

/* Moves all of `from` behind what `to` holds. */
static void list_move(struct list *to, struct list *from)
{
    if (from->first == NULL)
        return;
    if (to->last != NULL)
        to->last->next = from->first;
    else
        to->first = from->first;
    to->last = from->last;
    *from = (struct list){NULL, NULL};
}

/* -- batches ---------------------------------------------------------------------- */

struct store_batch *store_batch_create(void)
{
    return xcalloc(1, sizeof(struct store_batch));
}

void store_batch_destroy(struct store_batch *batch)
{
    if (batch == NULL)
        return;
    free(batch->bytes);
    free(batch->statements);
    free(batch->values);
    free(batch->offsets);
    free(batch->changes);
    free(batch);
}

/* Copies bytes into the block and returns their offset. */
static size_t keep(struct store_batch *batch, const char *bytes, size_t len)
{
    size_t at = batch->len;

    if (batch->size - batch->len < len) {
        batch->size = (batch->len + len) * 2 + 256;
        batch->bytes = xrealloc(batch->bytes, batch->size);
    }
    if (len > 0)
        memcpy(batch->bytes + at, bytes, len);
    batch->len += len;
    return at;
}

void store_batch_add(struct store_batch *batch, const char *text, size_t text_len,
                     int64_t expect_changes)
{
    if (batch->n_statements == batch->size_statements) {
        batch->size_statements = batch->size_statements * 2 + 4;
        batch->statements = xrealloc(batch->statements, (size_t)batch->size_statements *
                                                            sizeof(*batch->statements));
    }
    batch->statements[batch->n_statements++] = (struct statement){
        .text = keep(batch, text, text_len),
        .text_len = text_len,
        .expect_changes = expect_changes,
        .first_value = batch->n_values,
    };
}

void store_batch_bind(struct store_batch *batch, struct sql_value value)
{
    assert(batch->n_statements > 0);
    if (batch->n_values == batch->size_values) {
        batch->size_values = batch->size_values * 2 + 16;
        batch->values =
            xrealloc(batch->values, (size_t)batch->size_values * sizeof(*batch->values));
        batch->offsets = xrealloc(batch->offsets,
                                  (size_t)batch->size_values * sizeof(*batch->offsets));
    }
    if (value.type == SQL_TEXT) {
        batch->offsets[batch->n_values] = keep(batch, value.text, value.text_len);
        value.text = NULL;
    }
    batch->values[batch->n_values++] = value;
    batch->statements[batch->n_statements - 1].n_values++;
}

/* The block will not move any more: point the values into it. */
static void seal(struct store_batch *batch)
{
    for (int i = 0; i < batch->n_values; i++) {
        if (batch->values[i].type == SQL_TEXT)
            batch->values[i].text = batch->bytes + batch->offsets[i];
    }
    batch->changes = xcalloc((size_t)batch->n_statements + 1, sizeof(*batch->changes));
}

/* -- writer thread ---------------------------------------------------------------- */

static int run_statement(struct sql *sql, struct store_batch *batch, int i)
{
    const struct statement *statement = &batch->statements[i];
    struct sql_value text = {.type = SQL_TEXT,
                             .text = batch->bytes + statement->text,
                             .text_len = statement->text_len};
    struct sqlite3_stmt *stmt =
        sql_start(sql, text, batch->values + statement->first_value, statement->n_values,
                  &batch->err);
    int rc;

    if (stmt == NULL)
        return -1;
    do {
        rc = sql_step(sql, stmt, &batch->err);
    } while (rc == 1);
    if (rc == 0) {
        batch->changes[i].changes = sql_changes(sql, stmt);
        batch->changes[i].rowid = sql_last_rowid(sql);
    }
    sql_done(stmt);
    if (rc == 0 && statement->expect_changes >= 0 &&
        batch->changes[i].changes != statement->expect_changes) {
        efr_err_set(&batch->err, "EFR_CONFLICT",
                    "statement %d changed %lld rows instead of %lld", i + 1,
                    (long long)batch->changes[i].changes,
                    (long long)statement->expect_changes);
        rc = -1;
    }
    return rc;
}

/* Runs one batch in a savepoint inside the open transaction. After a failure the batch is
 * undone; the transaction is still open unless SQLite gave it up as a whole. */
static void run_batch(struct sql *sql, struct store_batch *batch)
{
    struct efr_err ignored = {0};

    batch->failed = sql_run(sql, "SAVEPOINT batch", &batch->err) != 0;
    for (int i = 0; i < batch->n_statements && !batch->failed; i++)
        batch->failed = run_statement(sql, batch, i) != 0;
    if (!batch->failed) {
        batch->failed = sql_run(sql, "RELEASE batch", &batch->err) != 0;
        return;
    }
    if (!sql_in_transaction(sql))
        return;
    if (sql_run(sql, "ROLLBACK TO batch", &ignored) != 0 ||
        sql_run(sql, "RELEASE batch", &ignored) != 0)
        sql_rollback(sql);
}

static void fail_all(struct store_batch *first, const struct efr_err *err)
{
    for (struct store_batch *batch = first; batch != NULL; batch = batch->next) {
        if (batch->failed)
            continue;
        batch->failed = true;
        batch->err = *err;
    }
}

static bool any_durable(const struct store_batch *first)
{
    for (const struct store_batch *batch = first; batch != NULL; batch = batch->next) {
        if (batch->durable && !batch->failed)
            return true;
    }
    return false;
}

/* Commits the batches of a list that have not failed in one transaction. Returns false when
 * a batch took the whole transaction down: it is marked, and the others are to be run
 * again. */
static bool commit_group(struct sql *sql, struct store_batch *first)
{
    struct efr_err err = {0};

    if (sql_set_durable(sql, any_durable(first), &err) != 0 ||
        sql_run(sql, "BEGIN IMMEDIATE", &err) != 0) {
        fail_all(first, &err);
        return true;
    }
    for (struct store_batch *batch = first; batch != NULL; batch = batch->next) {
        if (batch->failed)
            continue;
        run_batch(sql, batch);
        if (!sql_in_transaction(sql))
            return false;
    }
    if (sql_run(sql, "COMMIT", &err) != 0) {
        efr_err_wrap(&err, "commit");
        fail_all(first, &err);
        sql_rollback(sql);
    }
    return true;
}

/* One transaction for all. When one batch makes SQLite give that up (a full disk, mostly),
 * each of the others gets a transaction of its own, so that none pays for another. */
static void commit_all(struct sql *sql, struct store_batch *first)
{
    if (commit_group(sql, first))
        return;
    for (struct store_batch *batch = first; batch != NULL; batch = batch->next) {
        struct store_batch *next = batch->next;

        if (batch->failed)
            continue;
        batch->next = NULL;
        (void)commit_group(sql, batch);
        batch->next = next;
    }
}

static void *writer_main(void *arg)
{
    struct store *store = arg;

    for (;;) {
        struct list work = {NULL, NULL};

        pthread_mutex_lock(&store->mutex);
        while (store->inbox.first == NULL && !store->stop)
            pthread_cond_wait(&store->wake, &store->mutex);
        list_move(&work, &store->inbox);
        pthread_mutex_unlock(&store->mutex);
        if (work.first == NULL)
            return NULL; /* stopped and drained */

        commit_all(store->writer, work.first);

        pthread_mutex_lock(&store->mutex);
        list_move(&store->finished, &work);
        pthread_mutex_unlock(&store->mutex);
        uv_async_send(&store->async);
    }
}

/* -- loop thread ------------------------------------------------------------------ */

/* A done function may close the store, which reports the rest from inside: therefore the
 * queue is the store's, and each batch leaves it before its function runs. */
static void report(struct store *store)
{
    struct store_batch *batch;

    pthread_mutex_lock(&store->mutex);
    list_move(&store->ready, &store->finished);
    pthread_mutex_unlock(&store->mutex);
    while ((batch = list_pop(&store->ready)) != NULL) {
        struct store_result result = {
            .err = batch->failed ? &batch->err : NULL,
            .changes = batch->failed ? NULL : batch->changes,
            .n_changes = batch->failed ? 0 : batch->n_statements,
        };

        store->in_flight--;
        if (store->in_flight == 0 && !store->closed)
            uv_unref((uv_handle_t *)&store->async);
        batch->done(batch->arg, &result);
        store_batch_destroy(batch);
    }
}

static void on_async(uv_async_t *async)
{
    struct store *store = async->data;

    if (!store->closed)
        report(store);
}

struct store *store_open(const char *path, struct efr_err *err)
{
    struct store *store = xcalloc(1, sizeof(*store));

    store->writer = sql_open_writer(path, err);
    if (store->writer != NULL)
        store->reader = sql_open_reader(path, err);
    if (store->reader == NULL) {
        sql_close(store->writer);
        free(store);
        return NULL;
    }
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->wake, NULL);
    return store;
}

static int closed_error(struct efr_err *err)
{
    efr_err_set(err, "EFR_CLOSED", "the store is closed");
    return -1;
}

int store_script(struct store *store, const char *text, struct efr_err *err)
{
    if (store->closed)
        return closed_error(err);
    if (store->started) {
        efr_err_set(err, "EFR_STATE", "a script runs only before the writer starts");
        return -1;
    }
    if (sql_set_durable(store->writer, true, err) != 0 ||
        sql_run(store->writer, "BEGIN IMMEDIATE", err) != 0)
        return -1;
    if (sql_script(store->writer, text, err) != 0 ||
        sql_run(store->writer, "COMMIT", err) != 0) {
        sql_rollback(store->writer);
        return -1;
    }
    return 0;
}

int store_start(struct store *store, uv_loop_t *loop, struct efr_err *err)
{
    sigset_t all, before;
    int rc;

    if (store->closed)
        return closed_error(err);
    if (store->started)
        return 0;
    rc = uv_async_init(loop, &store->async, on_async);
    if (rc != 0) {
        efr_err_set(err, uv_err_name(rc), "start the store's writer: %s",
                    uv_strerror(rc));
        return -1;
    }
    store->async.data = store;
    uv_unref((uv_handle_t *)&store->async);

    /* Signals are for the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&store->thread, NULL, writer_main, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        efr_err_errno(err, rc, "start the store's writer");
        uv_close((uv_handle_t *)&store->async, NULL);
        return -1;
    }
    store->started = true;
    return 0;
}

static int may_write(const struct store *store, struct efr_err *err)
{
    if (store->closed)
        return closed_error(err);
    if (!store->started) {
        efr_err_set(err, "EFR_STATE", "the store's writer is not started");
        return -1;
    }
    if (store->in_flight >= STORE_INBOX_MAX) {
        efr_err_set(err, "EFR_BUSY", "%d batches wait for the disk already",
                    STORE_INBOX_MAX);
        return -1;
    }
    return 0;
}

int store_write_take(struct store *store, struct store_batch *batch, bool durable,
                     store_done_fn *done, void *arg, struct efr_err *err)
{
    if (may_write(store, err) != 0) {
        store_batch_destroy(batch);
        return -1;
    }
    seal(batch);
    batch->durable = durable;
    batch->done = done;
    batch->arg = arg;
    if (store->in_flight++ == 0)
        uv_ref((uv_handle_t *)&store->async);
    pthread_mutex_lock(&store->mutex);
    list_push(&store->inbox, batch);
    pthread_cond_signal(&store->wake);
    pthread_mutex_unlock(&store->mutex);
    return 0;
}

struct sql *store_reader(struct store *store)
{
    return store->reader;
}

int store_begin_read(struct store *store, struct efr_err *err)
{
    if (store->closed)
        return closed_error(err);
    if (store->reading) {
        efr_err_set(err, "EFR_STATE", "a read transaction is open already");
        return -1;
    }
    /* BEGIN takes no snapshot yet; the first read does. */
    if (sql_run(store->reader, "BEGIN", err) != 0)
        return -1;
    if (sql_run(store->reader, "SELECT 1 FROM sqlite_schema LIMIT 1", err) != 0) {
        sql_rollback(store->reader);
        return -1;
    }
    store->reading = true;
    return 0;
}

int store_end_read(struct store *store, struct efr_err *err)
{
    if (store->closed)
        return closed_error(err);
    if (!store->reading) {
        efr_err_set(err, "EFR_STATE", "no read transaction is open");
        return -1;
    }
    store->reading = false;
    sql_rollback(store->reader);
    return 0;
}

static void destroy(struct store *store)
{
    pthread_mutex_destroy(&store->mutex);
    pthread_cond_destroy(&store->wake);
    free(store);
}

static void on_handle_closed(uv_handle_t *handle)
{
    destroy(handle->data);
}

void store_close(struct store *store)
{
    if (store == NULL || store->closed)
        return;
    store->closed = true;
    if (store->started) {
        pthread_mutex_lock(&store->mutex);
        store->stop = true;
        pthread_cond_signal(&store->wake);
        pthread_mutex_unlock(&store->mutex);
        pthread_join(store->thread, NULL);
        report(store);
    }
    /* The reader first: the last connection moves the log into the database, and only a
     * writing one can. */
    sql_close(store->reader);
    sql_close(store->writer);
    store->reader = NULL;
    store->writer = NULL;
    if (store->started)
        uv_close((uv_handle_t *)&store->async, on_handle_closed);
    else
        destroy(store);
}
