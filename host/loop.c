/*
 * Loop and process set-up: see loop.h. Main thread only.
 */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "err.h"

int efr_process_setup(struct efr_err *err)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* These three are meant to be inherited, so no O_CLOEXEC. The lowest free number
         * is fd, because all below it are open. */
        int opened = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY); // NOLINT
        if (opened < 0)
            return efr_err_errno(err, errno, "open /dev/null");
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, NULL) != 0)
        return efr_err_errno(err, errno, "ignore SIGPIPE");
    return 0;
}

int efr_loop_open(uv_loop_t *loop, struct efr_err *err)
{
    int rc = uv_loop_init(loop);
    return rc == 0 ? 0 : efr_err_errno(err, -rc, "open the event loop");
}

static void close_left(uv_handle_t *handle, void *arg)
{
    if (uv_is_closing(handle))
        return;
    (*(int *)arg)++;
    uv_close(handle, NULL);
}

int efr_loop_close(uv_loop_t *loop)
{
    int left = 0;
    uv_walk(loop, close_left, &left);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    if (uv_loop_close(loop) != 0)
        left++;
    return left;
}
