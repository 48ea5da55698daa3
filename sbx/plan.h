/* The plan of one call: strict parser of the NUL-separated bytes of docs/protocol.md.
 * Owns: the format and every check that needs no file system. Must not know: how a mount is
 * made. Runs in the launcher; pid 1 reads the result. */
#ifndef EFR_SBX_PLAN_H
#define EFR_SBX_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_MAX_BYTES 1048576
#define PLAN_NONCE_LEN 32

/* In the order in which equal depths are mounted. */
enum mount_kind {
    MOUNT_MASK,    /* empty directory or file */
    MOUNT_PRIVATE, /* /tmp or /var/tmp of the conversation */
    MOUNT_RUNTIME, /* the call's own runtime directory */
    MOUNT_OVERLAY, /* a tool's cache: writes go to a layer */
    MOUNT_ROOT,    /* writable */
    MOUNT_PIN,     /* writable, but a mount of its own, so it cannot be renamed away */
    MOUNT_GRANT,   /* a file or directory that this call may write */
    MOUNT_SOCKET,  /* a socket of the host that this call may connect to */
    MOUNT_FLOOR,   /* read-only */
};

struct plan_mount {
    enum mount_kind kind;
    const char *path; /* borrowed from the plan's bytes, as all strings here */
    const char
        *layer; /* of an overlay: its name in LAYERS/cache, or NULL: for this call */
};

struct plan_list {
    const char **items; /* owned array of borrowed strings */
    size_t count;
};

struct plan {
    const char *nonce; /* 32 hex digits */
    unsigned int uid;
    const char *cwd;
    const char *tmp;         /* backing directory of the private /tmp and /var/tmp */
    const char *assets;      /* directory shown as RUNTIME/efr-sbx, or NULL */
    const char *replay;      /* directory shown as RUNTIME/efr-sbx/replay, or NULL */
    const char *runtime;     /* path of the MOUNT_RUNTIME entry */
    const char *layers;      /* the conversation's directory; NULL without overlays */
    const char *layers_name; /* of this call, for layers that memory cannot hold */
    bool keeps_layers; /* an overlay has a layer in LAYERS/cache, which is to be locked */
    bool records;      /* descriptor 3 of the command is a file that the launcher keeps */
    struct plan_mount *mounts; /* owned; sorted by depth, then kind */
    size_t mount_count;
    struct plan_list unset;    /* variable patterns that go */
    struct plan_list secret;   /* the same without regard to case, unless kept */
    struct plan_list keep;     /* patterns that secret does not take */
    struct plan_list set;      /* name, value, name, value, ... */
    struct plan_list move;     /* the same, for variables that name no writable place */
    struct plan_list defaults; /* the same, for variables that are not there */
    struct plan_list argv;     /* NULL-terminated */
    struct plan_list pass;     /* exact names that neither unset nor secret takes */
    struct plan_list devices;  /* paths below /dev that this call may use */
    bool host_network;         /* no network of its own */
    bool userns;               /* the command may make namespaces */
    uint64_t max_processes;    /* limits of the call; 0: none of its own */
    uint64_t max_memory_bytes;
    uint64_t max_file_bytes;
    uint64_t max_open_files;
    const char *cgroup;      /* where the call gets one of its own, or NULL */
    const char *cgroup_name; /* its name there */
    const char *bwrap; /* path of the bubblewrap that builds the call; NULL: efr-sbx */
    struct plan_list owned; /* strings that the plan's bytes do not hold */
};

/* Parses len_bytes (borrowed for the life of the plan). Returns 0, or -1 with the reason in
 * message. plan_finish is needed in both cases. */
int plan_parse(struct plan *plan, const char *bytes, size_t len_bytes, char *message,
               size_t message_bytes);
void plan_finish(struct plan *plan);

/* Adds a pin or floor after what has its depth; path is absolute and normal, and copied. Returns 0,
 * or -1 when the plan is full. */
int plan_add(struct plan *plan, enum mount_kind kind, const char *path);

/* Whether path lies strictly below dir. Both absolute and normal. */
bool path_below(const char *path, const char *dir);

#endif
