/* The one address that the broker reads from a sandboxed program. */
#include "broker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

static void addresses(void **state)
{
    (void)state;
    char path[BROKER_ADDRESS_MAX + 1];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memset(name.sun_path, 'x', sizeof name.sun_path);
    assert_int_equal(broker_read_address(&name, sizeof name, path), BROKER_PATH);
    assert_int_equal(strlen(path), sizeof name.sun_path);
    assert_int_equal(broker_read_address(&name, 5, path), BROKER_PATH);
    assert_string_equal(path, "xxx");
    strcpy(name.sun_path, "/a");
    assert_int_equal(broker_read_address(&name, sizeof name, path), BROKER_PATH);
    assert_string_equal(path, "/a");
    name.sun_path[0] = '\0';
    assert_int_equal(broker_read_address(&name, 10, path), BROKER_ABSTRACT);
    assert_int_equal(broker_read_address(&name, 2, path), BROKER_INVALID);
    assert_int_equal(broker_read_address(&name, 1, path), BROKER_INVALID);
    assert_int_equal(broker_read_address(&name, 0, path), BROKER_INVALID);
    char long_name[BROKER_ADDRESS_MAX] = {0};
    memcpy(long_name, &name, sizeof name);
    assert_int_equal(broker_read_address(long_name, sizeof name + 1, path),
                     BROKER_INVALID);
    name.sun_family = AF_UNSPEC;
    assert_int_equal(broker_read_address(&name, sizeof name, path), BROKER_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
