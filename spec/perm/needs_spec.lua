-- The shape of `needs`: limits, hosts in every spelling, kinds of sockets.
local needs = require "efr.perm.needs"

local function list(count, make)
  local out = {}
  for i = 1, count do out[i] = make(i) end
  return out
end

local function path(i) return "/p/" .. i end
local function host(i) return ("h%d.org"):format(i) end

describe("perm.needs", function()
  it("takes what fits, and names what does not", function()
    for _, fine in ipairs {
      {}, { write = list(8, path) }, { hosts = list(8, host) }, { sockets = list(2, path) },
      { unmask = list(4, path) }, { bus = "system" }, { bus = "session" }, { device = "/dev/kvm" },
      { outside = true, userns = false, reason = ("\u{e9}"):rep(300) },
    } do
      assert.is_true(needs.check(fine))
    end
    for words, bad in pairs {
      ["needs.write has more than 8 items"] = { write = list(9, path) },
      ["needs.hosts has more than 8 items"] = { hosts = list(9, host) },
      ["needs.sockets has more than 2 items"] = { sockets = list(3, path) },
      ["needs.unmask has more than 4 items"] = { unmask = list(5, path) },
      ["needs.write[1] is no absolute path"] = { write = { "/a", "b" } },
      ["needs.hosts[0] is no host"] = { hosts = { "a b" } },
      ["needs.write must be a list"] = { write = { a = "/x" } },
      ["needs.bus must be system or session"] = { bus = "other" },
      ["needs.device must be a path below /dev"] = { device = "/etc/x" },
      ["needs.outside must be true or false"] = { outside = 1 },
      ["needs.reason must be a text of at most 300 characters"] = { reason = ("x"):rep(301) },
      ["needs has no part network"] = { network = true },
    } do
      assert.same({ nil, words }, { needs.check(bad) })
    end
    for _, bad in ipairs { 1, "x", { 1 } } do assert.is_nil((needs.check(bad))) end
  end)

  it("reads a host in every spelling", function()
    for word, want in pairs {
      ["Example.ORG"] = { "example.org", 443 }, ["example.org."] = { "example.org", 443 },
      ["h:8443"] = { "h", 8443 }, ["https://h.org/x?y"] = { "h.org", 443 },
      ["http://h.org"] = { "h.org", 80 }, ["http://u:p@h.org:81/x"] = { "h.org", 81 },
      ["[::1]:80"] = { "::1", 80 }, ["[2001:db8::1]"] = { "2001:db8::1", 443 },
      ["ssh://git@h.org/x"] = { "h.org", 443 },
    } do
      assert.same(want, { needs.host(word) }, word)
    end
    for _, word in ipairs { "", ".", "h:", "h:0", "h:65536", "h:x", "a b", "-h", "a..b", "http://",
      "h:80:90", "[::1", "h\n", ("x"):rep(254) } do
      assert.is_nil((needs.host(word)), word)
    end
  end)

  it("knows what a socket opens", function()
    for socket, want in pairs {
      ["/run/docker.sock"] = "privilege", ["/run/user/1/podman/podman.sock"] = "privilege",
      ["/run/containerd/containerd.sock"] = "privilege", ["/tmp/.X11-unix/X0"] = "desktop_ipc",
      ["/run/user/1/wayland-0"] = "desktop_ipc", ["/run/user/1/hypr/a/.socket.sock"] = "desktop_ipc",
      ["/run/user/1/sway-ipc.1"] = "desktop_ipc", ["/run/user/1/niri.x"] = "desktop_ipc",
      ["/tmp/x"] = "socket",
    } do
      assert.equal(want, (needs.socket_kind(socket)), socket)
    end
    assert.same({ "bus", "system" }, { needs.socket_kind("/run/dbus/system_bus_socket") })
    assert.same({ "bus", "session" }, { needs.socket_kind("/run/user/7/bus") })
    assert.same({ "bus", "session" }, { needs.socket_kind("/tmp/dbus-x", { "/tmp/dbus-x" }) })
  end)
end)
