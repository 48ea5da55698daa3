-- sandbox.explain: what a contained call would find at a path, and which rule says so. Reads
-- nothing of what lies there.
-- Main thread of efrd; waits.

local explain = require "efr.sbx.explain"

local MAX_PATH <const> = 4096

-- The options of a call of this directory, in which something more may be written.
local function options_of(app, cwd, params)
  local grants = {}
  for i, word in ipairs(params.write or {}) do
    local path, message = explain.named(app.ports.fs, word, cwd, app.env.HOME)
    if not path then
      return nil, ("%s: %s"):format(word, message), "invalid"
    end
    grants[i] = { kind = "write", path = path }
  end
  local project = app.projects:containing(cwd)
  return {
    conversation_id = "probe", call_id = "explain", cwd = cwd, argv = { "true" },
    project_root = project and project.root, grants = grants,
  }
end

local function handler(app, _, params)
  local cwd = params.cwd or app.env.HOME or "/"
  local answers, dead = app.sandbox:answers({ cwd = cwd, extra_write = params.write })
  if not answers then
    return nil, dead, "conflict"
  end
  local real, err = app.ports.fs.realpath(cwd)
  if not real then
    return nil, ("directory %s: %s"):format(cwd, err), "invalid"
  end
  local opts, message, code = options_of(app, real, params)
  if not opts then
    return nil, message, code
  end
  local path
  path, message = explain.named(app.ports.fs, params.path, real, app.env.HOME)
  if not path then
    return nil, ("%s: %s"):format(params.path, message), "invalid"
  end
  local out
  out, message = app.sandbox:explain(opts, path)
  if not out then
    return nil, message, "conflict"
  end
  for _, name in ipairs({ "hidden_below", "read_only_below", "nested" }) do
    out[name] = out[name] and app.ports.json.array(out[name])
  end
  out.project, out.mode = opts.project_root, "auto"
  return out
end

return {
  method = "sandbox.explain",
  scope = "read",
  params = {
    path = { type = "string", min = 1, max = MAX_PATH },
    cwd = { type = "string", min = 1, max = MAX_PATH, optional = true },
    write = {
      type = "list", max = 64, items = { type = "string", min = 1, max = MAX_PATH },
      optional = true,
    },
  },
  handler = handler,
}
