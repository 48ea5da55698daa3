# The seccomp programs against the system call tables of the headers: seccomp.py PROGRAMS. Runs every
# program of both architectures in a small machine of its own, for every call number and for the
# arguments that matter, and compares the answers with the table below (the specification's).
# A call of the headers that is newer than the programs know fails: somebody has to look at it.
import errno
import re
import sys

ALLOW, KILL, ERRNO, NOTIFY = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
HEADERS = {"x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "/usr/include/asm-generic/unistd.h"}
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NEWEST = 467
# Calls that are newer than the headers of Debian 12, with one number on every architecture.
LATER = {"quotactl_fd": 443, "fchmodat2": 452, "lsm_set_self_attr": 460, "open_tree_attr": 467}
# Missing on aarch64, or not in the generic table.
ONLY_X86 = {"iopl", "ioperm", "chmod", "creat", "mknod", "open"}

EPERM = """keyctl add_key request_key bpf perf_event_open userfaultfd mount umount2 pivot_root chroot
move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr setns unshare open_by_handle_at
name_to_handle_at kexec_load kexec_file_load init_module finit_module delete_module reboot swapon
swapoff acct iopl ioperm open_tree_attr fanotify_init quotactl quotactl_fd vhangup lsm_set_self_attr""".split()
ENOSYS = "io_uring_setup io_uring_enter io_uring_register clone3 openat2".split()
IOCTLS = [0x5412, 0x541C, 0x5423, 0x540C, 0x50009401, 0x5000940E, 0x50009417, 0x50009418]
NAMESPACES = [1 << bit for bit in (17, 25, 26, 27, 28, 29, 30)]
HIGH = 0xABCD00000000  # the upper half of a register is nothing the kernel looks at

failed = []


def error(name):
    return ERRNO | getattr(errno, name)


def read_programs(path):
    programs, machine = {}, None
    for line in open(path):
        found = re.search(r"defined\(__(\w+?)__\)", line)
        machine = found.group(1) if found else machine
        found = re.match(r"static const struct sock_filter (\w+)", line)
        if found:
            code = programs.setdefault(machine, {})[found.group(1)] = []
        found = re.match(r"\s+\{0x(\w+), (\d+), (\d+), 0x(\w+)\}", line)
        if found:
            code.append((int(found.group(1), 16), int(found.group(2)), int(found.group(3)), int(found.group(4), 16)))
    return programs


def run(code, machine, number, args=()):
    words = [number & 0xFFFFFFFF, machine, 0, 0]
    for value in list(args) + [0] * (6 - len(args)):
        words += [value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF]
    at, register = 0, 0
    tests = {0x15: lambda k: register == k, 0x25: lambda k: register > k, 0x35: lambda k: register >= k,
             0x45: lambda k: register & k != 0}
    while True:
        what, yes, no, k = code[at]
        at += 1
        if what == 0x06:
            return k
        if what == 0x20:
            register = words[k // 4]
        elif what == 0x54:
            register &= k
        elif what == 0x05:
            at += k
        else:
            at += yes if tests[what](k) else no


def table(machine):
    calls = dict(LATER)
    for line in open(HEADERS[machine]):
        found = re.match(r"#define __NR3264_(\w+)\s+(\d+)$", line) or re.match(r"#define __NR_(\w+)\s+(\d+)$", line)
        if found and found.group(1) not in ("syscalls", "arch_specific_syscall"):
            calls[found.group(1)] = int(found.group(2))
    return calls


def check(what, got, want):
    if got != want:
        failed.append("%s: 0x%x, not 0x%x" % (what, got, want))


def answers(name, closed_modes, subject):
    """(arguments, answer) pairs of one call."""
    if name in ("connect", "openat2") and subject == "INIT":
        return [((), ALLOW)]
    if name in ("clone", "unshare", "chroot") and subject == "USERNS":
        return [((flag,), ALLOW) for flag in NAMESPACES]
    if name == "connect":
        return [((), NOTIFY)]
    if name in EPERM:
        return [((), error("EPERM"))]
    if name in ENOSYS:
        return [((), error("ENOSYS"))]
    if name == "ioctl":
        return [((0, n | HIGH), error("EPERM")) for n in IOCTLS] + [((0, n), ALLOW) for n in (0x5401, 0x5413, 0)]
    if name == "clone":
        return [((flag | HIGH | 17,), error("EPERM")) for flag in NAMESPACES] + [((0x3D0F00,), ALLOW)]
    if name == "prlimit64":
        return [((1 | HIGH, 7), error("EPERM")), ((0, 7), ALLOW), ((2, 7), ALLOW)]
    if name in ("socket", "socketpair"):
        both = [((family | HIGH, 1, 0), ALLOW if family in (1, 2, 10, 16) else error("EAFNOSUPPORT"))
                for family in range(0, 300)]
        types = [((1, kind | flags, 0), ALLOW if kind in (1, 5) else error("EPROTONOSUPPORT"))
                 for kind in range(0, 12) for flags in (0, 0o4000, 0o2000000)]
        return both + types + [((family, kind, 262), error("EPROTONOSUPPORT")) for family in (2, 10) for kind in (1, 2)]
    place = {"chmod": 1, "fchmod": 1, "creat": 1, "mknod": 1, "fchmodat": 2, "fchmodat2": 2, "mknodat": 2,
             "open": 2, "openat": 3}.get(name)
    if place is None:
        return [((), ALLOW), ((~0 & (1 << 64) - 1,) * 6, ALLOW)]
    result = []
    for mode in range(0, 0o10000, 0o100):
        args = [0] * place + [mode | HIGH]
        want = error("EPERM") if mode & closed_modes else ALLOW
        if name in ("open", "openat"):
            result.append((tuple(args), ALLOW))
            for flag in (0o100, 0o20200000):
                args[place - 1] = flag
                result.append((tuple(args), want))
        else:
            result.append((tuple(args), want))
    return result


def check_program(machine, name, code, calls):
    arch = MACHINES[machine]
    subject, user = name.split("_")[1:]
    closed_modes = 0o6000 if user == "ROOT" else 0o4000
    names = {number: call for call, number in calls.items()}
    for number in range(NEWEST + 1):
        call = names.get(number, "unknown")
        for args, want in answers(call, closed_modes, subject):
            check("%s %s: %s (%d)%r" % (machine, name, call, number, args), run(code, arch, number, args), want)
    for number in list(range(NEWEST + 1, NEWEST + 200)) + [0x3FFFFFFF, 0xFFFFFFFF]:
        check("%s %s: %d" % (machine, name, number), run(code, arch, number), error("ENOSYS"))
    for number in (0x40000000, 0x40000027, 0x400003FF, 0x7FFFFFFF):
        check("%s %s: x32 %x" % (machine, name, number), run(code, arch, number), KILL)
    for other in (0x40000003, 0x40000028, 0xC00000F3, *set(MACHINES.values()) - {arch}):
        check("%s %s: machine %x" % (machine, name, other), run(code, other, 39), KILL)


def main():
    programs = read_programs(sys.argv[1])
    checked = 0
    for machine, header in HEADERS.items():
        calls = table(machine)
        for name, number in calls.items():
            if NEWEST < number < 1000:
                failed.append("%s: %s (%d) is newer than the programs know" % (machine, name, number))
        for name in EPERM + ENOSYS + ["connect", "ioctl", "clone", "socket", "fchmodat", "openat"]:
            if name not in calls and not (machine != "x86_64" and name in ONLY_X86):
                failed.append("%s: the headers have no %s" % (machine, name))
        for name, code in programs[machine].items():
            check_program(machine, name, code, calls)
            checked += 1
    print("\n".join(failed[:30]) if failed else "%d programs answer as the table says" % checked)
    return bool(failed)


sys.exit(main())
