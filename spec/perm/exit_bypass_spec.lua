-- The lines of spec/data/bypass.jsonl in auto: each one that writes outside of the roots, sends,
-- throws work away or gets more rights shows the right exit; every decision has a reason; in no mode
-- an error. What a line of it does in cautious: bypass_spec.
local calls = require "spec.perm.calls"
local explain = require "efr.perm.explain"
local json = require "efr.json"

local ORDER = { allow = 1, contain = 2, ask = 3, deny = 4 }

-- id of the line = kind of its exit.
local EXITS = {
  -- sends, or reaches a host
  [210] = "host", [213] = "host", [298] = "upload", [299] = "upload", [306] = "outside",
  [308] = "upload", [371] = "outside", [429] = "host", [485] = "host", [498] = "upload",
  [499] = "host", [518] = "host", [519] = "host", [520] = "host", [521] = "upload", [522] = "host",
  [523] = "device",
  -- throws work away
  [98] = "destructive", [390] = "destructive", [392] = "destructive", [393] = "destructive",
  [395] = "destructive", [396] = "destructive",
  -- more rights, or something that lasts
  [427] = "privilege", [475] = "persistence", [477] = "privilege", [478] = "privilege",
  [479] = "persistence", [481] = "desktop_ipc", [483] = "privilege", [484] = "privilege",
  [489] = "privilege",
  -- looks at or changes the host's network
  [466] = "host_view", [467] = "host_view", [468] = "host_view",
}
-- Lines of the groups above that need nothing: the sandbox holds what they do.
local HELD = {
  [211] = "listens on the call's own loopback", [214] = "writes in the project",
  [464] = "the clock is not the call's", [470] = "journals are read-only inside",
  [472] = "needs a capability", [482] = "ends with the call", [488] = "no bus inside",
  [493] = "needs a capability", [494] = "sees the call's processes only",
  [500] = "go's file is read-only inside", [501] = "runs in the sandbox",
  [504] = "runs in the sandbox", [509] = "runs in the sandbox", [510] = "runs in the sandbox",
  [511] = "runs in the sandbox", [513] = "runs in the sandbox", [516] = "runs in the sandbox",
}

local ROWS = {}
for row in io.lines((os.getenv("EFR_SOURCE") or ".") .. "/spec/data/bypass.jsonl") do
  ROWS[#ROWS + 1] = assert(json.decode(row))
end

describe("perm.exits and the bypass lines", function()
  it("shows the exit of each line that leaves the sandbox", function()
    local seen = 0
    for _, row in ipairs(ROWS) do
      local kind = EXITS[row.id]
      local words, decision = calls.exits(row.cmd)
      if kind then
        seen = seen + 1
        assert.is_truthy((" " .. words):find(" " .. kind .. ":", 1, true),
          row.id .. " " .. row.cmd .. " => " .. words)
        assert.is_true(ORDER[decision.effect] >= ORDER.ask)
      elseif row.group == "system" and row.expect == "NOT" then
        assert.is_truthy(HELD[row.id], row.id .. " " .. row.cmd)
      end
    end
    local count = 0
    for _ in pairs(EXITS) do count = count + 1 end
    assert.equal(count, seen)
  end)

  it("needs nothing for the lines that only read", function()
    for _, row in ipairs(ROWS) do
      if row.expect == "read-only" then
        assert.equal("", (calls.exits(row.cmd)), row.cmd)
      end
    end
  end)

  it("decides each line in each mode with reasons, and explain prints the same", function()
    for _, row in ipairs(ROWS) do
      for _, mode in ipairs { "manual", "cautious", "auto", "full" } do
        local decision, input = calls.decide(row.cmd, { mode = mode })
        assert.is_true(#decision.reasons > 0)
        local data = explain.data(decision, input, row.cmd)
        local text = table.concat(explain.text(data), "\n")
        for i, reason in ipairs(decision.reasons) do
          assert.is_falsy(reason.text:find("failed", 1, true), row.cmd)
          assert.equal(reason.text, data.reasons[i])
          assert.is_truthy(text:find(reason.text, 1, true), reason.text)
        end
        assert.equal(decision.effect, data.decision)
      end
    end
  end)
end)
