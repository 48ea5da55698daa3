-- hello: the first message of a connection. Checks the protocol version and takes who the client
-- says it is.
-- Main thread of efrd.
local text = require "efr.util.text"
local validate = require "efr.util.validate"
local wire = require "efr.daemon.wire"

local CHALLENGE_BYTES <const> = 32

-- Checked after the version: a later protocol may have other fields.
local FIELDS <const> = {
  origin = { type = "choice", choices = { "shell", "cli", "proxy", "phone" } },
  client = { type = "string", max = 256, optional = true },
  capabilities = { type = "table", optional = true },
  tty = { type = "string", max = 256, optional = true },
  pid = { type = "integer", min = 1, optional = true },
  device_id = { type = "uuid", optional = true },
}

local function challenge(app)
  local bytes = app.ports.sys.random(CHALLENGE_BYTES)
  return (text.base64(bytes):gsub("[+/=]", { ["+"] = "-", ["/"] = "_", ["="] = "" }))
end

local function handler(app, session, params)
  if params.protocol ~= wire.PROTOCOL then
    return nil, ("this daemon speaks protocol %d, the client %d"):format(wire.PROTOCOL,
      params.protocol), "protocol_mismatch",
      { daemon = wire.PROTOCOL, client = params.protocol }
  end
  local ok, err = validate.check(FIELDS, params)
  if not ok then
    return nil, err, "invalid"
  end
  session.hello = params
  session.origin, session.tty, session.pid = params.origin, params.tty, params.pid
  return {
    daemon_id = app.daemon_id,
    protocol = wire.PROTOCOL,
    version = app.version,
    capabilities = { admin = session.scopes.admin },
    paths = {
      scratch_root = app.paths.data .. "/scratch", data_dir = app.paths.data,
    },
    challenge = challenge(app),
  }
end

return {
  method = "hello",
  params = { protocol = { type = "integer", min = 0 } },
  handler = handler,
}
