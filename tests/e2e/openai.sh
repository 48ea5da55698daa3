#!/usr/bin/env bash
# The OpenAI-compatible provider against a loopback server, through the whole of efr: a call in pieces
# runs in the sandbox and its output goes back, the key stands in no file but its own, retry on 503,
# a refused connection names the base URL, a broken stream fails the turn and keeps the text.
. "$(dirname "$0")/lib.sh"
new_home
key=sk-test-0123456789abcdef
cat >"$T/plan.json" <<'EOF'
[
  {"text": "I look.", "calls": [{"name": "shell", "arguments": "{\"command\": \"print out-$((40+2))\"}"}], "chunk": 7},
  {"text": "It printed ünï 42.", "chunk": 5},
  {"status": 503, "headers": {"Retry-After": "0"}, "body": "{\"error\":{\"message\":\"busy\"}}"},
  {"text": "after a retry"},
  {"status": 401, "body": "{\"error\":{\"message\":\"no such key\"}}"},
  {"text": "half an ans", "fault": "cut"},
  {"text": "never"}
]
EOF

coproc SERVER { exec python3 "$tests/fake/openai_server.py" "$T/plan.json" "$T/requests"; }
# shellcheck disable=SC2153 # bash sets it
server_pid=$SERVER_PID
IFS=' ' read -r -t "$limit" _ port <&"${SERVER[0]}" || fail 'the model server did not start'
stop_server() {
    eval "exec ${SERVER[1]}>&-"
    wait_gone "$server_pid"
}
cat >"$HOME/.config/efr/config.toml" <<EOF
[model]
name = "local-model"
[openai_compatible]
base_url = "http://127.0.0.1:$port/v1"
[permissions]
mode = "auto"
EOF
cd "$P"
project
equals "$(efr login openai-compatible --no-check <<<"$key")" \
    "logged in to openai-compatible with key sk-test-...cdef (not checked)" 'login'
equals "$(stat -c %a "$HOME/.local/share/efr/secrets/openai-compatible.json")" 600 'mode of the key file'

out=$(efr send -- 'run it')
equals "$out" $'I look.\n\nIt printed ünï 42.' 'reply'
second=$(sed -n 2p "$T/requests")
contains "$second" 'out-42' 'the request with the result'
contains "$second" "Bearer $key" 'the authorization'
contains "$(sed -n 1p "$T/requests")" '/v1/chat/completions' 'path'

equals "$(efr send -- again 2>"$T/err")" 'after a retry' 'reply after 503'
rc=0
efr send -- more >"$T/out" 2>"$T/err" || rc=$?
equals $rc 1 'status of 401'
contains "$(cat "$T/err")" 'efr login openai-compatible' 'the way out of 401'
rc=0
efr send -- half >"$T/out" 2>"$T/err" || rc=$?
equals $rc 1 'status of a stream that was cut'
contains "$(cat "$T/out")" 'half' 'the text that had arrived'
stop_server
rc=0
efr send -- gone >"$T/out" 2>"$T/err" || rc=$?
equals $rc 1 'status without a server'
contains "$(cat "$T/err")" "127.0.0.1:$port" 'the base URL'

# The key is in its own file and nowhere else that efr writes.
stop_daemon
equals "$(grep -rlaF "$key" "$HOME" | grep -v '/secrets/openai-compatible.json$' || true)" '' 'files with the key'
equals "$(
    efr logout openai-compatible >/dev/null
    ls "$HOME/.local/share/efr/secrets"
)" '' 'after logout'
