-- The turn on a terminal: when a frame is drawn, at which size, and the terminal's modes.
-- Owns: the frame timer, the tick, SIGWINCH, SIGTSTP and SIGCONT. Must not know: events, the wire.
-- Loop thread of `efr`.

local live = require "efr.cli.view.live"
local palette = require "efr.cli.render.palette"
local style = require "efr.cli.view.style"
local transcript = require "efr.cli.view.transcript"

local M = {}

local FRAME_MS <const> = 16
local TICK_MS <const> = 100
local RESUME_MS <const> = 100
local STILL_TICK_MS <const> = 1000

local Screen = {}
Screen.__index = Screen

-- The names of render.palette and the settings behind them.
local COLOURS <const> = {
  text = "render.colors.text", muted = "render.colors.muted", accent = "render.colors.accent",
  heading = "render.colors.heading", link = "render.colors.link", code = "render.colors.code",
  success = "render.colors.success", warning = "render.colors.warning",
  error = "render.colors.error", quote = "render.colors.quote",
  ["diff.add"] = "render.colors.diff.add", ["diff.remove"] = "render.colors.diff.remove",
  ["diff.hunk"] = "render.colors.diff.hunk",
}

-- The colours of the settings; with a broken file those that are built in.
local function colours(env)
  local config, settings = env:config(), { colors = {} }
  if config then
    settings.theme = config:get("render.theme")
    settings.theme_dark = config:get("render.theme_dark")
    settings.theme_light = config:get("render.theme_light")
    for name, key in pairs(COLOURS) do
      settings.colors[name] = config:get(key)
    end
  end
  return palette.colours(settings, env.environ)
end

--- The style for a descriptor: NO_COLOR keeps bold and dim, a dumb terminal has nothing. The
--- Linux console knows no hyperlinks.
function M.style(env, fd)
  local term = env.environ.TERM or ""
  local enabled = env:is_tty(fd) and term ~= "" and term ~= "dumb"
  local colour = (env.environ.NO_COLOR or "") == ""
  return style.new({
    enabled = enabled, colour = colour, colours = enabled and colour and colours(env) or nil,
    hyperlinks = term ~= "linux",
  })
end

function Screen:_size()
  local cols, lines = self.tty.size(1)
  if not cols then
    cols, lines = 80, 24
  end
  self.ctx.cols, self.ctx.lines = cols, lines
end

function Screen:_watch(name, fn)
  local handle = assert(self.uv.new_signal())
  handle:start(name, fn)
  self.handles[#self.handles + 1] = handle
  return handle
end

-- Stops like any program, with the terminal as the shell knows it. The code after kill runs when
-- the process goes on; the handler of SIGCONT draws again. Without a shell to stop for (an orphaned
-- process group) the kernel drops the signal, and a timer draws again.
function Screen:_suspend(handle)
  self.tty.write(1, self.live:finish(self.ctx.cols))
  self.tty.restore(false)
  self.stopped = true
  handle:stop()
  self.uv.kill(self.sys.getpid(), "sigtstp")
  self.uv.update_time()
  self.timer:start(RESUME_MS, 0, function()
    if self.stopped then
      self:resume()
    end
  end)
  handle:start("sigtstp", function()
    self:_suspend(handle)
  end)
end

--- Takes the terminal again after a stop; a new live zone starts where the cursor is.
function Screen:resume()
  self.live:forget()
  self.stopped = false
  self.background = not self.tty.foreground(1)
  if self.prepare then
    self.prepare()
  end
  self:_size()
  self:changed(true)
end

--- @class efr.cli.screen_options
--- @field motion boolean
--- @field diff_lines integer
--- @field turn_summary boolean
--- @field groups table<string, string[]>? of view.groups
--- @field prepare fun()? sets the input modes
--- @field after fun()? runs when a frame stands on the screen
--- @field broken fun() the terminal took no more

--- @param env table
--- @param turn efr.cli.turn
--- @param opts efr.cli.screen_options
function M.new(env, turn, opts)
  local ports, face = env.ports, M.style(env, 1)
  local self = setmetatable({
    uv = ports.uv, tty = ports.tty, sys = ports.sys,
    turn = turn,
    page = transcript.new(turn),
    live = live.new(face),
    prepare = opts.prepare, after = opts.after, broken = opts.broken,
    handles = {},
    last_ms = -FRAME_MS,
    ctx = {
      motion = opts.motion, diff_lines = opts.diff_lines, turn_summary = opts.turn_summary,
      groups = opts.groups,
      answers = turn.answers, home = env.home, tick = 0, now_ms = 0,
      hyperlinks = face.hyperlinks, ticks = not face.colour,
    },
  }, Screen)
  self.background = not self.tty.foreground(1)
  self:_size()
  self:_watch("sigwinch", function()
    self:_size()
    self:changed(true)
  end)
  self:_watch("sigcont", function()
    self:resume()
  end)
  local stop
  stop = self:_watch("sigtstp", function()
    self:_suspend(stop)
  end)
  self.timer = assert(self.uv.new_timer())
  self.ticker = assert(self.uv.new_timer())
  local every = opts.motion and TICK_MS or STILL_TICK_MS
  self.ticker:start(every, every, function()
    self.ctx.tick = self.ctx.tick + 1
    self:changed(false)
  end)
  return self
end

--- Milliseconds of the monotonic clock.
function Screen:now()
  return self.uv.hrtime() // 1000000
end

-- In the background the screen is the shell's: what is new waits for `fg` or the end. A shell
-- tells a job that runs already nothing when it comes to the front, so each tick looks.
function Screen:_draw(last)
  if self.stopped and not last then
    return
  end
  self.timer:stop()
  self.waiting = false
  if self.background and not last then
    return self.tty.foreground(1) and self:resume()
  end
  self.last_ms = self:now()
  self.ctx.now_ms = self.last_ms
  local commit, rows = self.page:frame(self.ctx)
  local bytes = self.live:frame(commit, rows, self.ctx)
  if bytes ~= "" then
    -- The last words come first: a signal between both leaves at most one old picture behind.
    self.tty.farewell(1, self.live:farewell(self.ctx.cols))
    if not self.tty.write(1, bytes) then
      return self.broken()
    end
  end
  if self.after then
    self.after()
  end
end

--- Something changed: draws now, or at the end of the running frame's time.
function Screen:changed(urgent)
  if self.closed then
    return
  end
  local due = self.last_ms + FRAME_MS - self:now()
  if urgent or due <= 0 then
    return self:_draw()
  end
  if not self.waiting then
    self.waiting = true
    self.timer:start(math.max(due, 1), 0, function()
      self:_draw()
    end)
  end
end

--- Draws the last frame and gives the terminal back.
function Screen:finish()
  if self.closed then
    return
  end
  self:_draw(true)
  self.closed = true
  self.tty.write(1, self.live:finish(self.ctx.cols))
  self.tty.farewell(1, "")
  for _, handle in ipairs(self.handles) do
    handle:close()
  end
  self.timer:close()
  self.ticker:close()
end

return M
