#!/bin/bash
# The seccomp programs of both architectures, call by call, against the headers of this machine.
# Not covered: what the kernel does with an answer (kernel.sh).
exec python3 "$(dirname "$0")/seccomp.py" "${EFR_BUILD:-$(dirname "$0")/../../build}/gen/sbx/seccomp_programs.h"
