#!/usr/bin/env bash
# Also as root.
# A home directory without any cache of a tool: ordinary tools work in a contained call all the same, and nothing is
# made there. npm packs and installs a package and npx runs it on a socket of its own in the temporary directory;
# python makes an environment; ccache compiles twice and hits; cargo builds. A tool that this machine does not have is
# named. Not covered: which variable leads where (spec/sbx/caches_spec.lua), caches that exist (caches.sh).
. "$(dirname "$0")/lib.sh"
new_home
config auto
rm -rf "$HOME/.cache"
# A cargo that rustup keeps in another home needs that home's toolchains.
tools_home=$(getent passwd "$(id -un)" | cut -d: -f6)
cd "$P"
project
mkdir tool app rust
cat >tool/package.json <<'JSON'
{"name": "tsx", "version": "1.0.0", "bin": {"tsx": "cli.js"}}
JSON
cat >tool/cli.js <<'JS'
#!/usr/bin/env node
const net = require("net"), os = require("os"), path = require("path");
const name = path.join(os.tmpdir(), "tsx-" + process.pid + ".sock");
const server = net.createServer((socket) => socket.end("ran " + process.argv[2] + "\n"));
server.listen(name, () => net.connect(name).on("data", (d) => process.stdout.write(d)).on("close", () => server.close()));
JS
printf '{"name": "app", "version": "1.0.0"}\n' >app/package.json
printf 'int main(void) { return 42; }\n' >m.c
printf '[package]\nname = "rust"\nversion = "0.1.0"\nedition = "2021"\n' >rust/Cargo.toml
mkdir rust/src
printf 'fn main() { println!("built"); }\n' >rust/src/main.rs
before=$(find "$HOME" -mindepth 1 -maxdepth 2 | grep -v "^$P/" | sort)

# runs WHAT LINE...: the line works in a call.
runs() {
    local what=$1
    shift
    timeout 120 efr run -- bash -ec "$*" >"$T/out" 2>&1 || fail "$what: $(cat "$T/out")"
}
# has TOOL: whether this machine has it.
has() {
    command -v "$1" >/dev/null && return 0
    say "not looked at: $1, which is not on this machine"
    return 1
}

runs 'a cache by its variable' 'mkdir -p "$XDG_CACHE_HOME/x" "$npm_config_cache" "$CARGO_HOME" "$GOMODCACHE"; echo 1 >"$XDG_CACHE_HOME/x/y"'
if has npm; then
    runs 'npm pack and install' 'cd tool && npm pack --silent && cd ../app && npm install --silent --no-audit --no-fund ../tool/tsx-1.0.0.tgz'
    runs 'npx tsx' 'cd app && npx tsx a.ts'
    contains "$(cat "$T/out")" '^ran a.ts$' 'npx tsx'
fi
python_options=--without-pip # pip's own installation is long
[[ $size != long ]] || python_options=
runs 'a python environment' "export python_options=$python_options; "'/usr/bin/python3 -m venv $python_options env && env/bin/python -c "import sys; assert sys.prefix != sys.base_prefix"'
if has ccache; then
    runs ccache 'ccache gcc -c m.c && rm m.o && ccache gcc -c m.c && test -e m.o && ccache -s'
    contains "$(cat "$T/out")" '[Hh]its: +1 ' 'ccache'
fi
cargo=$(command -v cargo || true)
[[ -n $cargo || ! -x $tools_home/.cargo/bin/cargo ]] || cargo=$tools_home/.cargo/bin/cargo
if [[ -n $cargo ]] && RUSTUP_HOME=$tools_home/.rustup "$cargo" --version; then
    RUSTUP_HOME=$tools_home/.rustup runs cargo "cd rust && '$cargo' build -q && target/debug/rust"
    contains "$(cat "$T/out")" '^built$' 'cargo'
else
    say 'not looked at: cargo, which is not on this machine'
fi
equals "$(find "$HOME" -mindepth 1 -maxdepth 2 | grep -v "^$P/" | sort)" "$before" 'what lies in the home directory'
