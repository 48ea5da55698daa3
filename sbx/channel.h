/* What pid 1 of a call tells its launcher, over one pipe, in messages of one size.
 * Owns: the message. Both ends are trusted; the command never has this pipe. */
#ifndef EFR_SBX_CHANNEL_H
#define EFR_SBX_CHANNEL_H

enum message_kind {
    MESSAGE_SETUP_ERROR = 1, /* text; the call ends */
    MESSAGE_LAUNCH_ERROR,    /* text, value = exit code (126, 127); the call ends */
    MESSAGE_STARTED,         /* the command was executed */
    MESSAGE_STOPPED,         /* value = signal; pid 1 waits for a byte to continue it */
    MESSAGE_EXITED,          /* value = exit code */
    MESSAGE_KILLED,          /* value = signal */
    MESSAGE_WAITING, /* text = number of the mount namespace; a byte lets pid 1 go on */
};

struct message {
    int kind;
    int value;
    char text[1000]; /* with both numbers below PIPE_BUF: written in one piece */
};

#endif
