/* See git_env.h. Settings given through GIT_CONFIG_COUNT win over every file. What a repository
 * can still name beyond them (filters, textconv, drivers) is a program, and the domain lets
 * none run but git itself. */
#include "git_env.h"

#include "util.h"

#include <stdlib.h>
#include <string.h>

static const char *const FIXED[] = {
    "LC_ALL=C",
    "GIT_ATTR_NOSYSTEM=1",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_TERMINAL_PROMPT=0",
    "GIT_PAGER=cat",
    "GIT_ALLOW_PROTOCOL=none",
    "GIT_PROTOCOL_FROM_USER=0",
    "GIT_NO_LAZY_FETCH=1",
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_ADVICE=0",
    "GIT_AUTHOR_NAME=efr",
    "GIT_AUTHOR_EMAIL=efr@localhost",
    "GIT_COMMITTER_NAME=efr",
    "GIT_COMMITTER_EMAIL=efr@localhost",
};

static const char *const NO_USER_CONFIG[] = {
    "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",
    "HOME=/nonexistent",
};

static const struct setting {
    const char *key;
    const char *value;
} SETTINGS[] = {
    {"core.fsmonitor", "false"},
    {"core.hooksPath", "/dev/null"},
    {"core.untrackedCache", "false"},
    {"core.pager", "cat"},
    {"core.editor", "false"},
    {"core.sshCommand", "false"},
    {"core.askPass", ""},
    {"core.alternateRefsCommand", "false"},
    {"credential.helper", ""},
    {"protocol.allow", "never"},
    {"gc.auto", "0"},
    {"maintenance.auto", "false"},
    {"submodule.recurse", "false"},
    {"fetch.recurseSubmodules", "false"},
    {"log.showSignature", "false"},
    {"commit.gpgSign", "false"},
    {"tag.gpgSign", "false"},
    {"safe.directory", "*"},
};

/* Names of places; what lies there is bounded by the domain. */
static const char *const PASSED[] = {
    "GIT_DIR",         "GIT_WORK_TREE",        "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",  "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE",
};

static const char *const PASSED_FOR_USER_CONFIG[] = {
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

struct env {
    char **items; /* owned */
    size_t count;
};

static void add(struct env *env, char *item)
{
    env->items = xrealloc(env->items, (env->count + 2) * sizeof *env->items);
    env->items[env->count++] = item;
    env->items[env->count] = NULL;
}

static void add_copies(struct env *env, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add(env, xstrdup(list[i]));
}

static void pass(struct env *env, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        if (value)
            add(env, xasprintf("%s=%s", names[i], value));
    }
}

static void add_settings(struct env *env)
{
    add(env, xasprintf("GIT_CONFIG_COUNT=%zu", COUNT(SETTINGS)));
    for (size_t i = 0; i < COUNT(SETTINGS); i++) {
        add(env, xasprintf("GIT_CONFIG_KEY_%zu=%s", i, SETTINGS[i].key));
        add(env, xasprintf("GIT_CONFIG_VALUE_%zu=%s", i, SETTINGS[i].value));
    }
}

char **git_env_build(const char *root, const char *program_dir, bool user_config)
{
    struct env env = {0};
    const char *end = strrchr(root, '/');
    add(&env, xasprintf("PATH=%s", program_dir));
    /* The leading empty entry: git looks none of the others up on the disk. */
    add(&env, xasprintf("GIT_CEILING_DIRECTORIES=:%.*s", (int)(end - root), root));
    add_copies(&env, FIXED, COUNT(FIXED));
    add_settings(&env);
    pass(&env, PASSED, COUNT(PASSED));
    if (user_config)
        pass(&env, PASSED_FOR_USER_CONFIG, COUNT(PASSED_FOR_USER_CONFIG));
    else
        add_copies(&env, NO_USER_CONFIG, COUNT(NO_USER_CONFIG));
    return env.items;
}
