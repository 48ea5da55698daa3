/*
 * What every unit test includes first: cmocka and its headers, and a private directory.
 */
#ifndef EFR_UNIT_H
#define EFR_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Makes a private directory and goes there; the state of the test is its path. */
static inline int unit_dir_setup(void **state)
{
    char *path = strdup("/tmp/efr-unit-XXXXXX");
    if (!path || !mkdtemp(path) || chdir(path) != 0)
        return -1;
    *state = path;
    return 0;
}

static inline int unit_dir_teardown(void **state)
{
    char command[128];
    char *path = *state;
    (void)snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", path, path);
    int rc = chdir("/");
    rc |= system(command);
    free(path);
    return rc;
}

#endif
