/*
 * See screen.h. Frames from efrd: S size, F output of the terminal, G snapshot wanted, B D E a replay (begin, data,
 * end). Frames to efrd: P progress, R reply to a query, H L Z a snapshot (head, rows, end), T X text of a replay.
 */
#include "screen.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frames.h"
#include "grid.h"

#define EXIT_BAD_FRAME 4
#define HISTORY_LINES 1000
#define PROGRESS_BYTES ((uint64_t)64 << 10)
#define REPLAY_LINES_MAX 10000
#define REPLY_MAX_BYTES 256
#define TEXT_BYTES ((size_t)32 << 10)

const int screen_syscalls[] = {
    SYS_read,
    SYS_write,
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_restart_syscall,
    SYS_rt_sigreturn,
};
const size_t screen_syscall_count = sizeof(screen_syscalls) / sizeof(screen_syscalls[0]);

static struct grid *live;   /* NULL until the first S */
static struct grid *replay; /* NULL outside of a replay */
static uint64_t consumed, told;

static uint32_t number_at(const struct frame *frame, size_t at, size_t size)
{
    uint32_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint32_t)(unsigned char)frame->bytes[at + i] << (8 * i);
    return value;
}

static void put_number(char *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (char)(value >> (8 * i) & 0xff);
}

static void on_reply(void *user, const char *bytes, size_t len)
{
    (void)user;
    if (len <= REPLY_MAX_BYTES)
        frames_put(STDIN_FILENO, 'R', NULL, 0, bytes, len);
}

/* S: u16 columns, u16 rows */
static int do_size(const struct frame *frame)
{
    if (frame->len != 4)
        return -1;
    int cols = (int)number_at(frame, 0, 2);
    int rows = (int)number_at(frame, 2, 2);
    if (live) {
        grid_resize(live, cols, rows);
        return 0;
    }
    struct grid_options options = {.cols = cols,
                                   .rows = rows,
                                   .history = HISTORY_LINES,
                                   .styled = true,
                                   .reply = on_reply};
    live = grid_create(&options);
    return 0;
}

/* F: bytes */
static int do_feed(const struct frame *frame)
{
    if (!live)
        return -1;
    grid_write(live, frame->bytes, frame->len);
    consumed += frame->len;
    return 0;
}

static void put_row(uint32_t id, bool is_history, const struct grid_row *row)
{
    char head[5];
    put_number(head, id, 4);
    head[4] = (char)((row->wrapped ? 1 : 0) | (is_history ? 2 : 0));
    frames_put(STDIN_FILENO, 'L', head, sizeof(head), row->bytes, row->len);
}

/* G: u32 id, u16 rows of scrollback */
static int do_snapshot(const struct frame *frame)
{
    if (!live || frame->len != 6)
        return -1;
    uint32_t id = number_at(frame, 0, 4);
    int wanted = (int)number_at(frame, 4, 2);
    struct grid_state state;
    grid_get_state(live, &state);
    char head[13];
    put_number(head, id, 4);
    put_number(head + 4, (uint64_t)state.cols, 2);
    put_number(head + 6, (uint64_t)state.rows, 2);
    put_number(head + 8, (uint64_t)state.cursor_row, 2);
    put_number(head + 10, (uint64_t)state.cursor_col, 2);
    head[12] = (char)((state.cursor_hidden ? 1 : 0) | (state.alternate ? 2 : 0) |
                      (state.application_keys ? 4 : 0));
    frames_put(STDIN_FILENO, 'H', head, sizeof(head), state.title, strlen(state.title));
    struct grid_row row;
    int there = grid_history(live);
    for (int i = wanted < there ? there - wanted : 0; i < there; i++) {
        grid_history_row(live, i, &row);
        put_row(id, true, &row);
    }
    for (int i = 0; i < state.rows; i++) {
        grid_screen_row(live, i, false, &row);
        put_row(id, false, &row);
    }
    frames_put(STDIN_FILENO, 'Z', head, 4, NULL, 0);
    return 0;
}

/* B: u16 columns, u16 rows, u16 lines of scrollback */
static int do_replay_begin(const struct frame *frame)
{
    if (replay || frame->len != 6)
        return -1;
    uint32_t lines = number_at(frame, 4, 2);
    struct grid_options options = {
        .cols = (int)number_at(frame, 0, 2),
        .rows = (int)number_at(frame, 2, 2),
        .history = (int)(lines < REPLAY_LINES_MAX ? lines : REPLAY_LINES_MAX)};
    replay = grid_create(&options);
    return 0;
}

/* D: bytes */
static int do_replay_data(const struct frame *frame)
{
    if (!replay)
        return -1;
    grid_write(replay, frame->bytes, frame->len);
    return 0;
}

/* Text of a replay on its way: blank rows wait, those at the end are not sent. */
struct text {
    uint32_t id;
    size_t blank;
    size_t len;
    char bytes[TEXT_BYTES];
};

static void text_flush(struct text *text)
{
    char head[4];
    put_number(head, text->id, 4);
    if (text->len)
        frames_put(STDIN_FILENO, 'T', head, sizeof(head), text->bytes, text->len);
    text->len = 0;
}

static void text_add(struct text *text, const char *bytes, size_t len)
{
    if (text->len + len > sizeof(text->bytes))
        text_flush(text);
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

static void text_row(struct text *text, const struct grid_row *row)
{
    if (row->len == 0 && !row->wrapped) {
        text->blank++;
        return;
    }
    for (; text->blank > 0; text->blank--)
        text_add(text, "\n", 1);
    text_add(text, row->bytes, row->len);
    if (!row->wrapped)
        text->blank = 1;
}

/* E: u32 id. X says how it went: 1 = lines were lost, 2 = the alternate screen was used; then the text comes first,
 * without the end of its last line. */
static int do_replay_end(const struct frame *frame)
{
    static struct text text;
    if (!replay || frame->len != 4)
        return -1;
    struct grid_state state;
    grid_get_state(replay, &state);
    int there = grid_history(replay);
    bool lost = state.scrolled > (uint64_t)there;
    text.id = number_at(frame, 0, 4);
    text.blank = text.len = 0;
    struct grid_row row;
    for (int i = 0; i < there && !lost; i++) {
        grid_history_row(replay, i, &row);
        text_row(&text, &row);
    }
    for (int i = 0; i < state.rows && !lost; i++) {
        grid_screen_row(replay, i, true, &row);
        text_row(&text, &row);
    }
    text_flush(&text);
    char head[5];
    put_number(head, text.id, 4);
    head[4] = (char)((lost ? 1 : 0) | (state.alternate_seen ? 2 : 0));
    frames_put(STDIN_FILENO, 'X', head, sizeof(head), NULL, 0);
    grid_destroy(replay);
    replay = NULL;
    return 0;
}

static const struct {
    char type;
    int (*handle)(const struct frame *frame);
} handlers[] = {
    {'F', do_feed},         {'S', do_size},        {'G', do_snapshot},
    {'B', do_replay_begin}, {'D', do_replay_data}, {'E', do_replay_end},
};

static int dispatch(const struct frame *frame)
{
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        if (handlers[i].type == frame->type)
            return handlers[i].handle(frame);
    }
    return -1;
}

/* Only for flow control, so not after each piece: it would wake efrd for every prompt. */
static void tell_progress(void)
{
    if (consumed - told < PROGRESS_BYTES)
        return;
    char head[8];
    put_number(head, consumed, sizeof(head));
    frames_put(STDIN_FILENO, 'P', head, sizeof(head), NULL, 0);
    told = consumed;
}

int screen_run(void)
{
    struct frame frame;
    for (;;) {
        tell_progress();
        int n = frames_read(STDIN_FILENO, &frame);
        if (n == 0)
            return 0;
        if (n < 0 || dispatch(&frame) < 0)
            return EXIT_BAD_FRAME;
    }
}
