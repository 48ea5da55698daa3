# lib_exits.sh: what the tests of exits share. Source it after lib.sh, new_home and config.
# Owns: the scripted model that runs the prompt as one call, asking and answering, values of what came back.
# shellcheck shell=bash

# exits_model: the prompt's first line is the shell line; a second one, `needs KEY=VALUE...`, is what the call needs; or
# the prompt is `TOOL NAME KEY=VALUE...` for another tool. Values have no blanks; `_` stands for one.
exits_model() {
    model <<'EOT'
local LISTS = { write = true, hosts = true, sockets = true, unmask = true }
local function fields(text)
  local out = {}
  for key, value in text:gmatch("(%S-)=(%S+)") do
    value = value:gsub("_", " ")
    if LISTS[key] then
      out[key] = {}
      for item in value:gmatch("[^,]+") do table.insert(out[key], item) end
    else
      out[key] = value == "true" or value
    end
  end
  return out
end
return function(request)
  local content = request.messages[#request.messages].content
  if request.call > 0 then return { text = "result: " .. content[#content].output } end
  local text = content[#content].text
  local tool, input = text:match("^TOOL (%S+) (.*)$")
  if tool then return { calls = { { name = tool, input = fields(input) } } } end
  local line, needs = text:match("^(.-)\nneeds (.*)$")
  return { calls = { { name = "shell", input = { command = line or text, needs = needs and fields(needs) } } } }
end
EOT
}

# ask MODE PROMPT: the JSON of exits.py in $got.
ask() { got=$(PYTHONPATH=$tests/e2e python3 "$tests/e2e/exits.py" "$run/daemon.sock" "$P" "$1" "$2"); }

# value EXPRESSION: of the JSON, with e = the events by kind (the newest of each).
value() {
    python3 -c 'import json, sys
o = json.loads(sys.argv[1]); e = {x["kind"]: x for x in o["events"]}
print(eval(sys.argv[2]))' "$got" "$1"
}
is() { equals "$(value "$1")" "$2" "$1 in $got"; }
output() { value 'e["tool_call_completed"]["output"]'; }
