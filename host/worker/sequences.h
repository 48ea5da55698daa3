/*
 * A terminal's output before libvterm sees it. Control strings (OSC, DCS, SOS, PM, APC) are taken out, because libvterm
 * crashes on some of them and prints others as text; control sequences go on whole, with numbers, counts and lengths
 * that it can stand, and without `CSI b` (repeat), which never ends there after a combining character: it becomes text. Other sequences go on only where
 * they are known to be harmless. Owns: the state between two pieces, of fixed size.
 * Must not know what a string means. Runs in efr-worker, one thread.
 */
#ifndef EFR_WORKER_SEQUENCES_H
#define EFR_WORKER_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>

#define OSC_MAX_BYTES 1024
#define CSI_MAX_BYTES 256

enum sequences_at {
    AT_GROUND,
    AT_ESCAPE,
    AT_CHARSET,
    AT_CSI,
    AT_STRING,
    AT_STRING_ESCAPE
};

struct sequences {
    void (*text)(void *user, const char *bytes,
                 size_t len); /* what is no string, in order */
    void (*osc)(void *user, const char *body,
                size_t len); /* a complete OSC of at most OSC_MAX_BYTES */
    void *user;
    enum sequences_at at;
    bool is_osc;
    size_t len; /* of the body, also what did not fit */
    char body[OSC_MAX_BYTES];
    bool application_keys; /* the program wants cursor keys as ESC O (DECCKM) */
    size_t last_len;       /* of the character printed last, 0 = none */
    char last[4];
};

/* Zeroed but for the callbacks at the start. A string ends with ESC \, an OSC also with BEL; CAN, SUB and any other
 * sequence break it off; a doubled ESC is payload. */
void sequences_feed(struct sequences *sequences, const char *bytes, size_t len);

#endif
