/*
 * The role `rules` of efrd: a process of its own that runs the user's Lua rules in a locked
 * room. It gives up files, network, other programs and its environment before it sees the
 * first byte of the user's code, then answers requests on its socket. Knows no rule and no
 * policy: lua/efr/rules/room.lua does. Main thread of a process without a loop.
 */
#ifndef EFR_RULES_H
#define EFR_RULES_H

#include <stddef.h>

/* What efrd gives the process: a socket with one JSON message a line, and a page of shared
 * memory in which the process notes which rule it is in ("rules.lua:12"), for whoever has to
 * kill it. */
#define EFR_RULES_SOCKET_FD 3
#define EFR_RULES_PAGE_FD 4
#define EFR_RULES_PAGE_BYTES 4096

/* Takes everything away but the socket. Returns 0, or -1 with the failed step in message;
 * then the process must end. */
int efr_rules_lock(char *message, size_t message_bytes);

/* Runs the role until the socket ends. Returns the exit code of the process. */
int efr_rules_run(void);

#endif
