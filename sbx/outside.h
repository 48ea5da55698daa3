/* efr-sbx outside: one line of a call that runs outside of the sandbox, with the user's rights, and
 * ends with everything that it started.
 * Owns: the exit child's life and its end as a tree. Must not know: why the line may run, plans.
 * Runs in a process of its own, a job of the hidden shell. */
#ifndef EFR_SBX_OUTSIDE_H
#define EFR_SBX_OUTSIDE_H

#include <stddef.h>

/* What the file `outside` of a call's directory says. The strings point into the bytes. */
struct outside {
    const char *nonce; /* 32 hex digits */
    const char *shell; /* absolute path of zsh */
};

/* Reads the bytes of that file: `efr-outside`, `1`, `nonce`, N, `shell`, PATH, `end`, each ended by
 * a NUL. 0, or -1: it is none. */
int outside_parse(struct outside *outside, const char *bytes, size_t len_bytes);

/* The whole life. Returns the exit status of the line, 128 + its signal, or 125: nothing ran. */
int outside_run(const char *call_dir);

#endif
