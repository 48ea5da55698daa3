/*
 * The process and its surroundings, as far as it takes more than one system call: locks,
 * systemd's two protocols. Knows no Lua. Main thread only.
 */
#ifndef EFR_SYS_H
#define EFR_SYS_H

#include <stddef.h>

struct efr_err;

/* Opens a directory, or opens (and makes, mode 0600) a lock file, and takes its exclusive
 * flock. wait_ms is the
 * longest wait; 0 only tries. Returns the descriptor that holds the lock, or -1 with *err
 * set (EWOULDBLOCK when another process has it). */
int efr_lock_file(const char *path, int wait_ms, struct efr_err *err);

/* Sends a state text to the service manager (sd_notify(3)). No manager is no error. */
int efr_notify(const char *text, size_t len_bytes, struct efr_err *err);

/* How many descriptors, from 3 on, the service manager passed. They are made
 * close-on-exec, and the variables are removed so that children do not see them. */
int efr_listen_fds(void);

#endif
