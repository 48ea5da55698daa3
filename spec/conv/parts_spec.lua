local changes = require "efr.conv.changes"
local git = require "efr.conv.git"
local json = require "spec.support.json"
local machine = require "efr.conv.machine"
local queue = require "efr.conv.queue"
local rebuild = require "efr.conv.rebuild"
local scratch = require "efr.conv.scratch"
local world_of = require "spec.support.world"

describe("conv.queue", function()
  local function item(id, recorded) return { turn_id = id, recorded = recorded, tty = "t" } end

  it("keeps a prompt that is being recorded in its place and does not let it start", function()
    local q = queue.new()
    local a, b = item("a", false), item("b", true)
    q:push(a)
    q:push(b)
    assert.is_nil(q:take())
    assert.is_nil(q:find("a"))
    assert.equal(b, q:find("b"))
    a.recorded = true
    assert.equal(a, q:take())
    assert.equal(b, q:take())
    assert.is_nil(q:take())
  end)

  it("puts removed prompts back where they stood", function()
    for _, wanted in ipairs({ { 1 }, { 2 }, { 1, 3 }, { 2, 3 }, { 1, 2, 3, 4 } }) do
      local q, removed = queue.new(), {}
      for n = 1, 4 do q:push(item("p" .. n, true)) end
      for i = #wanted, 1, -1 do
        local taken = q.items[wanted[i]]
        table.insert(removed, 1, { item = taken, at = wanted[i] })
        q:remove(taken)
      end
      q:restore(removed)
      for n = 1, 4 do assert.equal("p" .. n, q.items[n].turn_id) end
    end
  end)
end)

describe("conv.changes", function()
  local function sum(...)
    local out = {}
    for _, files in ipairs({ ... }) do changes.add(out, { files = files }) end
    return changes.total(out, function(list) return list end)
  end

  it("adds up what happened to a file", function()
    local function file(kind) return { { path = "a", kind = kind, added = 2, removed = 1 } } end
    assert.same({ files = { { path = "a", kind = "added", added = 4, removed = 2 } }, added = 4,
      removed = 2 }, sum(file("added"), file("modified")))
    assert.equal("modified", sum(file("deleted"), file("added")).files[1].kind)
    assert.equal("deleted", sum(file("modified"), file("deleted")).files[1].kind)
    assert.is_nil(sum(file("added"), file("deleted")))
    assert.is_nil(sum())
  end)

  it("lists 50 files by path and counts the others", function()
    local files = {}
    for n = 60, 1, -1 do
      files[#files + 1] = { path = ("%03d"):format(n), kind = "modified", added = 1, removed = 0 }
    end
    local total = sum(files)
    assert.equal(50, #total.files)
    assert.equal("001", total.files[1].path)
    assert.equal(10, total.more)
    assert.equal(60, total.added)
  end)
end)

describe("conv.scratch", function()
  it("makes slugs of titles", function()
    for title, slug in pairs({
      ["Fix the failing Test, please: now and later"] = "fix-the-failing-test-please",
      ["ünï çode"] = "n-ode", ["!!!"] = "conversation", [""] = "conversation",
      [("a"):rep(99)] = ("a"):rep(48),
    }) do
      assert.equal(slug, scratch.slug(title))
    end
  end)

  it("never takes a directory without its marker, and uses the next name", function()
    local id = "00000000-0000-7000-8000-0000000000ab"
    local fs = world_of.fs({})
    local opts = { id = id, title = "t", date = "2026-01-02" }
    fs.tree["/s/2026-01-02-t-000000ab"] = true
    local dir = scratch.ensure(fs, "/s", opts)
    assert.equal("/s/2026-01-02-t-0000000000ab", dir)
    assert.equal(dir, scratch.ensure(fs, "/s", { id = id, title = "other", date = "2027-01-01" }))
    fs.tree[dir .. "/.efr-conversation"] = "another\n"
    assert.equal("/s/2026-01-02-t-" .. id, scratch.ensure(fs, "/s", opts))
  end)
end)

describe("conv.git", function()
  it("asks git for the branch, or for the commit of a detached head", function()
    local fs = world_of.fs({ ["/a/.git"] = true, ["/a/.git/HEAD"] = "x", ["/a/b"] = true,
      ["/w/.git"] = "gitdir: /a/.git/worktrees/w\n", ["/a/.git/worktrees/w/HEAD"] = "x",
      ["/a/.git/worktrees/w"] = true, ["/a/.git/worktrees/w/commondir"] = "../..\n" })
    local asked, answers = {}, {}
    local port = { within = function()
      return function(what)
        asked[#asked + 1] = what.root .. " " .. table.concat(what.args, " ")
        local out = answers[what.args[1]]
        return out and { code = 0, out = out } or nil
      end
    end }
    assert.same({ "/a" }, { git.find(fs, port, "/a/b") })
    assert.same({ "/a branch --show-current", "/a rev-parse --short=12 HEAD" }, asked)
    answers.branch = "x/y\n"
    assert.same({ "/a", "x/y" }, { git.find(fs, port, "/a/b") })
    answers = { branch = "", ["rev-parse"] = "0123456789ab\n" }
    assert.same({ "/w", "0123456789ab" }, { git.find(fs, port, "/w") })
    assert.is_nil(git.find(fs, port, "/"))
  end)
end)

describe("conv.machine", function()
  it("seals the configuration under its name and its real path", function()
    local fs = world_of.fs({})
    function fs.realpath(path)
      if path == "/home/u/.config/efr/config.toml" then return "/home/u/dotfiles/efr.toml" end
      if path == "/home/u" then return "/data/u" end
      return path
    end
    local world = world_of.new()
    world.app.ports.fs = fs
    local facts = machine.facts(world.app, { scratch = "/x" })
    assert.same({ "/data/u" }, facts.aliases)
    local sealed = table.concat(facts.write_sealed, " ")
    assert.is_truthy(sealed:find("/home/u/dotfiles/efr.toml", 1, true))
    assert.is_truthy(sealed:find("/home/u/.config/efr", 1, true))
    assert.equal("/home/u/.local/share/efr/secrets", facts.secrets_dir)
    local masks = table.concat(facts.masks, " ")
    assert.is_truthy(masks:find("/home/u/.local/share/efr/efr.sqlite", 1, true))
    assert.is_nil(masks:find("scratch", 1, true))
  end)
end)

describe("conv.rebuild", function()
  local function messages(...)
    local rows = {}
    for i, event in ipairs({ ... }) do rows[i] = { kind = event[1], event = event[2] } end
    local out = {}
    for i, message in ipairs(rebuild.messages(json, rows)) do
      local parts = { message.role }
      for _, block in ipairs(message.content) do
        parts[#parts + 1] = block.text or block.output or block.name
      end
      out[i] = table.concat(parts, "|")
    end
    return out
  end

  it("joins the calls of one answer and gathers their results", function()
    assert.same({ "user|p", "assistant|a|f|g", "user|1|2", "assistant|b" }, messages(
      { "prompt_queued", { text = "p" } },
      { "assistant_message_completed", { index = 0, text = "a" } },
      { "tool_call_started", { call_id = "x", tool = "f" } },
      { "tool_call_completed", { call_id = "x", output = "1" } },
      { "tool_call_started", { call_id = "y", tool = "g" } },
      { "tool_call_completed", { call_id = "y", output = "2" } },
      { "assistant_message_completed", { index = 1, text = "b" } }))
  end)

  it("uses the updates of a text that was not completed", function()
    assert.same({ "user|p", "assistant|hello" }, messages(
      { "prompt_queued", { text = "p" } },
      { "assistant_message_updated", { index = 0, offset = 0, delta = "hel" } },
      { "assistant_message_updated", { index = 0, offset = 3, delta = "lo" } }))
  end)

  it("gives a call without an end a result that says so", function()
    assert.same({ "user|p", "assistant|f", "user|The call did not finish. It may or may not "
      .. "have run." }, messages({ "prompt_queued", { text = "p" } },
      { "tool_call_started", { call_id = "x", tool = "f" } }))
  end)
end)
