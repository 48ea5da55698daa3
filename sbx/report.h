/* What the launcher leaves in the call's directory: started, records, result.
 * Owns: the order and the bytes of those files. Must not know: what the records mean; they are
 * copied unread. */
#ifndef EFR_SBX_REPORT_H
#define EFR_SBX_REPORT_H

#include <stdbool.h>

struct report {
    int dir; /* borrowed; the call's directory */
    const char
        *nonce;   /* borrowed; NULL until the plan was read: then no result is written */
    bool started; /* the command was executed */
    int landlock_abi;        /* of this kernel; 0: not looked at yet */
    int landlock_erratum;    /* number of one that is open here; 0: none */
    int exit_code;           /* -1: none */
    int signal;              /* 0: none */
    int survivors;           /* of an exit child: processes that could not be ended */
    char setup_error[1024];  /* the sandbox was not built */
    char launch_error[1024]; /* it was built, but the command could not be executed */
};

/* Opens and checks a call's directory: a real directory of this user with mode 0700. Dies. */
int report_open_dir(const char *path);

/* Marks that the command runs. Dies on failure. */
void report_started(struct report *report);

/* Copies what the command wrote into the records file, at most 256 KiB; more is left out, so
 * the reader sees no end and drops all. records_fd < 0: nothing. */
void report_records(const struct report *report, int records_fd);

/* Copies the list of what was deleted from caches into the file deletes, when there is one. */
void report_deletes(const struct report *report, int deletes_fd);

/* Writes the result last, by a rename. Returns the exit status of the launcher. */
int report_finish(const struct report *report);

#endif
