/*
 * Fuzzes the screen model of efr-worker: whatever a program writes, in whatever pieces and with sizes that change,
 * each row can be read, is UTF-8, and the cursor stands inside. The first byte of each piece says what it is.
 */
// sources: host/worker/grid.c host/worker/sequences.c host/text.c host/buf.c host/util.c
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "worker/grid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t replied;

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void on_reply(void *user, const char *bytes, size_t len)
{
    (void)user;
    (void)bytes;
    replied += len;
}

static void check_runs(const struct grid_row *row)
{
    size_t at = 0;
    while (at < row->len) {
        need(row->len - at >= 11);
        const unsigned char *head = (const unsigned char *)row->bytes + at;
        size_t end = at + 11 + (size_t)(head[9] | head[10] << 8);
        need(end <= row->len);
        for (at += 11; at < end;) {
            size_t len = (unsigned char)row->bytes[at] & 0x7f;
            need(len > 0 && at + 1 + len <= end);
            need(efr_text_is_utf8(row->bytes + at + 1, len));
            at += 1 + len;
        }
    }
}

static void check_row(const struct grid_row *row, bool styled)
{
    need(row->len <= GRID_ROW_MAX);
    if (styled)
        check_runs(row);
    else
        need(efr_text_is_utf8(row->bytes, row->len));
}

static void check(struct grid *grid, bool styled)
{
    struct grid_state state;
    struct grid_row row;
    grid_get_state(grid, &state);
    need(state.cursor_row >= 0 && state.cursor_row < state.rows);
    need(state.cursor_col >= 0 && state.cursor_col < state.cols);
    need(strlen(state.title) <= GRID_TITLE_MAX);
    need(grid_history(grid) <= 20);
    for (int i = 0; i < grid_history(grid); i++) {
        grid_history_row(grid, i, &row);
        check_row(&row, styled);
    }
    for (int i = 0; i < state.rows; i++) {
        grid_screen_row(grid, i, false, &row);
        check_row(&row, styled);
        grid_screen_row(grid, i, true, &row);
        check_row(&row, styled);
    }
}

static void play(const uint8_t *data, size_t size, bool styled)
{
    struct grid_options options = {
        .cols = 20, .rows = 6, .history = 20, .styled = styled, .reply = on_reply};
    struct grid *grid = grid_create(&options);
    while (size > 1) {
        size_t len = data[0] & 0x3f;
        if (len > size - 1)
            len = size - 1;
        if ((data[0] & 0xc0) == 0xc0 && len >= 2)
            grid_resize(grid, data[1], data[2] % 50);
        else
            grid_write(grid, (const char *)data + 1, len);
        data += len + 1;
        size -= len + 1;
    }
    check(grid, styled);
    grid_destroy(grid);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    play(data, size, true);
    play(data, size, false);
    return 0;
}
