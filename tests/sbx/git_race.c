/* Swaps two names as fast as it can: git_race A B. Runs until it is killed. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXCHANGE 2 /* RENAME_EXCHANGE */

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    (void)puts("swapping");
    (void)fflush(stdout);
    for (;;)
        if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], EXCHANGE) < 0)
            return 1;
}
