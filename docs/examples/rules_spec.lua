-- Examples for your rules: what they must say of a line. `efr rules test` runs them, in the same
-- locked process as the rules; nothing of a line runs.
--
-- judge(line) gives what your rules say: effect (nil when none matches), rule, why, matched, reads,
-- writes, network, interactive, hints. All of it is described in docs/lua-api.md.

describe("my rules", function()
  it("say nothing of a listing", function()
    expect(judge("ls -l").effect).to.equal(nil)
  end)

  -- For the rule no-force-push of rules.lua, once it has no dashes in front.
  --
  -- it("stop a forced push", function()
  --   expect(judge("git push --force").effect).to.equal("deny")
  --   expect(judge("git push").effect).never.to.equal("deny")
  -- end)
end)
