/*
 * See grid.h. libvterm's own screen layer is not used: it moves all cells of the screen for each line feed, and it
 * cannot tell a row that a program wrapped. Rows are pointers here, and blank cells at a row's end do not exist.
 */
#include "grid.h"

#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "sequences.h"

#define CHARS_MAX 3
#define TAIL UINT32_MAX /* the second column of a wide character */
#define RUN_HEADER 11

struct style {
    uint32_t fg, bg; /* 0 = default, 1 << 24 | index, 2 << 24 | rgb */
    uint8_t attrs;   /* 1 bold, 2 italic, 4 underline, 8 inverse */
};

struct cell {
    uint32_t chars[CHARS_MAX]; /* the first 0 = blank */
    struct style style;
};

struct row {
    struct cell *cells; /* owned; NULL until the first use, then of the grid's width */
    int used;           /* cells from here on are blank */
    bool wrapped;
};

struct line {
    size_t len;
    bool wrapped;
    char bytes[];
};

struct grid {
    struct grid_options options;
    VTerm *vt; /* owned */
    int cols, rows;
    struct row *main;      /* owned */
    struct row *alternate; /* owned; NULL until a program wants it */
    struct row *shown;     /* one of both */
    struct style pen;
    VTermPos cursor;
    VTermPos wrap_from; /* the last column of this row was just printed; row -1 = not */
    bool cursor_hidden, alternate_seen;
    char title[GRID_TITLE_MAX + 1];
    struct sequences sequences;
    struct line **history; /* owned; a ring */
    int history_first, history_count;
    uint64_t scrolled;
    char *encoded; /* owned; GRID_ROW_MAX bytes */
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static int clamp(int value, int low, int high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- rows ---- */

static struct row *rows_create(int count)
{
    return must(calloc((size_t)count, sizeof(struct row)));
}

static void rows_destroy(struct row *rows, int count)
{
    for (int i = 0; rows && i < count; i++)
        free(rows[i].cells);
    free(rows);
}

static struct cell row_get(const struct row *row, int col)
{
    static const struct cell blank;
    return col < row->used ? row->cells[col] : blank;
}

/* A cell that can be written; those between the row's end and it become blank. */
static struct cell *row_at(const struct grid *grid, struct row *row, int col)
{
    if (!row->cells)
        row->cells = must(calloc((size_t)grid->cols, sizeof(*row->cells)));
    if (col >= row->used) {
        memset(row->cells + row->used, 0,
               (size_t)(col + 1 - row->used) * sizeof(*row->cells));
        row->used = col + 1;
    }
    return &row->cells[col];
}

static bool is_plain(const struct style *style)
{
    return !style->bg && !(style->attrs & 8);
}

/* Blanks the cells from start to before end, in the pen's background. */
static void row_erase(const struct grid *grid, struct row *row, int start, int end)
{
    if (end >= grid->cols)
        row->wrapped = false;
    if (is_plain(&grid->pen) && end >= row->used) {
        if (row->used > start)
            row->used = start;
        return;
    }
    for (int col = start; col < end; col++) {
        if (col >= row->used && is_plain(&grid->pen))
            return;
        *row_at(grid, row, col) = (struct cell){.style = {.bg = grid->pen.bg}};
    }
}

/* ---- rows as bytes ---- */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c >= 0xd800 && (c <= 0xdfff || c > 0x10ffff))
        c = 0xfffd;
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        c = ' ';
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    to[0] = (char)(lead[len] | c);
    return len;
}

static size_t put_cell(char *to, const struct cell *cell)
{
    if (!cell->chars[0]) {
        to[0] = ' ';
        return 1;
    }
    size_t len = 0;
    for (int i = 0; i < CHARS_MAX && cell->chars[i]; i++)
        len += put_utf8(to + len, cell->chars[i]);
    return len;
}

static void put_u16(char *to, size_t value)
{
    to[0] = (char)(value & 0xff);
    to[1] = (char)(value >> 8 & 0xff);
}

static void put_u32(char *to, uint32_t value)
{
    put_u16(to, value & 0xffff);
    put_u16(to + 2, value >> 16);
}

static bool same_style(const struct style *a, const struct style *b)
{
    return a->fg == b->fg && a->bg == b->bg && a->attrs == b->attrs;
}

/* The cells of one style from col on; returns the column after them. */
static int encode_run(const struct row *row, int col, int end, char *to, size_t *len)
{
    struct style style = row->cells[col].style;
    char *at = to + RUN_HEADER;
    for (; col < end && same_style(&style, &row->cells[col].style); col++) {
        const struct cell *cell = &row->cells[col];
        if (cell->chars[0] == TAIL)
            continue;
        bool wide = col + 1 < row->used && cell[1].chars[0] == TAIL;
        size_t n = put_cell(at + 1, cell);
        *at = (char)(n | (wide ? 0x80 : 0));
        at += n + 1;
    }
    to[0] = (char)style.attrs;
    put_u32(to + 1, style.fg);
    put_u32(to + 5, style.bg);
    *len = (size_t)(at - to);
    put_u16(to + 9, *len - RUN_HEADER);
    return col;
}

static size_t encode_plain(const struct row *row, int end, char *to)
{
    size_t len = 0;
    for (int col = 0; col < end; col++) {
        if (row->cells[col].chars[0] != TAIL)
            len += put_cell(to + len, &row->cells[col]);
    }
    return len;
}

static void encode(struct grid *grid, const struct row *row, struct grid_row *out)
{
    int end = row->used;
    while (!row->wrapped && end > 0) {
        const struct cell *cell = &row->cells[end - 1];
        bool blank = !cell->chars[0] || cell->chars[0] == ' ';
        if (!blank || (grid->options.styled && !is_plain(&cell->style)))
            break;
        end--;
    }
    *out = (struct grid_row){.bytes = grid->encoded, .wrapped = row->wrapped};
    if (!grid->options.styled) {
        out->len = encode_plain(row, end, grid->encoded);
        return;
    }
    for (int col = 0; col < end;) {
        size_t len;
        col = encode_run(row, col, end, grid->encoded + out->len, &len);
        out->len += len;
    }
}

/* ---- scrollback ---- */

static void push_history(struct grid *grid, const struct row *row)
{
    grid->scrolled++;
    if (grid->options.history == 0)
        return;
    struct grid_row encoded;
    encode(grid, row, &encoded);
    struct line *line = must(malloc(sizeof(*line) + encoded.len));
    line->len = encoded.len;
    line->wrapped = encoded.wrapped;
    memcpy(line->bytes, encoded.bytes, encoded.len);
    int at = (grid->history_first + grid->history_count) % grid->options.history;
    if (grid->history_count < grid->options.history) {
        grid->history_count++;
    } else {
        free(grid->history[at]);
        grid->history_first = (grid->history_first + 1) % grid->options.history;
    }
    grid->history[at] = line;
}

/* ---- what libvterm calls ---- */

static bool inside(const struct grid *grid, VTermPos pos)
{
    return pos.row >= 0 && pos.row < grid->rows && pos.col >= 0 && pos.col < grid->cols;
}

static VTermRect clip(const struct grid *grid, VTermRect rect)
{
    rect.start_row = clamp(rect.start_row, 0, grid->rows);
    rect.end_row = clamp(rect.end_row, rect.start_row, grid->rows);
    rect.start_col = clamp(rect.start_col, 0, grid->cols);
    rect.end_col = clamp(rect.end_col, rect.start_col, grid->cols);
    return rect;
}

/* The other half of a wide character that loses one. */
static void split_wide(struct row *row, int col)
{
    if (col >= row->used)
        return;
    if (row->cells[col].chars[0] == TAIL && col > 0)
        row->cells[col - 1].chars[0] = 0;
    if (col + 1 < row->used && row->cells[col + 1].chars[0] == TAIL)
        row->cells[col + 1].chars[0] = 0;
}

static int on_glyph(VTermGlyphInfo *info, VTermPos pos, void *user)
{
    struct grid *grid = user;
    if (!inside(grid, pos))
        return 1;
    struct row *row = &grid->shown[pos.row];
    if (pos.col == 0 && pos.row > 0 && grid->wrap_from.row == pos.row - 1)
        grid->shown[pos.row - 1].wrapped = true;
    split_wide(row, pos.col);
    struct cell *cell = row_at(grid, row, pos.col);
    *cell = (struct cell){.style = grid->pen};
    for (int i = 0; i < CHARS_MAX && info->chars[i]; i++)
        cell->chars[i] = info->chars[i];
    int last = pos.col;
    if (info->width == 2 && pos.col + 1 < grid->cols) {
        last++;
        split_wide(row, last);
        struct cell *tail = row_at(grid, row, last);
        *tail = (struct cell){.style = grid->pen, .chars = {TAIL}};
    }
    bool at_end = last + 1 >= grid->cols || (last + 2 == grid->cols && info->width == 2);
    grid->wrap_from.row = at_end ? pos.row : -1;
    if (last + 1 >= grid->cols)
        row->wrapped = false;
    return 1;
}

static int on_cursor(VTermPos pos, VTermPos old, int visible, void *user)
{
    struct grid *grid = user;
    (void)old;
    (void)visible;
    grid->cursor = pos;
    /* Only a wrap leaves the end of a row without a move of the cursor before the next character. */
    if (grid->wrap_from.row >= 0 &&
        (pos.row != grid->wrap_from.row || pos.col + 2 < grid->cols))
        grid->wrap_from.row = -1;
    return 1;
}

/* Whole rows: the pointers move. */
static void scroll_rows(struct grid *grid, VTermRect rect, int downward)
{
    int height = rect.end_row - rect.start_row;
    int count = clamp(abs(downward), 0, height);
    for (int i = 0; i < count; i++) {
        int from = downward > 0 ? rect.start_row : rect.end_row - 1;
        struct row row = grid->shown[from];
        if (downward > 0) {
            if (rect.start_row == 0 && grid->shown == grid->main)
                push_history(grid, &row);
            memmove(grid->shown + from, grid->shown + from + 1,
                    (size_t)(height - 1) * sizeof(row));
            from = rect.end_row - 1;
        } else {
            memmove(grid->shown + rect.start_row + 1, grid->shown + rect.start_row,
                    (size_t)(height - 1) * sizeof(row));
            from = rect.start_row;
        }
        row.used = 0;
        row.wrapped = false;
        grid->shown[from] = row;
        row_erase(grid, &grid->shown[from], 0, grid->cols);
    }
}

static int on_move(VTermRect dest, VTermRect src, void *user)
{
    struct grid *grid = user;
    src = clip(grid, src);
    dest = clip(grid, dest);
    int height = src.end_row - src.start_row;
    int width = src.end_col - src.start_col;
    if (height != dest.end_row - dest.start_row || width != dest.end_col - dest.start_col)
        return 1;
    bool up = dest.start_row < src.start_row;
    bool left = dest.start_col < src.start_col;
    for (int i = 0; i < height; i++) {
        int y = up ? i : height - 1 - i;
        const struct row *from = &grid->shown[src.start_row + y];
        struct row *to = &grid->shown[dest.start_row + y];
        for (int j = 0; j < width; j++) {
            int x = left ? j : width - 1 - j;
            struct cell cell = row_get(from, src.start_col + x);
            *row_at(grid, to, dest.start_col + x) = cell;
        }
    }
    return 1;
}

static int on_erase(VTermRect rect, int selective, void *user)
{
    struct grid *grid = user;
    (void)selective;
    rect = clip(grid, rect);
    for (int row = rect.start_row; row < rect.end_row; row++)
        row_erase(grid, &grid->shown[row], rect.start_col, rect.end_col);
    return 1;
}

static int on_scroll(VTermRect rect, int downward, int rightward, void *user)
{
    struct grid *grid = user;
    rect = clip(grid, rect);
    if (rect.end_row == rect.start_row || rect.end_col == rect.start_col)
        return 1;
    if (rightward == 0 && rect.start_col == 0 && rect.end_col == grid->cols) {
        scroll_rows(grid, rect, downward);
        if (grid->wrap_from.row >= rect.start_row && grid->wrap_from.row < rect.end_row)
            grid->wrap_from.row -= downward;
        return 1;
    }
    vterm_scroll_rect(rect, downward, rightward, on_move, on_erase, grid);
    return 1;
}

static uint32_t pack_color(const VTermColor *color)
{
    if (color->type & VTERM_COLOR_DEFAULT_MASK)
        return 0;
    if (VTERM_COLOR_IS_INDEXED(color))
        return 1U << 24 | color->indexed.idx;
    return 2U << 24 | (uint32_t)color->rgb.red << 16 | (uint32_t)color->rgb.green << 8 |
           color->rgb.blue;
}

static int on_init_pen(void *user)
{
    struct grid *grid = user;
    grid->pen = (struct style){0};
    return 1;
}

static void set_flag(struct style *pen, uint8_t bit, int on)
{
    pen->attrs = (uint8_t)(on ? pen->attrs | bit : pen->attrs & ~bit);
}

static int on_pen(VTermAttr attr, VTermValue *value, void *user)
{
    struct style *pen = &((struct grid *)user)->pen;
    if (attr == VTERM_ATTR_FOREGROUND)
        pen->fg = pack_color(&value->color);
    else if (attr == VTERM_ATTR_BACKGROUND)
        pen->bg = pack_color(&value->color);
    else if (attr == VTERM_ATTR_BOLD)
        set_flag(pen, 1, value->boolean);
    else if (attr == VTERM_ATTR_ITALIC)
        set_flag(pen, 2, value->boolean);
    else if (attr == VTERM_ATTR_UNDERLINE)
        set_flag(pen, 4, value->number != 0);
    else if (attr == VTERM_ATTR_REVERSE)
        set_flag(pen, 8, value->boolean);
    return 1;
}

static void show_alternate(struct grid *grid, bool on)
{
    if (on && !grid->alternate)
        grid->alternate = rows_create(grid->rows);
    if (!on && grid->alternate) {
        rows_destroy(grid->alternate, grid->rows);
        grid->alternate = NULL;
    }
    grid->shown = on ? grid->alternate : grid->main;
    grid->alternate_seen = grid->alternate_seen || on;
    grid->wrap_from.row = -1;
}

static int on_property(VTermProp prop, VTermValue *value, void *user)
{
    struct grid *grid = user;
    if (prop == VTERM_PROP_ALTSCREEN) {
        show_alternate(grid, value->boolean);
    } else if (prop == VTERM_PROP_CURSORVISIBLE) {
        grid->cursor_hidden = !value->boolean;
    }
    return 1;
}

static void resize_rows(struct row *rows, int cols, int old_cols, int count)
{
    for (int i = 0; i < count; i++) {
        struct row *row = &rows[i];
        if (row->used > cols)
            row->used = cols;
        if (row->cells && cols > old_cols)
            row->cells = must(realloc(row->cells, (size_t)cols * sizeof(*row->cells)));
        row->wrapped = row->wrapped && cols == old_cols;
    }
}

/* A screen of the new height; off rows leave it at the top. */
static struct row *reheight(struct grid *grid, struct row *old, int rows, int off)
{
    struct row *new = rows_create(rows);
    for (int i = 0; i < grid->rows; i++) {
        if (i >= off && i - off < rows) {
            new[i - off] = old[i];
            continue;
        }
        if (i < off && old == grid->main)
            push_history(grid, &old[i]);
        free(old[i].cells);
    }
    free(old);
    return new;
}

static int on_resize(int rows, int cols, VTermPos *delta, void *user)
{
    struct grid *grid = user;
    bool alternate = grid->shown == grid->alternate;
    int off = grid->cursor.row >= rows ? grid->cursor.row - rows + 1 : 0;
    off = clamp(off, 0, grid->rows);
    grid->main = reheight(grid, grid->main, rows, off);
    if (grid->alternate)
        grid->alternate = reheight(grid, grid->alternate, rows, off);
    int old_cols = grid->cols;
    grid->rows = rows;
    grid->cols = cols;
    resize_rows(grid->main, cols, old_cols, rows);
    if (grid->alternate)
        resize_rows(grid->alternate, cols, old_cols, rows);
    grid->shown = alternate ? grid->alternate : grid->main;
    grid->wrap_from.row = -1;
    delta->row -= off;
    return 1;
}

static const VTermStateCallbacks state_callbacks = {
    .putglyph = on_glyph,
    .movecursor = on_cursor,
    .scrollrect = on_scroll,
    .moverect = on_move,
    .erase = on_erase,
    .initpen = on_init_pen,
    .setpenattr = on_pen,
    .settermprop = on_property,
    .resize = on_resize,
};

static void reply(const char *bytes, size_t len, void *user)
{
    struct grid *grid = user;
    if (grid->options.reply)
        grid->options.reply(grid->options.user, bytes, len);
}

static void on_text(void *user, const char *bytes, size_t len)
{
    struct grid *grid = user;
    (void)vterm_input_write(grid->vt, bytes, len);
}

static void set_title(struct grid *grid, const char *bytes, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n < GRID_TITLE_MAX; i++) {
        if ((unsigned char)bytes[i] >= 0x20)
            grid->title[n++] = bytes[i];
    }
    grid->title[n] = '\0';
}

/* Titles, and the colours that programs ask for to learn whether the terminal is dark: it is. */
static void on_osc(void *user, const char *body, size_t len)
{
    static const char fg[] = "\033]10;rgb:e0e0/e0e0/e0e0\033\\";
    static const char bg[] = "\033]11;rgb:0000/0000/0000\033\\";
    if (len >= 2 && (body[0] == '0' || body[0] == '2') && body[1] == ';')
        set_title(user, body + 2, len - 2);
    else if (len == 4 && !memcmp(body, "10;?", 4))
        reply(fg, sizeof(fg) - 1, user);
    else if (len == 4 && !memcmp(body, "11;?", 4))
        reply(bg, sizeof(bg) - 1, user);
}

/* ---- the face ---- */

struct grid *grid_create(const struct grid_options *options)
{
    struct grid *grid = must(calloc(1, sizeof(*grid)));
    grid->options = *options;
    grid->cols = clamp(options->cols, 1, GRID_COLS_MAX);
    grid->rows = clamp(options->rows, 1, GRID_ROWS_MAX);
    grid->main = rows_create(grid->rows);
    grid->shown = grid->main;
    grid->wrap_from.row = -1;
    grid->encoded = must(malloc(GRID_ROW_MAX));
    if (options->history > 0)
        grid->history = must(calloc((size_t)options->history, sizeof(struct line *)));
    grid->vt = must(vterm_new(grid->rows, grid->cols));
    vterm_set_utf8(grid->vt, 1);
    vterm_output_set_callback(grid->vt, reply, grid);
    VTermState *state = vterm_obtain_state(grid->vt);
    vterm_state_set_callbacks(state, &state_callbacks, grid);
    grid->sequences = (struct sequences){.text = on_text, .osc = on_osc, .user = grid};
    vterm_state_reset(state, 1);
    return grid;
}

void grid_destroy(struct grid *grid)
{
    if (!grid)
        return;
    vterm_free(grid->vt);
    rows_destroy(grid->main, grid->rows);
    rows_destroy(grid->alternate, grid->rows);
    for (int i = 0; i < grid->history_count; i++)
        free(grid->history[(grid->history_first + i) % grid->options.history]);
    free(grid->history);
    free(grid->encoded);
    free(grid);
}

void grid_write(struct grid *grid, const char *bytes, size_t len)
{
    sequences_feed(&grid->sequences, bytes, len);
}

void grid_resize(struct grid *grid, int cols, int rows)
{
    cols = clamp(cols, 1, GRID_COLS_MAX);
    rows = clamp(rows, 1, GRID_ROWS_MAX);
    if (cols == grid->cols && rows == grid->rows)
        return;
    vterm_set_size(grid->vt, rows, cols);
    /* libvterm keeps a saved cursor, a scroll region and margins that are outside of the new screen, and then writes
     * outside of its memory: none is left. */
    static const char inside_again[] = "\0337\033[r\033[?69l\0338\0337";
    (void)vterm_input_write(grid->vt, inside_again, sizeof(inside_again) - 1);
}

void grid_get_state(const struct grid *grid, struct grid_state *state)
{
    *state = (struct grid_state){
        .cols = grid->cols,
        .rows = grid->rows,
        .cursor_row = clamp(grid->cursor.row, 0, grid->rows - 1),
        .cursor_col = clamp(grid->cursor.col, 0, grid->cols - 1),
        .cursor_hidden = grid->cursor_hidden,
        .alternate = grid->shown == grid->alternate,
        .alternate_seen = grid->alternate_seen,
        .application_keys = grid->sequences.application_keys,
        .scrolled = grid->scrolled,
        .title = grid->title,
    };
}

int grid_history(const struct grid *grid)
{
    return grid->history_count;
}

void grid_history_row(const struct grid *grid, int index, struct grid_row *row)
{
    const struct line *line =
        grid->history[(grid->history_first + index) % grid->options.history];
    *row = (struct grid_row){
        .bytes = line->bytes, .len = line->len, .wrapped = line->wrapped};
}

void grid_screen_row(struct grid *grid, int index, bool of_main, struct grid_row *row)
{
    encode(grid, &(of_main ? grid->main : grid->shown)[index], row);
}
