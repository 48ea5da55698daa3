/* See env.h. */
#include "env.h"

#include "util.h"

#include <string.h>

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

bool env_matches(const char *pattern, const char *name, size_t name_len, bool any_case)
{
    /* On a mismatch only the last star has to be tried again, so this is linear enough. */
    const char *end = name + name_len;
    const char *star = NULL;
    const char *retry = NULL;
    while (name < end) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
        } else if (*pattern &&
                   (*pattern == *name || (any_case && lower(*pattern) == lower(*name)))) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

static bool any_matches(const struct plan_list *list, const char *name, size_t len,
                        bool any_case)
{
    for (size_t i = 0; i < list->count; i++)
        if (env_matches(list->items[i], name, len, any_case))
            return true;
    return false;
}

/* scheme://user:password@host */
static bool has_url_password(const char *value)
{
    for (const char *at = strstr(value, "://"); at; at = strstr(at + 3, "://")) {
        const char *authority = at + 3;
        size_t len = strcspn(authority, "/?# \t\n");
        const char *sign = memrchr(authority, '@', len);
        if (sign && memchr(authority, ':', (size_t)(sign - authority)))
            return true;
    }
    return false;
}

/* Length of the UTF-8 sequence that starts at text, 0 when it is none. */
static size_t utf8_len(const unsigned char *text, size_t left)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t len;
    } FORMS[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t f = 0; f < sizeof FORMS / sizeof *FORMS; f++) {
        if (text[0] < FORMS[f].first_low || text[0] > FORMS[f].first_high)
            continue;
        if (FORMS[f].len > left)
            return 0;
        for (size_t i = 1; i < FORMS[f].len; i++) {
            unsigned char low = i == 1 ? FORMS[f].second_low : 0x80;
            unsigned char high = i == 1 ? FORMS[f].second_high : 0xbf;
            if (text[i] < low || text[i] > high)
                return 0;
        }
        return FORMS[f].len;
    }
    return 0;
}

static bool is_utf8(const char *text, size_t len)
{
    while (len > 0) {
        size_t step = utf8_len((const unsigned char *)text, len);
        if (step == 0)
            return false;
        text += step;
        len -= step;
    }
    return true;
}

static bool is_set_by_plan(const struct plan *plan, const char *name, size_t len)
{
    for (size_t i = 0; i + 1 < plan->set.count; i += 2)
        if (strlen(plan->set.items[i]) == len &&
            memcmp(plan->set.items[i], name, len) == 0)
            return true;
    return false;
}

static bool is_listed(const struct plan_list *list, const char *name, size_t len)
{
    for (size_t i = 0; i < list->count; i++)
        if (strlen(list->items[i]) == len && memcmp(list->items[i], name, len) == 0)
            return true;
    return false;
}

static bool passes(const struct plan *plan, const char *entry)
{
    const char *sign = strchr(entry, '=');
    if (!sign || sign == entry)
        return false;
    size_t len = (size_t)(sign - entry);
    if (!is_utf8(entry, len) || is_set_by_plan(plan, entry, len))
        return false;
    if (is_listed(&plan->pass, entry, len))
        return true;
    if (any_matches(&plan->unset, entry, len, false))
        return false;
    if (any_matches(&plan->keep, entry, len, false))
        return true;
    return !any_matches(&plan->secret, entry, len, true) && !has_url_password(sign + 1);
}

/* Whether value is a path at or below a place where the command can write. */
static bool is_writable_place(const struct plan *plan, const char *value)
{
    for (size_t i = 0; i < plan->mount_count; i++) {
        const struct plan_mount *m = &plan->mounts[i];
        bool writable = m->kind == MOUNT_OVERLAY || m->kind == MOUNT_ROOT ||
                        m->kind == MOUNT_PRIVATE || m->kind == MOUNT_RUNTIME;
        if (writable && (strcmp(value, m->path) == 0 || path_below(value, m->path)))
            return true;
    }
    return false;
}

/* The value that a variable gets instead of its own, or NULL. */
static const char *moved_to(const struct plan *plan, const char *entry)
{
    const char *sign = strchr(entry, '=');
    for (size_t i = 0; sign && i + 1 < plan->move.count; i += 2) {
        const char *name = plan->move.items[i];
        size_t len = (size_t)(sign - entry);
        if (strlen(name) == len && strncmp(name, entry, len) == 0)
            return is_writable_place(plan, sign + 1) ? NULL : plan->move.items[i + 1];
    }
    return NULL;
}

static char *take_over(const struct plan *plan, const char *entry)
{
    const char *moved = moved_to(plan, entry);
    if (!moved)
        return xstrdup(entry);
    return xasprintf("%.*s=%s", (int)strcspn(entry, "="), entry, moved);
}

static bool is_there(char *const *list, size_t count, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < count; i++)
        if (strncmp(list[i], name, len) == 0 && list[i][len] == '=')
            return true;
    return false;
}

char **env_build(const struct plan *plan, char *const *from)
{
    size_t count = 0;
    while (from[count])
        count++;
    size_t more = (plan->set.count + plan->defaults.count) / 2;
    char **result = xcalloc(count + more + 1, sizeof *result);
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (passes(plan, from[i]))
            result[used++] = take_over(plan, from[i]);
    for (size_t i = 0; i + 1 < plan->set.count; i += 2)
        result[used++] = xasprintf("%s=%s", plan->set.items[i], plan->set.items[i + 1]);
    for (size_t i = 0; i + 1 < plan->defaults.count; i += 2)
        if (!is_there(result, used, plan->defaults.items[i]))
            result[used++] =
                xasprintf("%s=%s", plan->defaults.items[i], plan->defaults.items[i + 1]);
    return result;
}
