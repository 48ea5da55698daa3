#!/bin/bash
# The write fence in a test build that leaves Landlock out: the read-only mounts alone must give the
# same answers (Landlock covers neither chmod nor utimes nor attributes, and older kernels know less).
EFR_BUILD=${EFR_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build}
export EFR_SBX=$EFR_BUILD/test/efr-sbx-unsafe EFR_SBX_TEST_UNSAFE=no-landlock
exec bash "$(dirname "$0")/files.sh"
