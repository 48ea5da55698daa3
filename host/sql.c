/*
 * sql - one SQLite connection. See sql.h for the contract.
 *
 * Any thread, one at a time for each connection.
 */
#include "sql.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

/* More than the statements efr has; a script of many different ones only evicts. */
#define CACHE_SLOTS 128
#define BUSY_TIMEOUT_MS 5000
#define ANSWER_SIZE 512

struct cached {
    uint64_t hash;
    uint64_t used; /* tick of the last use */
    sqlite3_stmt *stmt;
};

struct sql {
    sqlite3 *db;
    char *path; /* owned */
    uint64_t tick;
    int n_cached;
    int durable; /* -1 = not known yet */
    struct cached cache[CACHE_SLOTS];
};

/* An error that a full disk caused can come back as an I/O error: the quota of a file
 * system, or the WAL index, which SQLite grows by ftruncate. */
static const char *io_code(int sys_errno)
{
    return sys_errno == ENOSPC || sys_errno == EDQUOT ? "EFR_FULL" : "EFR_IO";
}

static const char *code_of(int rc, int sys_errno)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return "EFR_FULL";
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
        return io_code(sys_errno);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return "EFR_DAMAGED";
    case SQLITE_CONSTRAINT:
        return "EFR_CONSTRAINT";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "EFR_BUSY";
    default:
        return "EFR_SQL";
    }
}

static int fail(struct sql *sql, int rc, struct efr_err *err)
{
    int sys_errno = sqlite3_system_errno(sql->db);
    int kind = rc & 0xff;

    if ((kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) && sys_errno != 0)
        efr_err_set(err, code_of(rc, sys_errno), "%s: %s (%s)", sql->path,
                    sqlite3_errmsg(sql->db), strerror(sys_errno));
    else
        efr_err_set(err, code_of(rc, 0), "%s: %s", sql->path, sqlite3_errmsg(sql->db));
    return -1;
}

/* -- statements ------------------------------------------------------------------- */

static uint64_t hash_of(const char *bytes, size_t len)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash;
}

static bool same_text(sqlite3_stmt *stmt, struct sql_value text)
{
    const char *have = sqlite3_sql(stmt);

    return strlen(have) == text.text_len && memcmp(have, text.text, text.text_len) == 0;
}

static struct cached *cache_find(struct sql *sql, uint64_t hash, struct sql_value text)
{
    for (int i = 0; i < sql->n_cached; i++) {
        struct cached *slot = &sql->cache[i];

        if (slot->hash == hash && same_text(slot->stmt, text))
            return slot;
    }
    return NULL;
}

/* A free slot, or the one that was not used for the longest time. */
static struct cached *cache_slot(struct sql *sql)
{
    struct cached *oldest = &sql->cache[0];

    if (sql->n_cached < CACHE_SLOTS)
        return &sql->cache[sql->n_cached++];
    for (int i = 1; i < CACHE_SLOTS; i++) {
        if (sql->cache[i].used < oldest->used)
            oldest = &sql->cache[i];
    }
    sqlite3_finalize(oldest->stmt);
    return oldest;
}

static sqlite3_stmt *prepare(struct sql *sql, struct sql_value text, struct efr_err *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *tail = NULL;
    int rc = sqlite3_prepare_v3(sql->db, text.text, (int)text.text_len,
                                SQLITE_PREPARE_PERSISTENT, &stmt, &tail);

    if (rc != SQLITE_OK) {
        fail(sql, rc, err);
        return NULL;
    }
    while (tail < text.text + text.text_len && strchr("; \t\r\n", *tail) != NULL)
        tail++;
    if (stmt == NULL || tail != text.text + text.text_len) {
        sqlite3_finalize(stmt);
        efr_err_set(err, "EFR_SQL", "%s: one statement is expected, not %s", sql->path,
                    stmt == NULL ? "none" : "more");
        return NULL;
    }
    return stmt;
}

static int bind_one(sqlite3_stmt *stmt, int i, const struct sql_value *value)
{
    switch (value->type) {
    case SQL_INTEGER:
        return sqlite3_bind_int64(stmt, i, value->integer);
    case SQL_REAL:
        return sqlite3_bind_double(stmt, i, value->real);
    case SQL_TEXT:
        return sqlite3_bind_text64(stmt, i, value->text, value->text_len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case SQL_NULL:
        return sqlite3_bind_null(stmt, i);
    default:
        return SQLITE_MISUSE;
    }
}

static int bind_all(struct sql *sql, sqlite3_stmt *stmt, const struct sql_value *values,
                    int n_values, struct efr_err *err)
{
    if (sqlite3_bind_parameter_count(stmt) != n_values) {
        efr_err_set(err, "EFR_SQL", "%s: the statement takes %d parameters, not %d",
                    sql->path, sqlite3_bind_parameter_count(stmt), n_values);
        return -1;
    }
    for (int i = 0; i < n_values; i++) {
        int rc = bind_one(stmt, i + 1, &values[i]);

        if (rc != SQLITE_OK)
            return fail(sql, rc, err);
    }
    return 0;
}

struct sqlite3_stmt *sql_start(struct sql *sql, struct sql_value text,
                               const struct sql_value *values, int n_values,
                               struct efr_err *err)
{
    uint64_t hash = hash_of(text.text, text.text_len);
    struct cached *slot = cache_find(sql, hash, text);

    if (slot == NULL) {
        sqlite3_stmt *stmt = prepare(sql, text, err);

        if (stmt == NULL)
            return NULL;
        slot = cache_slot(sql);
        *slot = (struct cached){.hash = hash, .stmt = stmt};
    }
    slot->used = ++sql->tick;
    sqlite3_reset(slot->stmt);
    if (bind_all(sql, slot->stmt, values, n_values, err) != 0) {
        sql_done(slot->stmt);
        return NULL;
    }
    return slot->stmt;
}

int sql_step(struct sql *sql, struct sqlite3_stmt *stmt, struct efr_err *err)
{
    int rc = sqlite3_step(stmt);

    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    return fail(sql, rc, err);
}

int sql_column_count(struct sqlite3_stmt *stmt)
{
    return sqlite3_column_count(stmt);
}

const char *sql_column_name(struct sqlite3_stmt *stmt, int i)
{
    const char *name = sqlite3_column_name(stmt, i);

    return name != NULL ? name : "?";
}

struct sql_value sql_column(struct sqlite3_stmt *stmt, int i)
{
    struct sql_value value = {.type = SQL_NULL};

    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        value.type = SQL_INTEGER;
        value.integer = sqlite3_column_int64(stmt, i);
        break;
    case SQLITE_FLOAT:
        value.type = SQL_REAL;
        value.real = sqlite3_column_double(stmt, i);
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB:
        value.type = SQL_TEXT;
        value.text = sqlite3_column_blob(stmt, i);
        value.text_len = (size_t)sqlite3_column_bytes(stmt, i);
        if (value.text == NULL)
            value.text = ""; /* an empty blob has no address */
        break;
    default:
        break;
    }
    return value;
}

void sql_done(struct sqlite3_stmt *stmt)
{
    if (stmt == NULL)
        return;
    sqlite3_reset(stmt);
    sqlite3_clear_bindings(stmt);
}

int sql_run(struct sql *sql, const char *text, struct efr_err *err)
{
    struct sql_value query = {.type = SQL_TEXT, .text = text, .text_len = strlen(text)};
    sqlite3_stmt *stmt = sql_start(sql, query, NULL, 0, err);
    int rc;

    if (stmt == NULL)
        return -1;
    do {
        rc = sql_step(sql, stmt, err);
    } while (rc == 1);
    sql_done(stmt);
    return rc;
}

int sql_script(struct sql *sql, const char *text, struct efr_err *err)
{
    int rc = sqlite3_exec(sql->db, text, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(sql, rc, err);
}

int64_t sql_changes(struct sql *sql, struct sqlite3_stmt *stmt)
{
    /* SQLite still gives the count of an earlier statement after one that only reads. */
    return sqlite3_stmt_readonly(stmt) ? 0 : sqlite3_changes64(sql->db);
}

int64_t sql_last_rowid(struct sql *sql)
{
    return sqlite3_last_insert_rowid(sql->db);
}

bool sql_in_transaction(struct sql *sql)
{
    return sqlite3_get_autocommit(sql->db) == 0;
}

void sql_rollback(struct sql *sql)
{
    if (sql_in_transaction(sql))
        (void)sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL, NULL);
}

int sql_set_durable(struct sql *sql, bool durable, struct efr_err *err)
{
    if (sql->durable == (int)durable)
        return 0;
    if (sql_run(sql, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                err) != 0)
        return -1;
    sql->durable = durable;
    return 0;
}

/* -- open and close --------------------------------------------------------------- */

void sql_close(struct sql *sql)
{
    if (sql == NULL)
        return;
    for (int i = 0; i < sql->n_cached; i++)
        sqlite3_finalize(sql->cache[i].stmt);
    sqlite3_close(sql->db);
    free(sql->path);
    free(sql);
}

/* Opens and reads the schema, which is where a file that is no database shows. */
static struct sql *open_file(const char *path, int flags, struct efr_err *err)
{
    struct sql *sql = xcalloc(1, sizeof(*sql));
    int rc;

    sql->path = xstrdup(path);
    sql->durable = -1;
    rc = sqlite3_open_v2(path, &sql->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        fail(sql, rc, err);
        goto failed;
    }
    sqlite3_extended_result_codes(sql->db, 1);
    sqlite3_busy_timeout(sql->db, BUSY_TIMEOUT_MS);
    if (sql_script(sql,
                   "SELECT count(*) FROM sqlite_schema;"
                   "PRAGMA temp_store=MEMORY;"
                   "PRAGMA cache_size=-512;"
                   "PRAGMA foreign_keys=ON;",
                   err) != 0)
        goto failed;
    return sql;

failed:
    sql_close(sql);
    return NULL;
}

/* Runs a statement that answers with at most one short text. Returns 1 with the text, 0 without a row,
 * or -1 with *err set. param may be NULL. */
static int ask(struct sql *sql, const char *text, const struct sql_value *param,
               char answer[ANSWER_SIZE], struct efr_err *err)
{
    struct sql_value query = {.type = SQL_TEXT, .text = text, .text_len = strlen(text)};
    sqlite3_stmt *stmt = sql_start(sql, query, param, param ? 1 : 0, err);
    int rc;

    answer[0] = '\0';
    if (stmt == NULL)
        return -1;
    rc = sql_step(sql, stmt, err);
    if (rc == 1) {
        struct sql_value value = sql_column(stmt, 0);

        (void)snprintf(answer, ANSWER_SIZE, "%.*s", (int)value.text_len, value.text);
    }
    sql_done(stmt);
    return rc;
}

/* The answer of the pragma is the mode that the file now has. */
static int use_wal(struct sql *sql, struct efr_err *err)
{
    char mode[ANSWER_SIZE];

    if (ask(sql, "PRAGMA journal_mode=WAL", NULL, mode, err) != 1)
        return -1;
    if (strcmp(mode, "wal") == 0)
        return 0;
    return efr_err_set(err, "EFR_IO",
                       "%s: this file system has no shared memory for a "
                       "write-ahead log",
                       sql->path);
}

/* The caller frees the result. */
static char *with_suffix(const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *name = xmalloc(size);

    (void)snprintf(name, size, "%s%s", path, suffix);
    return name;
}

/* Makes the file under a second name: a start that dies here leaves no empty file, and an
 * empty file under the real name can be told as damage. */
static int create_file(const char *path, struct efr_err *err)
{
    char *temp = with_suffix(path, ".new");
    struct sql *sql = NULL;
    int rc = -1;
    int fd;

    (void)unlink(temp);
    fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        efr_err_errno(err, errno, "create %s", temp);
        goto out;
    }
    (void)close(fd);
    sql = open_file(temp, SQLITE_OPEN_READWRITE, err);
    if (sql == NULL || use_wal(sql, err) != 0)
        goto out;
    sql_close(sql);
    sql = NULL;
    if (rename(temp, path) != 0) {
        efr_err_errno(err, errno, "rename %s to %s", temp, path);
        goto out;
    }
    rc = 0;
out:
    sql_close(sql);
    if (rc != 0)
        (void)unlink(temp);
    free(temp);
    return rc;
}

/* Refuses what must not become a new database: an emptied file, or a write-ahead log whose
 * database is gone. */
static int ensure_file(const char *path, struct efr_err *err)
{
    struct stat st;
    char *wal;
    int has_wal;

    if (stat(path, &st) == 0) {
        if (S_ISREG(st.st_mode) && st.st_size > 0)
            return 0;
        efr_err_set(err, "EFR_DAMAGED", "%s: %s", path,
                    S_ISREG(st.st_mode) ? "the database file is empty"
                                        : "not a regular file");
        return -1;
    }
    if (errno != ENOENT) {
        efr_err_errno(err, errno, "open %s", path);
        return -1;
    }
    wal = with_suffix(path, "-wal");
    has_wal = stat(wal, &st) == 0 && st.st_size > 0;
    free(wal);
    if (has_wal) {
        efr_err_set(err, "EFR_DAMAGED",
                    "%s: the database is gone, but its log %s-wal is there", path, path);
        return -1;
    }
    return create_file(path, err);
}

struct sql *sql_open_writer(const char *path, struct efr_err *err)
{
    struct sql *sql;

    if (ensure_file(path, err) != 0)
        return NULL;
    sql = open_file(path, SQLITE_OPEN_READWRITE, err);
    if (sql == NULL)
        return NULL;
    if (use_wal(sql, err) != 0 ||
        sql_script(sql, "PRAGMA journal_size_limit=67108864", err) != 0 ||
        sql_set_durable(sql, false, err) != 0) {
        sql_close(sql);
        return NULL;
    }
    return sql;
}

struct sql *sql_open_reader(const char *path, struct efr_err *err)
{
    return open_file(path, SQLITE_OPEN_READONLY, err);
}

/* -- whole-file work -------------------------------------------------------------- */

int sql_check(struct sql *sql, struct efr_err *err)
{
    char answer[ANSWER_SIZE];

    if (ask(sql, "PRAGMA quick_check(1)", NULL, answer, err) != 1)
        return -1;
    if (strcmp(answer, "ok") == 0)
        return 0;
    return efr_err_set(err, "EFR_DAMAGED", "%s: %s", sql->path, answer);
}

/* Makes the rename itself survive a power cut. */
static int sync_parent(const char *path, struct efr_err *err)
{
    char *copy = xstrdup(path);
    const char *dir = dirname(copy);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;

    if (fd < 0 || fsync(fd) != 0) {
        efr_err_errno(err, errno, "sync %s", dir);
        rc = -1;
    }
    if (fd >= 0)
        (void)close(fd);
    free(copy);
    return rc;
}

static int copy_into(struct sql *sql, const char *temp, struct efr_err *err)
{
    struct sql_value name = {.type = SQL_TEXT, .text = temp, .text_len = strlen(temp)};
    char answer[ANSWER_SIZE];

    return ask(sql, "VACUUM INTO ?1", &name, answer, err);
}

int sql_backup(struct sql *sql, const char *path, struct efr_err *err)
{
    char *temp = with_suffix(path, ".tmp");
    int rc = -1;
    int fd;

    (void)unlink(temp);
    fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        efr_err_errno(err, errno, "create %s", temp);
        goto out;
    }
    if (copy_into(sql, temp, err) != 0)
        goto out;
    if (fsync(fd) != 0 || rename(temp, path) != 0) {
        efr_err_errno(err, errno, "write %s", path);
        goto out;
    }
    rc = sync_parent(path, err);
out:
    if (fd >= 0)
        (void)close(fd);
    if (rc != 0)
        (void)unlink(temp);
    free(temp);
    if (rc != 0)
        efr_err_wrap(err, "back up %s", sql->path);
    return rc;
}
