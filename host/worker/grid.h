/*
 * The screen of one terminal: libvterm's parser and state, and cells of our own that know which rows a program
 * wrapped. Owns: main and alternate screen, cursor, title, scrollback, all of bounded size. Must not know frames or
 * descriptors. Runs in efr-worker, one thread.
 */
#ifndef EFR_WORKER_GRID_H
#define EFR_WORKER_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRID_COLS_MAX 500
#define GRID_ROWS_MAX 500
#define GRID_TITLE_MAX 256
/* What one encoded row needs at most: for each cell a run header, a length and three characters. */
#define GRID_ROW_MAX ((size_t)GRID_COLS_MAX * (11 + 1 + 12))

struct grid;

struct grid_options {
    int cols, rows; /* clamped to 1 .. the limits above */
    int history;    /* lines of scrollback that are kept */
    bool styled;    /* rows are encoded as runs of cells; else as plain UTF-8 */
    /* What the terminal answers to a query; NULL = nothing. */
    void (*reply)(void *user, const char *bytes, size_t len);
    void *user;
};

struct grid_state {
    int cols, rows;
    int cursor_row, cursor_col;
    bool cursor_hidden;
    bool alternate;
    bool alternate_seen;   /* since the start */
    bool application_keys; /* the program wants cursor keys as ESC O */
    uint64_t scrolled; /* lines that left the main screen at the top, since the start */
    const char *title; /* borrowed until the next grid_write; bytes, no NUL inside */
};

/* A row as bytes. Styled: runs of {u8 attributes, u32 foreground, u32 background, u16 bytes}, each followed by cells
 * of {u8 bytes of text | 0x80 when two columns wide, text}; numbers are little-endian. Plain: the text. Blank cells
 * at the end are left out, but not of a wrapped row. */
struct grid_row {
    const char *bytes; /* borrowed until the next call for this grid */
    size_t len;
    bool wrapped; /* the program's line goes on in the next row */
};

/* Never fails: memory that is not there ends the process. */
struct grid *grid_create(const struct grid_options *options);
void grid_destroy(struct grid *grid);

/* What the program wrote next. */
void grid_write(struct grid *grid, const char *bytes, size_t len);
void grid_resize(struct grid *grid, int cols, int rows);
void grid_get_state(const struct grid *grid, struct grid_state *state);

/* Lines of scrollback that are there, and the line of an index, 0 = oldest. */
int grid_history(const struct grid *grid);
void grid_history_row(const struct grid *grid, int index, struct grid_row *row);

/* A row of what is shown, or of the main screen also while the alternate one is shown. */
void grid_screen_row(struct grid *grid, int index, bool of_main, struct grid_row *row);

#endif
