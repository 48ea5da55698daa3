/* See report.h. */
#include "report.h"

#include "deletes.h"
#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RECORDS_MAX_BYTES 262144

int report_open_dir(const char *path)
{
    if (path[0] != '/')
        die("--call-dir is not absolute: %s", path);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        die_errno("open %s", path);
    struct stat st;
    if (fstat(fd, &st) < 0)
        die_errno("stat %s", path);
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        die("%s is not a private directory of this user", path);
    return fd;
}

static int create(const struct report *report, const char *name)
{
    return openat(report->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  0600);
}

void report_started(struct report *report)
{
    report->started = true;
    CLEANUP_FD int fd = create(report, "started");
    if (fd < 0)
        die_errno("create started");
}

static void keep(const struct report *report, int from, const char *name, off_t max_bytes)
{
    if (from < 0)
        return;
    off_t len = lseek(from, 0, SEEK_CUR);
    if (len <= 0)
        return;
    if (len > max_bytes)
        len = max_bytes;
    CLEANUP_FREE char *bytes = xcalloc(1, (size_t)len);
    if (lseek(from, 0, SEEK_SET) < 0)
        return;
    ssize_t got = read_full(from, bytes, (size_t)len);
    CLEANUP_FD int fd = create(report, name);
    if (fd < 0 || got < 0 || write_all(fd, bytes, (size_t)got) < 0)
        say("efr-sbx: the %s of this call could not be kept", name);
}

void report_records(const struct report *report, int records_fd)
{
    /* The command shares the file's offset, so the offset is where its stream ends. It can
     * lie about it, but only about its own records. */
    keep(report, records_fd, "records", RECORDS_MAX_BYTES);
}

void report_deletes(const struct report *report, int deletes_fd)
{
    keep(report, deletes_fd, "deletes", DELETES_MAX_BYTES);
}

static size_t add_field(char *out, size_t used, const char *text)
{
    size_t len = strlen(text) + 1;
    memcpy(out + used, text, len);
    return used + len;
}

static size_t add_number(char *out, size_t used, const char *name, int value)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", value);
    used = add_field(out, used, name);
    return add_field(out, used, text);
}

static size_t encode(const struct report *report, char *out)
{
    size_t used = add_field(out, 0, "efr-result");
    used = add_field(out, used, "1");
    used = add_field(out, used, "nonce");
    used = add_field(out, used, report->nonce);
    used = add_number(out, used, "started", report->started);
    used = add_number(out, used, "landlock_abi", report->landlock_abi);
    if (report->landlock_erratum)
        used = add_number(out, used, "landlock_erratum", report->landlock_erratum);
    if (report->exit_code >= 0)
        used = add_number(out, used, "exit_code", report->exit_code);
    if (report->signal)
        used = add_number(out, used, "signal", report->signal);
    if (report->survivors)
        used = add_number(out, used, "survivors", report->survivors);
    if (report->setup_error[0]) {
        used = add_field(out, used, "setup_error");
        used = add_field(out, used, report->setup_error);
    }
    if (report->launch_error[0]) {
        used = add_field(out, used, "launch_error");
        used = add_field(out, used, report->launch_error);
    }
    return add_field(out, used, "end");
}

static int exit_status(const struct report *report)
{
    if (report->setup_error[0])
        return EFR_EXIT_SETUP;
    if (report->signal)
        return 128 + report->signal;
    return report->exit_code >= 0 ? report->exit_code : EFR_EXIT_SETUP;
}

int report_finish(const struct report *report)
{
    if (!report->nonce)
        return exit_status(report);
    char bytes[4096];
    size_t len = encode(report, bytes);
    CLEANUP_FD int fd = create(report, "result.new");
    if (fd < 0 || write_all(fd, bytes, len) < 0 ||
        renameat(report->dir, "result.new", report->dir, "result") < 0) {
        say("efr-sbx: result: cannot be written: %s", strerror(errno));
        return EFR_EXIT_SETUP;
    }
    return exit_status(report);
}
