-- efr setup: what is set up, and the rest of it after asking: the model, the plugin's line in
-- .zshrc, the sandbox.

local ask = require "efr.cli.ask"
local edit = require "efr.config.edit"
local example = require "efr.config.example"
local screen = require "efr.cli.screen"
local settings = require "efr.cli.settings"
local setup = require "efr.cli.setup"

local M = { summary = "what is set up, what is missing, and the next step" }

local LOCAL_SERVER <const> = "http://localhost:11434/v1"
local RC_MAX <const> = 1024 * 1024

function M.add(parser)
  parser:flag("--check", "only show it; the status is 1 when something is missing")
end

--- Shows the parts.
--- @param parts efr.cli.setup_part[]
--- @return string? step  what comes next; nil: all is there
function M.show(env, parts)
  local style = screen.style(env, 1)
  local step
  for _, part in ipairs(parts) do
    local mark = part.ok and { "ok   ", "success" } or { "todo ", "warning" }
    local words = env.ports.text.printable(part.words)
    env:out(style:row({ mark, { ("%-8s "):format(part.name) }, { words } }) .. "\n")
    if not part.ok then
      step = step or part.step
      env:out(style:row({ { (" "):rep(14) }, { part.step, "code" } }) .. "\n")
    end
  end
  return step
end

-- A value that efrd would refuse is not written.
local function set(env, key, value)
  local path, message, code = settings.change(env, function(text)
    return edit.set(text or example.text(settings.schema(env)), key, value)
  end)
  if not path then
    return nil, message, code
  end
  return true
end

local function ask_model(env)
  env:say("The model is asked over HTTP: a server of your own (Ollama, llama.cpp) or a service.")
  local url = ask.line(env, ("base URL [%s]: "):format(LOCAL_SERVER))
  if not url then
    return nil, "nothing was changed", "EFR_SILENT"
  end
  local name = ask.line(env, "name of the model [the first that the server lists]: ")
  if not name then
    return nil, "nothing was changed", "EFR_SILENT"
  end
  local ok, message, code =
    set(env, "openai_compatible.base_url", url == "" and LOCAL_SERVER or url)
  if ok and name ~= "" then
    ok, message, code = set(env, "model.name", name)
  end
  if ok and ask.only_yes(env, "Does the server want a key?") then
    env:say("then:  efr login openai-compatible")
  end
  return ok, message, code
end

-- One line at the end of the file, which keeps its mode; a link's target is written.
local function add_plugin(env, path, plugin)
  local fs = env.ports.fs
  local target = fs.realpath(path) or path
  local text, message, code = fs.read_file(target, RC_MAX)
  if not text and code ~= "ENOENT" then
    return nil, message, code
  end
  text = text or ""
  local start = (text == "" or text:sub(-1) == "\n") and "" or "\n"
  local quoted = "'" .. plugin:gsub("'", [['\'']]) .. "'"
  local line = start .. "source " .. quoted .. "\n"
  local ok
  ok, message, code = fs.write_real(target, text .. line, { mode = 420, keep = true }) -- 0644
  if not ok then
    return nil, message, code
  end
  env:say(("%s sources the plugin now; it is there in new terminals, or:  source %s"):format(path,
    quoted))
  return true
end

local function ask_plugin(env)
  local plugin, path = setup.plugin(env), setup.zshrc(env)
  if not plugin then
    return nil, "the plugin is not found beside this program", "not_found",
      { hint = "./dev install puts it into ~/.local/share/zsh/plugins/efr" }
  end
  if not ask.yes(env, ("Add `source %s` to %s?"):format(plugin, path)) then
    env:say("left as it is")
    return true
  end
  return add_plugin(env, path, plugin)
end

local ASK <const> = { model = ask_model, plugin = ask_plugin }

function M.run(args, env)
  local parts = setup.parts(env)
  local step = M.show(env, parts)
  if args.check or not step then
    return step and 1 or 0
  elseif not ask.possible(env) then
    return nil, "there is no terminal to ask on", "EFR_USAGE",
      { hint = "efr setup --check only shows it; efr config set changes a setting" }
  end
  for _, part in ipairs(parts) do
    local ask_part = not part.ok and ASK[part.name]
    if ask_part then
      env:out("\n")
      local ok, message, code, data = ask_part(env)
      if not ok then
        return nil, message, code, data
      end
    end
  end
  env:out("\n")
  env.loaded_config = nil
  step = M.show(env, setup.parts(env))
  env:say(step and "next:  " .. step
    or "all is set up; in a new terminal:  , what is in this directory")
  return 0
end

return M
