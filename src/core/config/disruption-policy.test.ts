import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Change } from "./change.ts";
import { consequencesOf, filePolicyFor, mergePolicies, registriesConf, registriesDrain } from "./disruption-policy.ts";

const file = (path: string): Change => ({ kind: "file", path, op: "update" });
const unit = (name: string): Change => ({ kind: "unit", name, op: "update", parts: ["contents"] });
const actions = (changes: readonly Change[], user = {}, context = {}) =>
  consequencesOf(changes, mergePolicies(user), context).actions;

describe("consequencesOf", () => {
  test.for([
    { title: "no change asks for nothing", changes: [], actions: [] },
    { title: "a file that no policy names reboots", changes: [file("/etc/x")], actions: [{ kind: "reboot" }] },
    {
      title: "a quiet file asks for nothing",
      changes: [file("/var/lib/kubelet/config.json")],
      actions: [{ kind: "none" }],
    },
    {
      title: "nothing is said beside something",
      changes: [file("/var/lib/kubelet/config.json"), file("/etc/containers/policy.json")],
      actions: [{ kind: "reload", unit: "crio.service" }],
    },
    {
      title: "a file below a folder takes the folder's policy",
      changes: [file("/etc/containers/registries.d/a/b.yaml")],
      actions: [{ kind: "reload", unit: "crio.service" }],
    },
    {
      title: "each action happens once, the daemon is reloaded before restarts",
      changes: [
        file("/etc/kubernetes/credential-providers/a"),
        file("/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf"),
        file("/etc/kubernetes/credential-providers/b"),
      ],
      actions: [{ kind: "daemonReload" }, { kind: "restart", unit: "kubelet.service" }],
    },
    {
      title: "a restart makes a reload of the same unit needless",
      changes: [
        file("/etc/containers/policy.json"),
        file("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"),
      ],
      actions: [
        { kind: "restart", unit: "coreos-update-ca-trust.service" },
        { kind: "restart", unit: "crio.service" },
      ],
    },
    {
      title: "a reboot covers everything",
      changes: [file("/etc/containers/policy.json"), unit("a.service")],
      actions: [{ kind: "reboot" }],
    },
    {
      title: "keys are quiet by default",
      changes: [{ kind: "sshKeys", user: "core", op: "update" }],
      actions: [{ kind: "none" }],
    },
    {
      title: "the kernel boots",
      changes: [{ kind: "kernelArguments", from: [], to: ["a"] }],
      actions: [{ kind: "reboot" }],
    },
  ] as const)("$title [config-disruption-policy-3]", ({ actions: wanted, changes }) => {
    expect(actions(changes)).toEqual(wanted);
  });

  test("users replace defaults in their place and add others [config-disruption-policy-1]", () => {
    const user = {
      files: [
        { path: "/etc/containers/policy.json", actions: [{ type: "None" as const }] },
        {
          path: "/etc/x",
          actions: [{ type: "Drain" as const }, { type: "Restart" as const, restart: { serviceName: "x.service" } }],
        },
      ],
    };
    expect(mergePolicies(user).files[2]).toEqual(user.files[0]);
    expect(actions([file("/etc/containers/policy.json")], user)).toEqual([{ kind: "none" }]);
    expect(actions([file("/etc/x")], user)).toEqual([{ kind: "drain" }, { kind: "restart", unit: "x.service" }]);
  });

  test("what a reboot covers is still explained [config-disruption-policy-4]", () => {
    const { because } = consequencesOf(
      [file("/etc/x"), file("/etc/containers/policy.json"), file("/etc/y")],
      mergePolicies(undefined),
    );
    expect(because).toMatchObject([
      {
        consequence: { kind: "reboot" },
        changes: [{ path: "/etc/x" }, { path: "/etc/y" }],
        why: "/etc/x has no disruption policy; /etc/y has no disruption policy",
      },
      {
        consequence: { kind: "reload", unit: "crio.service" },
        why: "the policy for /etc/containers/policy.json covers /etc/containers/policy.json",
      },
    ]);
  });

  test("registries.conf drains only when pods could get other images [config-disruption-policy-6]", () => {
    const before = '[[registry]]\nlocation = "a"\n';
    const safe = `${before}[[registry]]\nlocation = "b"\nmirror-by-digest-only = true\n`;
    expect(actions([file(registriesConf)], {}, { registries: { before, after: safe } })).toEqual([
      { kind: "reload", unit: "crio.service" },
    ]);
    expect(actions([file(registriesConf)], {}, { registries: { before: safe, after: before } })).toEqual([
      { kind: "drain" },
      { kind: "reload", unit: "crio.service" },
    ]);
    expect(actions([file(registriesConf)])).toEqual([{ kind: "drain" }, { kind: "reload", unit: "crio.service" }]);
  });

  test("the result does not depend on the order of changes [config-disruption-policy-5]", () => {
    const all = [
      file("/etc/containers/policy.json"),
      file("/etc/kubernetes/credential-providers/a"),
      file("/var/lib/kubelet/config.json"),
      file("/etc/crio/policies/x"),
      unit("iri-registry.service"),
    ];
    const kinds = (changes: readonly Change[]) =>
      actions(changes)
        .map((action) => JSON.stringify(action))
        .toSorted();
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (shuffled) => {
        expect(kinds(shuffled)).toEqual(kinds(all));
      }),
    );
  });
});

describe("filePolicyFor", () => {
  const policy = (path: string) => ({ path, actions: [] });
  test.for([
    ["the longest wins", "/a/b/c", ["/a", "/a/b"], "/a/b"],
    ["names that only begin alike do not count", "/ab", ["/a"], undefined],
    ["a trailing slash speaks of what is below only", "/a", ["/a/"], undefined],
    ["and it does speak of that", "/a/b", ["/a/"], "/a/"],
    ["the root speaks of nothing", "/a", ["/"], undefined],
  ] as const)("%s [config-disruption-policy-2]", ([, path, policies, found]) => {
    expect(filePolicyFor(path, policies.map(policy))?.path).toBe(found);
  });
});

describe("registriesDrain", () => {
  const registry = (more = "") => `[[registry]]\nprefix = ""\nlocation = "a.example"\n${more}`;
  const mirror = (location: string, pull = "") =>
    `[[registry.mirror]]\nlocation = "${location}"\n${pull === "" ? "" : `pull-from-mirror = "${pull}"\n`}`;
  test.for([
    ["nothing", "", "", "safe"],
    ["comments", "# a\n", "# b\n", "safe"],
    [
      "longer search",
      'unqualified-search-registries = ["a"]',
      'unqualified-search-registries = [\n  "a", # first\n  "b",\n]',
      "safe",
    ],
    [
      "other search",
      'unqualified-search-registries = ["a", "b"]',
      'unqualified-search-registries = ["b", "a"]',
      "drain",
    ],
    ["shorter search", 'unqualified-search-registries = ["a"]', "", "drain"],
    ["a registry goes", registry(), "", "drain"],
    ["a registry comes", "", registry(), "drain"],
    ["a registry for digests comes", "", registry("mirror-by-digest-only = true\n"), "safe"],
    ["a registry with mirrors for digests comes", "", registry(mirror("m", "digest-only")), "safe"],
    ["a registry is blocked", registry(), registry("blocked = true\n"), "drain"],
    ["a mirror goes", registry(mirror("m")), registry(), "drain"],
    ["a mirror for digests comes", registry(), registry(mirror("m", "digest-only")), "safe"],
    ["a mirror for tags comes", registry(), registry(mirror("m", "tag-only")), "drain"],
    ["a mirror becomes one for digests", registry(mirror("m")), registry(mirror("m", "digest-only")), "safe"],
    ["a mirror becomes one for all", registry(mirror("m", "digest-only")), registry(mirror("m", "all")), "drain"],
    ["text that is not understood", "", "][", "drain"],
    ["other tables are passed over", "[aliases]\n\"x\" = 'y'\n", "[aliases]\n\"x\" = 'z'\n", "safe"],
  ] as const)("%s [config-disruption-policy-7]", ([, before, after, verdict]) => {
    expect(registriesDrain(before, after).verdict).toBe(verdict);
  });

  test.for([
    ["blanks in a heading", `[[${" ".repeat(20_000)}!`],
    ["blanks in another heading", `[${" ".repeat(20_000)}!`],
    ["escapes that never end", `a = ["${'\\"'.repeat(20_000)}`],
    ["brackets that never close", `a = ${"[".repeat(50_000)}`],
    ["very many headings", "[[registry]]\n".repeat(20_000)],
    ["items without commas", `a = [${'"x" '.repeat(20_000)}]`],
    ["NUL and surrogates", 'a = "\0\ud800"\n[[registry]]\nprefix = "\udfff"'],
  ] as const)("%s are read or given up in bounded time", { timeout: 2000 }, ([, text]) => {
    expect(["safe", "drain"]).toContain(registriesDrain(text, `${text} `).verdict);
  });

  test("mirrors are compared in time in proportion to their number [config-disruption-policy-8]", () => {
    const text = registry(Array.from({ length: 20_000 }, (_, i) => mirror(`m${i}.example/y`, "digest-only")).join(""));
    const before = process.threadCpuUsage();
    expect(registriesDrain(text, `${text}\n`).verdict).toBe("safe");
    expect(process.threadCpuUsage(before).user / 1e6).toBeLessThan(1.5);
  });

  test.for([
    ["is told by the first of them", "digest-only", "tag-only", "drain"],
    ["is told by the first of them, too", "tag-only", "digest-only", "safe"],
  ] as const)(
    "what a mirror that stands twice was for %s [config-disruption-policy-9]",
    ([, first, second, verdict]) => {
      const twice = registry(mirror("m", first) + mirror("m", second));
      expect(registriesDrain(twice, registry(mirror("m", "tag-only"))).verdict).toBe(verdict);
    },
  );

  test("pieces of TOML in any order never throw, and equal files are safe or unreadable", () => {
    const piece = fc.constantFrom(
      "[[registry]]",
      "[[registry.mirror]]",
      "[x]",
      "\n",
      'prefix = "a"',
      'location = "b"',
      "blocked = true",
      "insecure",
      "=",
      '"',
      "'",
      "[",
      "]",
      ",",
      "#",
      "\\",
      "mirror-by-digest-only = true",
      'pull-from-mirror = "digest-only"',
      "unqualified-search-registries = [",
      '"q"',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) =>
        ["safe", "drain"].includes(registriesDrain(pieces.join(""), pieces.join(" ")).verdict),
      ),
      { numRuns: 500 },
    );
  });

  test("any text gives an answer", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => ["safe", "drain"].includes(registriesDrain(a, b).verdict)),
    );
  });
});
