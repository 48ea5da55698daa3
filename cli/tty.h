/*
 * The user's terminal: what it was before efr changed it, the modes efr needs, and the way back on every exit. Owns the
 * one saved state of the process and the handlers of deadly signals. Knows no view, no Lua. One terminal, one thread;
 * the handlers may run at any moment.
 */
#ifndef EFR_TTY_H
#define EFR_TTY_H

#include <stddef.h>
#include <sys/types.h>

struct efr_err;

enum tty_mode {
    TTY_MODE_QUIET, /* whole lines, no echo: typing stays for the next reader */
    TTY_MODE_KEYS,  /* single keys, no echo; a read never waits */
    TTY_MODE_RAW, /* every key as its bytes, also those that would send a signal; a read never waits */
};

/* Columns and lines of the terminal behind fd. */
int tty_size(int fd, int *cols, int *lines, struct efr_err *err);

/* Keeps the state of the terminal behind fd: modes, line discipline, exclusive use. From now on every exit of the
 * process, by a signal or not, puts it back. A second call changes nothing. fd is borrowed until tty_restore. */
int tty_save(int fd, struct efr_err *err);

/* Sets a mode on the saved terminal. */
int tty_set_mode(enum tty_mode mode, struct efr_err *err);

/* Puts the saved state back and forgets it: also restarts stopped output, and takes the foreground from a group that has
 * ended. With flush, unread input is thrown away. In the background, or without a saved state, it changes nothing. */
int tty_restore(int flush, struct efr_err *err);

/* Throws unread input of fd away. */
int tty_flush_input(int fd, struct efr_err *err);

/* 1 when this process may use the terminal behind fd: it is in the foreground. */
int tty_foreground(int fd);

/* Bytes that are written to fd when the process dies: they take the live zone away and show the cursor. At most
 * TTY_FAREWELL_MAX bytes; more is an error. An empty text takes them back. */
#define TTY_FAREWELL_MAX 128
int tty_farewell(int fd, const char *text, size_t len_bytes, struct efr_err *err);

/* Reads what is there. Returns the count; 0 when nothing is, or at the end of input. */
ssize_t tty_read(int fd, char *buf, size_t len_bytes, struct efr_err *err);

/* Writes all bytes, waiting where fd does not take more. */
int tty_write(int fd, const char *text, size_t len_bytes, struct efr_err *err);

#endif
