/*
 * sql - one SQLite connection: open, values, cached statements, error codes.
 *
 * Owns how efr opens a database file and how an SQLite error becomes a struct efr_err.
 * Must not know tables, threads or Lua. A connection belongs to one thread at a time.
 */
#ifndef EFR_SQL_H
#define EFR_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum sql_type { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT };

/* A parameter or a column. `text` is borrowed and has `text_len` bytes; a blob column
 * reads as text. */
struct sql_value {
    enum sql_type type;
    union {
        int64_t integer;
        double real;
        const char *text;
    };
    size_t text_len;
};

struct sql;
struct sqlite3_stmt;

/* Opens an existing or a new database for reading and writing and sets efr's pragmas. A
 * new file has mode 0600 and appears under its name only when it is a database. A file
 * that is none is an error (EFR_DAMAGED), never a new database. NULL with *err set. */
struct sql *sql_open_writer(const char *path, struct efr_err *err);

/* Opens an existing database read-only. NULL with *err set. */
struct sql *sql_open_reader(const char *path, struct efr_err *err);

/* Closes the connection and its statements. Takes NULL. */
void sql_close(struct sql *sql);

/* Finds or prepares the one statement in `text` and binds all its parameters. The
 * statement belongs to the cache and ends with sql_done. NULL with *err set. */
struct sqlite3_stmt *sql_start(struct sql *sql, struct sql_value text,
                               const struct sql_value *values, int n_values,
                               struct efr_err *err);

/* Steps to the next row. 1 = a row, 0 = the end, -1 with *err set. */
int sql_step(struct sql *sql, struct sqlite3_stmt *stmt, struct efr_err *err);

/* The shape of the result, and column `i` of the current row (valid until the next step). */
int sql_column_count(struct sqlite3_stmt *stmt);
const char *sql_column_name(struct sqlite3_stmt *stmt, int i);
struct sql_value sql_column(struct sqlite3_stmt *stmt, int i);

/* Ends a statement: it keeps no snapshot and no parameter. Takes NULL. */
void sql_done(struct sqlite3_stmt *stmt);

/* Runs one statement without parameters to its end; rows are dropped. 0 or -1. */
int sql_run(struct sql *sql, const char *text, struct efr_err *err);

/* Runs any number of statements, not cached. 0 or -1 with *err set. */
int sql_script(struct sql *sql, const char *text, struct efr_err *err);

/* Rows that this INSERT, UPDATE or DELETE, just run, changed; the rowid of the last INSERT. */
int64_t sql_changes(struct sql *sql, struct sqlite3_stmt *stmt);
int64_t sql_last_rowid(struct sql *sql);

/* True while a transaction is open. SQLite ends one by itself after some errors. */
bool sql_in_transaction(struct sql *sql);

/* Rolls back what is open, if anything is. */
void sql_rollback(struct sql *sql);

/* Chooses whether commits wait for the disk. Only outside a transaction. 0 or -1. */
int sql_set_durable(struct sql *sql, bool durable, struct efr_err *err);

/* Reads the whole file. 0 when it is sound, else -1 (EFR_DAMAGED). */
int sql_check(struct sql *sql, struct efr_err *err);

/* Writes a compact copy, mode 0600, which appears complete or not at all; an older file of
 * that name is replaced. Not inside a transaction. 0 or -1 with *err set. */
int sql_backup(struct sql *sql, const char *path, struct efr_err *err);

#endif
