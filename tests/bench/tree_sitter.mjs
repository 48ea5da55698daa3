// Parses each line of a file with tree-sitter's bash grammar, on its own, and prints microseconds a line.
// Run by grammar.lua where EFR_BENCH_NODE_MODULES names a node_modules directory with the npm packages
// web-tree-sitter and tree-sitter-bash: node tree_sitter.mjs NODE_MODULES FILE
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, file] = process.argv.slice(2);
const { Parser, Language } = await import(
  pathToFileURL(join(modules, "web-tree-sitter", "web-tree-sitter.js")));
await Parser.init();
const parser = new Parser();
parser.setLanguage(await Language.load(join(modules, "tree-sitter-bash", "tree-sitter-bash.wasm")));
const lines = readFileSync(file, "utf8").split("\n").filter((line) => line !== "");
const times = [];
for (let round = 0; round < 3; round++) {
  const start = process.hrtime.bigint();
  for (const line of lines) {
    const tree = parser.parse(line);
    if (tree.rootNode.hasError) throw new Error(`not parsed: ${line}`);
    tree.delete();
  }
  times.push(Number(process.hrtime.bigint() - start) / 1000 / lines.length);
}
console.log(Math.min(...times).toFixed(1));
