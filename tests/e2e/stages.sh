#!/usr/bin/env bash
# Also as root.
# kill -9 of efrd while the launch of a call stands at a stage: nothing of the call lives on, no lock is held, the
# next efrd starts and its next call works. CI size some stages, long size all. Not covered: the launcher, pid 1
# and the command killed there (tests/sbx/stages.sh), random moments (kill.sh).
. "$(dirname "$0")/lib.sh"
EFR_BUILD=${EFR_BUILD:-$(dirname "$EFR_BIN")}
stopping=$EFR_BUILD/test/efr-sbx-unsafe
new_home
# The launcher is the test build that stops at the stage that $T/stop names. All of a call has $T/marker as its
# standard error, with a lock on it.
mkdir "$T/bin"
cp "$EFR_BIN"/{efr,efrd,efr-worker} "$T/bin/"
cp "$stopping" "$T/stopping"
cat >"$T/bin/efr-sbx" <<END
#!/bin/bash
export EFR_SBX_MAX_ABI=99
if [[ \$1 == run && -e $T/stop ]]; then
    export EFR_SBX_STOP_AT=\$(<$T/stop)
    exec 2>>$T/marker
    flock -x 2
fi
exec -a efr-sbx $T/stopping "\$@"
END
chmod 755 "$T/bin/efr-sbx"
PATH=$T/bin:$PATH
config auto
model <<'END'
return function(request)
  local last = request.messages[#request.messages]
  local block = last.content[#last.content]
  if block.kind == "tool_result" then return { text = block.output } end
  return { calls = { { name = "shell", input = { command = "print works-$((40+2))" } } } }
end
END
cd "$P"
project
# Behind command its environment is that of a call, with no name of the stage.
stages=(launcher:start init:identity init:mounts init:landlock command:command)
[[ $size == long ]] && stages=(launcher:{parent,descriptors,"call directory",plan,environment,landlock,start,"tool caches"}
    init:{start,identity,network,"read-only root","mount sources",devices,pool,proc,mounts,directory,no_new_privs,landlock,"start of the command","pid 1"}
    command:command)
if [[ ${EFR_SBX_BACKEND-} == bwrap ]]; then # others build a part of it: stages of tests/sbx/stages.py
    stages=(launcher:{start,bubblewrap} init:{start,mounts,landlock} command:command)
    [[ $size == long ]] && stages+=(launcher:{"mount sources",mounts,proc,devices}
        init:{plan,namespaces,directory,no_new_privs,"start of the command","pid 1"})
fi
mounts=$(grep -c . /proc/self/mountinfo)
for stage in "${stages[@]}"; do
    # A turn before it, so that efrd and its hidden shell are there.
    contains "$(efr send -- before 2>&1)" works-42 "the call before $stage"
    : >"$T/marker"
    printf '%s' "$stage" >"$T/stop"
    efr send -- now >/dev/null 2>&1 &
    sender=$!
    for ((i = 0; i < limit * 50; i++)); do
        grep -q stopped "$T/marker" && break
        read -rt 0.02 <> <(:) || true
    done
    grep -q stopped "$T/marker" || fail "$stage was not reached: $(<"$T/marker")"
    stop_daemon KILL
    flock -w "$limit" "$T/marker" true || fail "a process of the call lives on after a kill at $stage"
    wait $sender || true
    rm "$T/stop"
    equals "$(grep -c . /proc/self/mountinfo)" "$mounts" "the mounts after a kill at $stage"
done
contains "$(efr send -- after 2>&1)" works-42 'the call after all'
finish
