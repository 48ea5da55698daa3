#!/usr/bin/env bash
# Also as root.
# ./dev demo as a user sees it: the failing test, the edit, the passing test, the write that was asked about,
# what the turn changed. The scripted model decides from the results, so a wrong one shows here.
. "$(dirname "$0")/lib.sh"
new_home
out=$(bash "$tests/demo/demo.sh" "$(dirname "$EFR_BIN")" 2>&1 | plain) || fail "the demo failed: $out"
contains "$out" 'words were counted as 6' 'the failing test'
contains "$out" 'count=\$\(\(count \+ 1\)\)' 'the edit'
contains "$out" 'allow ~/efr-demo-outside.txt writable for this call' 'the question about the write'
contains "$out" '✗ denied' 'the answer'
contains "$out" "cannot access '.*efr-demo-outside.txt'" 'the file that was not made'
contains "$out" '1 file changed, \+1 .1' 'what the turn changed'
contains "$out" 'ok: three words are 3' 'the passing test in the shell of the user'
contains "$out" 'base_url = ' 'how to connect a model'
lacks "$out" 'The demo stops here' 'the demo'
