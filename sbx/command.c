/* See command.h. The two processes talk over a socket pair: the child sends its listener (or
 * why it failed), waits for one byte, and executes; then the channel closes by itself. */
#include "command.h"

#include "bounds.h"
#include "caps.h"
#include "env.h"
#include "seccomp.h"
#include "util.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RECORDS_FD 3

struct report_text {
    int error;       /* errno of exec, or 0 */
    char text[1000]; /* why the child failed before, or empty */
};

static int child_channel = -1;

static void child_failed(const char *text)
{
    struct report_text report = {0};
    (void)snprintf(report.text, sizeof report.text, "%s", text);
    (void)!send(child_channel, &report, sizeof report, MSG_NOSIGNAL);
    _exit(EFR_EXIT_SETUP);
}

/* A report and room for one descriptor beside it. */
struct message {
    struct report_text report;
    struct iovec part;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr head;
};

/* Points the parts of an empty message at each other; it must not move afterwards. */
static void message_init(struct message *message)
{
    memset(message, 0, sizeof *message);
    message->part =
        (struct iovec){.iov_base = &message->report, .iov_len = sizeof message->report};
    message->head = (struct msghdr){.msg_iov = &message->part,
                                    .msg_iovlen = 1,
                                    .msg_control = &message->control,
                                    .msg_controllen = sizeof message->control.room};
}

static void send_listener(int listener)
{
    struct message message;
    message_init(&message);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message.head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &listener, sizeof listener);
    if (sendmsg(child_channel, &message.head, MSG_NOSIGNAL) < 0)
        die_errno("send the listener");
    (void)close(listener);
}

/* A group of its own, so that a signal to the group never reaches the launcher. */
static void take_group(const struct init_args *args)
{
    if (setpgid(0, 0) < 0)
        die_errno("setpgid");
    /* All signals are blocked here, so a background process may do this. */
    if (args->foreground && tcsetpgrp(args->terminal_fd, getpid()) < 0)
        die_errno("tcsetpgrp");
}

static void default_signals(const sigset_t *mask)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

static void place_descriptors(const struct init_args *args)
{
    /* The channel moves out of the way first: it may be descriptor 3 itself. */
    int moved = fcntl(child_channel, F_DUPFD_CLOEXEC, 10);
    if (moved < 0)
        die_errno("move the channel");
    child_channel = moved;
    unsigned int first = RECORDS_FD;
    if (args->records_fd >= 0) {
        if (args->records_fd == RECORDS_FD) {
            if (fcntl(RECORDS_FD, F_SETFD, 0) < 0)
                die_errno("records");
        } else if (dup2(args->records_fd, RECORDS_FD) < 0) {
            die_errno("records");
        }
        first = RECORDS_FD + 1;
    }
    if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        die_errno("close_range");
}

static void run_child(const struct init_args *args) __attribute__((noreturn));

static void run_child(const struct init_args *args)
{
    struct report_text report = {0};
    char byte;
    die_sink(child_failed);
    stage("command");
    take_group(args);
    place_descriptors(args);
    bounds_for_command(args->plan);
    environ = env_build(args->plan, environ);
    if (caps_keep_only(0) < 0)
        die_errno("capabilities");
    stage("seccomp");
    int listener = seccomp_enter_command(args->plan->uid == 0, args->plan->userns);
    if (listener < 0)
        die_errno("no listener for connect");
    send_listener(listener);
    if (recv(child_channel, &byte, 1, 0) != 1)
        _exit(EFR_EXIT_SETUP);
    default_signals(&args->mask);
    (void)execvp(args->plan->argv.items[0], (char *const *)args->plan->argv.items);
    report.error = errno;
    (void)!send(child_channel, &report, sizeof report, MSG_NOSIGNAL);
    _exit(EFR_EXIT_SETUP);
}

void command_fork(struct command *command, const struct init_args *args)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        die_errno("socketpair");
    command->pid = fork();
    if (command->pid < 0)
        die_errno("fork");
    if (command->pid == 0) {
        child_channel = ends[1];
        run_child(args);
    }
    (void)close(ends[1]);
    command->channel = ends[0];
    command->listener = -1;
}

int command_listener(struct command *command)
{
    struct message message;
    message_init(&message);
    ssize_t len = recvmsg(command->channel, &message.head, MSG_CMSG_CLOEXEC);
    if (len != sizeof message.report)
        die("the command ended before it began");
    if (message.report.text[0])
        die("%.900s", message.report.text);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message.head);
    if (!head || head->cmsg_type != SCM_RIGHTS)
        die("no listener arrived");
    memcpy(&command->listener, CMSG_DATA(head), sizeof command->listener);
    return command->listener;
}

int command_go(struct command *command)
{
    struct report_text report = {0};
    if (send(command->channel, "", 1, MSG_NOSIGNAL) != 1)
        die_errno("start the command");
    ssize_t n = recv(command->channel, &report, sizeof report, 0);
    (void)close(command->channel);
    return n == sizeof report ? report.error : 0;
}
