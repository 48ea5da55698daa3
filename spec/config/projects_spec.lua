local projects = require "efr.config.projects"

local A, B = "019a9b1c-0000-7000-8000-00000000000a", "019a9b1c-0000-7000-8000-00000000000b"
local FILE = ([[
# my projects

# the app
[[projects%%]
id = "%s"   # do not change
root = "/home/u/p/app/"
name = "app"

# the other
[[projects%%]
root = "/home/u/p/b"
id = "%s"
# the end
]]):gsub("%%%%", "]"):format(A, B)

describe("config.projects", function()
  it("reads entries", function()
    assert.same({
      { id = A, root = "/home/u/p/app", name = "app" }, { id = B, root = "/home/u/p/b" },
    }, projects.load(FILE))
    assert.same({}, projects.load(nil))
    assert.same({}, projects.load("# nothing\n"))
  end)

  it("names what is wrong", function()
    local function err(text) return select(2, projects.load(text, "P")) end
    assert.equal("P line 1 column 1: unknown key x", err "x = 1")
    assert.equal("P line 2 column 3: projects: id is missing", err "\n[[projects]]\nroot = '/x'")
    assert.is_truthy(err("[[projects]]\nid='" .. A .. "'\nroot='x'"):find("an absolute path"))
    assert.is_truthy(err("[[projects]]\nid='" .. A .. "'\nroot='/x'\ncolour=1"):find("colour"))
    assert.is_truthy(err("projects = 1"):find("%[%[projects%]%]"))
    local twice = FILE .. "[[projects]]\nid = '019a9b1c-0000-7000-8000-00000000000c'\n" ..
      "root = '/home/u/p/app'\n"
    assert.is_truthy(err(twice):find("given twice"))
  end)

  it("adds at the end and keeps every byte before", function()
    local new = { id = A, root = "/home/u/p/n\tew \"x\"/", name = "N" }
    local first = assert(projects.add(nil, new))
    assert.equal('[[projects]]\nid = "' .. A ..
      '"\nroot = "/home/u/p/n\\tew \\"x\\""\nname = "N"\n', first)
    assert.same({ { id = A, root = "/home/u/p/n\tew \"x\"", name = "N" } }, projects.load(first))
    local text = "# no line end"
    assert.equal(text .. "\n\n" .. first:sub(1, -2), projects.add(text, new))
  end)

  it("refuses a second entry of a root", function()
    local text, err, code = projects.add(FILE, { id = B, root = "/home/u/p/app" })
    assert.same({ "conflict" }, { text or code })
    assert.equal("/home/u/p/app is already a project", err)
    assert.equal("invalid", select(3, projects.add(FILE, { id = B, root = "x" })))
  end)

  it("removes an entry and keeps the comments around it", function()
    local text, gone = projects.remove(FILE, "/home/u/p/app")
    assert.same({ id = A, root = "/home/u/p/app", name = "app" }, gone)
    assert.equal("# my projects\n\n# the app\n# the other\n[[projects]]\n" ..
      'root = "/home/u/p/b"\nid = "' .. B .. '"\n# the end\n', text)
    assert.equal("not_found", select(3, projects.remove(text, "/home/u/p/app")))
    local added = assert(projects.add("# c\n", { id = A, root = "/x" }))
    assert.equal("# c\n", projects.remove(added, "/x"))
  end)

  it("edits the array form as well", function()
    local text = ("projects = [{id = '%s', root = '/x'}] # c\n"):format(A)
    assert.equal("/x", projects.load(text)[1].root)
    assert.equal("projects = [] # c\n", projects.remove(text, "/x"))
    assert.equal(("projects = [{id = '%s', root = '/x'}, { id = \"%s\", root = \"/y\" }] # c\n")
      :format(A, B), projects.add(text, { id = B, root = "/y" }))
  end)

  it("knows roots that are too wide", function()
    assert.is_true(projects.check_root("/home/u/p", "/home/u"))
    assert.is_true(projects.check_root("/home/u2", "/home/u"))
    for _, root in ipairs { "/", "/home", "/home/u", "/home/u/" } do
      assert.equal("invalid", select(3, projects.check_root(root, "/home/u")))
      assert.is_true(projects.check_root(root, "/home/u", true))
    end
    assert.is_nil((projects.check_root("/home/u/\xff", "/home/u")))
  end)

  it("finds the deepest project of a directory", function()
    local all = { { id = A, root = "/p" }, { id = B, root = "/p/sub" } }
    assert.equal(A, projects.containing(all, "/p/subway").id)
    assert.equal(B, projects.containing(all, "/p/sub/x").id)
    assert.equal(A, projects.containing(all, "/p").id)
    assert.is_nil(projects.containing(all, "/q"))
    assert.equal(A, projects.containing({ { id = A, root = "/" } }, "/q").id)
  end)
end)
