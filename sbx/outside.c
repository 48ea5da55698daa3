/* See outside.h. The process stands between the hidden shell and the line: it reaps what the line
 * leaves behind, so all of it is below this process, whatever session it made or parent it lost. */
#include "outside.h"

#include "keep.h"
#include "report.h"
#include "util.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
    FILE_MAX_BYTES = 8192,
    NONCE_DIGITS = 32,
    TERM_MS = 2000, /* for what listens to SIGTERM */
    KILL_MS = 1000, /* for the kernel to end the rest; root's processes stay */
    ROUND_NS = 5000000,
};

/* Every descriptor but the standard ones closes when the line starts. */
#define CLOSE_ON_EXEC 4U /* CLOSE_RANGE_CLOEXEC */

static struct report report = {.dir = -1, .exit_code = -1};

static void fail(const char *text)
{
    die_sink(NULL);
    (void)snprintf(report.setup_error, sizeof report.setup_error, "%s", text);
    say("efr-sbx: setup failed: %s", text);
    _exit(report_finish(&report));
}

/* The next field; NULL when there is none. */
static const char *next_field(const char **at, const char *end)
{
    const char *field = *at;
    const char *nul = field < end ? memchr(field, '\0', (size_t)(end - field)) : NULL;
    if (!nul)
        return NULL;
    *at = nul + 1;
    return field;
}

static bool is_next(const char **at, const char *end, const char *word)
{
    const char *field = next_field(at, end);
    return field && strcmp(field, word) == 0;
}

int outside_parse(struct outside *outside, const char *bytes, size_t len_bytes)
{
    const char *at = bytes, *end = bytes + len_bytes;
    if (!is_next(&at, end, "efr-outside") || !is_next(&at, end, "1") ||
        !is_next(&at, end, "nonce"))
        return -1;
    outside->nonce = next_field(&at, end);
    if (!outside->nonce || strlen(outside->nonce) != NONCE_DIGITS ||
        strspn(outside->nonce, "0123456789abcdef") != NONCE_DIGITS ||
        !is_next(&at, end, "shell"))
        return -1;
    outside->shell = next_field(&at, end);
    if (!outside->shell || outside->shell[0] != '/' || !is_next(&at, end, "end"))
        return -1;
    return at == end ? 0 : -1;
}

static char *read_file(int dir, size_t *len_bytes)
{
    CLEANUP_FD int fd =
        openat(dir, "outside", O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        die_errno("open outside");
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        die("outside is not a file of this user");
    char *bytes = xcalloc(1, FILE_MAX_BYTES);
    ssize_t len = read_full(fd, bytes, FILE_MAX_BYTES);
    if (len < 0)
        die_errno("read outside");
    *len_bytes = (size_t)len;
    return bytes;
}

/* Signals of the terminal are for the line. */
static void ignore_terminal(void)
{
    static const int ignored[] = {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE};
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)sigaction(ignored[i], &action, NULL);
}

static void default_signals(const sigset_t *mask)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    for (int signum = 1; signum < NSIG; signum++)
        (void)sigaction(signum, &action, NULL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Runs the line's shell. Does not return; an error goes to the launcher as errno. */
static void exec_shell(const char *shell, const char *dir, const sigset_t *mask, int pipe)
{
    CLEANUP_FREE char *script = xasprintf("%s/outside.zsh", dir);
    const char *argv[] = {shell, "-f", script, dir, NULL};
    default_signals(mask);
    (void)execv(shell, (char *const *)argv);
    int number = errno;
    (void)write_all(pipe, &number, sizeof number);
    _exit(126);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reaps all that has ended. True when the line's shell was among them. */
static bool reap(pid_t shell, int *status)
{
    bool ended = false;
    int one;
    for (pid_t pid; (pid = waitpid(-1, &one, WNOHANG)) > 0;)
        if (pid == shell) {
            *status = one;
            ended = true;
        }
    return ended;
}

/* Ends everything below this process. Returns how many could not be ended. */
static int end_tree(void)
{
    const struct timespec moment = {.tv_nsec = ROUND_NS};
    const int64_t term = now_ms() + TERM_MS, last = term + KILL_MS;
    int signum = SIGTERM, status, alive;
    while ((alive = keep_signal_below(getpid(), signum)) > 0 && now_ms() < last) {
        (void)nanosleep(&moment, NULL);
        (void)reap(-1, &status);
        signum = now_ms() < term ? 0 : SIGKILL;
    }
    return alive;
}

/* Waits for the end of the line, or for a signal to end it. */
static void follow(pid_t shell, const sigset_t *waited)
{
    int status = 0;
    bool ended = false;
    while (!ended) {
        int signum = sigwaitinfo(waited, NULL);
        if (signum == SIGTERM || signum == SIGHUP)
            break;
        ended = reap(shell, &status);
    }
    report.survivors = end_tree();
    if (!ended)
        ended = reap(shell, &status) || waitpid(shell, &status, WNOHANG) == shell;
    if (ended && WIFEXITED(status))
        report.exit_code = WEXITSTATUS(status);
    else
        report.signal = ended ? WTERMSIG(status) : SIGKILL;
}

static int run(const struct outside *outside, const char *dir)
{
    sigset_t waited, old;
    int pipe[2], number = 0;
    (void)sigemptyset(&waited);
    (void)sigaddset(&waited, SIGCHLD);
    (void)sigaddset(&waited, SIGTERM);
    (void)sigaddset(&waited, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &waited, &old);
    stage("start");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        die_errno("subreaper");
    if (pipe2(pipe, O_CLOEXEC) < 0)
        die_errno("pipe");
    ignore_terminal();
    pid_t shell = fork();
    if (shell < 0)
        die_errno("fork");
    if (shell == 0)
        exec_shell(outside->shell, dir, &old, pipe[1]);
    (void)close(pipe[1]);
    if (read_full(pipe[0], &number, sizeof number) == sizeof number) {
        errno = number;
        die_errno("run %s", outside->shell);
    }
    report_started(&report);
    (void)close(pipe[0]);
    follow(shell, &waited);
    return report_finish(&report);
}

/* The launcher ends with the shell that started it, and takes the line along. */
static void end_with_parent(void)
{
    pid_t parent = getppid();
    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0)
        die_errno("parent death signal");
    if (getppid() != parent)
        die("the process that started the launcher is gone");
}

int outside_run(const char *call_dir)
{
    struct outside outside;
    size_t len = 0;
    die_sink(fail);
    stage("call directory");
    report.dir = report_open_dir(call_dir);
    CLEANUP_FREE char *bytes = read_file(report.dir, &len);
    stage("line");
    if (outside_parse(&outside, bytes, len) < 0)
        die("the file `outside` is malformed");
    report.nonce = outside.nonce;
    stage("descriptors");
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_ON_EXEC) < 0)
        die_errno("close_range");
    stage("parent");
    end_with_parent();
    return run(&outside, call_dir);
}
