#!/usr/bin/env bash
# How efrd starts and stops: one daemon a data directory, stale and foreign sockets, the roots and
# their refusals, a socket from systemd, SIGTERM, SIGHUP, SIGKILL, a database that is refused.
# The cases are in daemon_start.py; this file gives them a home of their own.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
new_home
EFR_BIN=$EFR_BIN timeout "$((limit * 4))" python3 "$tests/e2e/daemon_start.py" "$T" || fail "daemon_start.py"
say "ok"
