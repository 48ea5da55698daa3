-- Owns: the tool write_file.
-- Must not know: who decides whether it runs.
-- Runs in efrd, on the loop thread.

local files = require "efr.tools.lib.files"
local text = require "efr.util.text"

local M = {}

M.name = "write_file"
M.description = [[Creates a file or replaces its whole content. To change a part of a file, use the
tool for that instead. Directories above the file are made. Relative paths start in the hidden
shell's directory.]]
M.schema = {
  type = "object",
  properties = {
    path = { type = "string", description = "Absolute, ~/..., $SCRATCH/..., or relative." },
    content = { type = "string", description = "The whole new content." },
  },
  required = { "path", "content" },
}

---@param input table
---@param ctx efr.ToolContext
---@return table[]? requirements
---@return string? err
function M.declare(input, ctx)
  if type(input.content) ~= "string" then return nil, "content must be a string." end
  local target, err = files.resolve(input, ctx)
  if not target then return nil, err end
  return files.requirements("write", target)
end

---@param input table
---@param ctx efr.ToolContext
---@return string? diff
function M.preview(input, ctx)
  local old, err, code = files.read(ctx)
  if not old and code ~= "ENOENT" then return err end
  return files.preview(old or "", input.content)
end

---@param input table
---@param ctx efr.ToolContext
---@return efr.ToolResult
function M.run(input, ctx)
  local old, err, code = files.read(ctx)
  if not old and code ~= "ENOENT" then return { output = err, is_error = true } end
  local ok
  ok, err = files.write(ctx, input.content)
  if not ok then return { output = err, is_error = true } end
  local changes, diff = files.report(ctx, old, input.content)
  return {
    output = ("%s%s %s (%s)"):format(files.link_note(ctx.target), old and "replaced" or "created",
      ctx.target.shown, text.plural(#input.content, "byte")),
    is_error = false, changes = changes, diff = diff,
  }
end

return M
