import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { annotations, labels, namespace, objects } from "../api/names.ts";
import { kubeletDefaults } from "../core/render/base-configs.ts";
import { renderPool } from "../core/render/render-pool.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import { commandLine, filesSpec } from "../../test/support/command-line.ts";

const typed = commandLine("mco-offline-");
const { mco } = typed;

const json = (result: { readonly out: string }) => JSON.parse(result.out) as never;

function save(name: string, ...objects: object[]): string {
  writeFileSync(join(typed.folder, name), objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  return join(typed.folder, name);
}

const apiVersion = "machineconfiguration.openshift.io/v1";
const files = filesSpec;
const config = (name: string, spec: object, role = "worker", metadata: object = {}) => ({
  apiVersion,
  kind: "MachineConfig",
  metadata: { name, labels: { [labels.role]: role }, ...metadata },
  spec,
});
const infra = {
  apiVersion,
  kind: "MachineConfigPool",
  metadata: { name: "infra" },
  spec: {
    machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: ["worker", "infra"] }] },
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/infra": "" } },
  },
};
const controllerConfig = {
  apiVersion,
  kind: "ControllerConfig",
  metadata: { name: "machine-config-controller" },
  spec: { baseOSContainerImage: "os@sha256:1" },
};
const base = config("00-worker", { ...files({ "/etc/a": "one\ntwo\n" }), kernelArguments: ["yes", "0644"] });
const nameOf = (pool: string, members: readonly object[], image = "") => {
  const result = renderPool({
    pool: { metadata: { name: pool } },
    members: members as never,
    controllerConfig: { spec: { baseOSContainerImage: image } },
  });
  return result.verdict === "rendered" ? result.config.metadata.name : "";
};

test("texts of manifests are no commands to the pipeline that prints them [cli-pipelines-commands-1]", async () => {
  const hostile = "::stop-commands::x\n ##vso[task.prependpath]/tmp\n##[add-mask]a\n";
  const command = /^\s*::.*::|##(\[|vso\[)/m;
  const one = save("one.json", base);
  const two = save("two.json", base, config("99-x##[add-mask]a", files({ "/etc/a": hostile })));
  const commands: readonly (readonly [string, ...string[]])[] = [
    ["diff", one, two, "--pool", "worker"],
    ["diff", one, two, "--pool", "worker", "--format", "markdown"],
    ["validate", "-f", two],
    ["validate", "-f", two, "--json"],
  ];
  for (const args of commands) {
    const { out, err } = await mco(...args);
    expect(out).not.toMatch(command);
    expect(err).not.toMatch(command);
    if (args.includes("--json")) expect(JSON.stringify(JSON.parse(out))).toContain("##[add-mask]a");
  }
});

const readJson = (out: string): unknown => JSON.parse(out);
const readXml = (out: string): unknown => {
  const program =
    "import json, sys, xml.etree.ElementTree as tree\nprint(json.dumps([[dict(e.attrib), e.text] for e in tree.fromstring(sys.stdin.read()).iter()]))";
  const { stdout, stderr } = spawnSync("python3", ["-c", program], { input: out, encoding: "utf8" });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
};
const hasPython = spawnSync("python3", ["-c", "pass"]).status === 0;

test.for([
  { format: "text", read: undefined },
  { format: "json", read: readJson },
  { format: "github", read: undefined },
  { format: "gitlab", read: readJson },
  { format: "sarif", read: readJson },
  { format: "junit", read: hasPython ? readXml : undefined },
])("what mco validate prints as $format commands no pipeline [cli-pipelines-commands-2]", async ({ format, read }) => {
  const words = ["##vso[task.setvariable variable=x]y", "##[add-mask]a", "##teamcity[publishArtifacts 'x']"];
  const commands = /^\s*::(?!(error|warning) [^:]*::).*::|##(\[|vso\[|teamcity\[)/im;
  const hostile = (word: string) => config(`a\n::add-path::/tmp\n ::x::\n${word}`, { kernelType: word });
  const { out } = await mco("validate", "-f", save("one.json", ...words.map(hostile)), "--format", format);
  expect(out).toContain("add-path");
  expect(out).not.toMatch(commands);
  // A reader gets the same text.
  if (read !== undefined) for (const word of words) expect(JSON.stringify(read(out))).toContain(word);
});

describe("mco render", () => {
  test("gives the name that a cluster with these objects gives, built-in pools included", async () => {
    const extra = config("50-infra", files({ "/etc/b": "b" }), "infra");
    save("1.json", base, extra, infra, controllerConfig);
    const { code, out } = await mco("render", "-f", typed.folder, "-o", "name");
    expect(code).toBe(0);
    expect(out.split("\n").filter((line) => line !== "")).toEqual([
      `machineconfig.${"machineconfiguration.openshift.io"}/${nameOf("infra", [base, extra], "os@sha256:1")}`,
      `machineconfig.machineconfiguration.openshift.io/${nameOf("worker", [base], "os@sha256:1")}`,
    ]);
  });

  test("writes YAML that a reader of YAML 1.1 takes for the same object", async () => {
    const { out } = await mco("render", "worker", "-f", save("1.json", base), "-o", "yaml");
    const object = parse(out, { version: "1.1" }) as {
      spec: { kernelArguments: string[] };
      metadata: { name: string };
    };
    expect(object.spec.kernelArguments).toEqual(["yes", "0644"]);
    expect(object.metadata.name).toBe(nameOf("worker", [base]));
  });

  test("a dump of a cluster, rendered configurations and all, renders the same again", async () => {
    const first = await mco("render", "-f", save("1.json", base), "-o", "json");
    const rendered = JSON.parse(first.out) as object;
    const again = await mco(
      "render",
      "-f",
      save("2.json", { apiVersion: "v1", kind: "List", items: [base, rendered] }),
      "-o",
      "json",
    );
    expect(again.out).toBe(first.out);
  });

  test("refusals carry member, field and remedy", async () => {
    const result = await mco("render", "-f", save("1.json", base, config("99-bad", { kernelType: "fast" })), "--json");
    expect(result.code).toBe(1);
    expect(json(result)).toMatchObject({
      apiVersion: "cli.mco/v1",
      kind: "Render",
      pools: [
        {
          pool: "worker",
          verdict: "refused",
          refusals: [
            {
              code: "InvalidMember",
              member: "99-bad",
              path: "spec.kernelType",
              remedy: "one of default, realtime, 64k-pages",
            },
          ],
        },
      ],
    });
  });

  test("an unknown pool is absent, and an unknown form a usage error", async () => {
    expect((await mco("render", "blue", "-f", save("1.json", base))).code).toBe("MCO_NAME_ABSENT");
    expect((await mco("render", "-o", "xml", "-f", save("1.json", base))).code).toBe("MCO_USAGE");
  });
});

describe("mco diff", () => {
  test("two folders: unified diffs of decoded contents, exit code 2; none for equal ones, exit code 0", async () => {
    const [one, other] = [
      save("1.json", base),
      save("2.json", config("00-worker", { ...files({ "/etc/a": "one\n2\n" }), kernelArguments: ["yes", "0644"] })),
    ];
    const { code, out } = await mco("diff", one, other, "--pool", "worker");
    // Files with one MachineConfig each are compared as such.
    expect([code, out]).toEqual([
      2,
      "00-worker → 00-worker\n\n~ /etc/a\n--- a/etc/a\n+++ b/etc/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
    ]);
    expect(await mco("diff", one, one)).toMatchObject({ code: 0, out: "" });
  });

  test("as a comment: a table, and each difference to unfold [cli-markdown-6]", async () => {
    const before = save("1.json", base, infra);
    const after = save(
      "2.json",
      config("00-worker", { ...files({ "/etc/a": "one\n2\n" }), kernelArguments: [] }),
      infra,
    );
    const { code, out } = await mco("diff", before, after, "--pool", "worker", "--format", "markdown");
    expect(code).toBe(2);
    expect(out).toMatch(/^### 1 configuration changed\n\n\| configuration \| changes \|\n/);
    expect(out).toMatch(/\n```diff\n~ \/etc\/a\n--- a\/etc\/a\n\+\+\+ b\/etc\/a\n[^]*\n-two\n\+2\n[^]*\n```\n/);
    expect(await mco("diff", before, before, "--format", "markdown")).toMatchObject({
      code: 0,
      out: "### Both sides are equal\n",
    });
    expect(await mco("diff", before, after, "--format", "html")).toMatchObject({ code: "MCO_USAGE" });
    expect(await mco("diff", before, after, "--json", "--format", "markdown")).toMatchObject({ code: "MCO_USAGE" });
  });

  test("folders are compared pool by pool", async () => {
    const before = save("1.json", base, infra);
    const after = save("2.json", base, infra, config("50-infra", files({ "/etc/b": "b\n" }), "infra"));
    const result = await mco("diff", before, after, "--json");
    expect(result.code).toBe(2);
    expect(json(result)).toMatchObject({
      comparisons: [
        { pool: "infra", changes: [{ kind: "file", path: "/etc/b", op: "create" }] },
        { pool: "worker", changes: [] },
      ],
    });
  });

  test("configurations by name, and a folder over another one", async () => {
    const known = save(
      "1.json",
      base,
      config("rendered-worker-1", files({ "/etc/a": "1\n" })),
      config("rendered-worker-2", files({ "/etc/a": "2\n" })),
    );
    expect((await mco("diff", "rendered-worker-1", "rendered-worker-2", "-f", known)).out).toContain("-1\n+2\n");
    expect((await mco("diff", "rendered-worker-1", "rendered-worker-3", "-f", known)).code).toBe("MCO_NAME_ABSENT");
    expect((await mco("diff", save("2.json", config("99-x", files({ "/etc/x": "x\n" }))), "-f", known)).out).toContain(
      "+ /etc/x",
    );
  });

  test("no secret is printed in any form", async () => {
    const secrets = (secret: string) =>
      config("00-worker", {
        config: {
          ignition: { version: "3.4.0" },
          passwd: { users: [{ name: "core", passwordHash: `$6$salt$${secret}${secret}` }] },
          storage: {
            files: [
              { path: "/etc/k", mode: 0o600, contents: { source: encodeDataUrl(secret) } },
              { path: "/etc/p", mode: 0o644, contents: { source: encodeDataUrl(`password=${secret}\n`) } },
            ],
          },
        },
      });
    const [one, other] = [save("1.json", secrets("hunter2")), save("2.json", secrets("hunter3"))];
    for (const args of [
      ["diff", one, other],
      ["diff", one, other, "--json"],
      ["plan", "-f", other, "--from", one],
      ["plan", "-f", other, "--from", one, "--json"],
    ] as const) {
      const [verb, ...rest] = args;
      const { code, out } = await mco(verb, ...rest);
      expect(code).toBe(2);
      expect(out).toContain("/etc/k");
      expect(out).not.toContain("hunter");
    }
  });
});

describe("mco blame", () => {
  const members = [base, config("99-worker", { ...files({ "/etc/a": "three\n" }), kernelArguments: ["nosmt"] })];
  test("prints which member provides a file and what it overrides", async () => {
    const result = await mco("blame", "/etc/a", "--pool", "worker", "-f", save("1.json", ...members));
    expect(result.code).toBe(0);
    expect(result.out).toContain("  file /etc/a\n    from 99-worker, after 00-worker\n");
    expect(result.out).toContain("99-worker overrides the contents of 00-worker");
  });
  test("names the field of a KubeletConfig that a line of kubelet.conf comes from", async () => {
    const path = save(
      "1.json",
      kubeletBase,
      kubeletConfig({ maxPods: 64, evictionHard: { "memory.available": "1Gi" } }),
    );
    const { out } = await mco("blame", "/etc/kubernetes/kubelet.conf", "--pool", "worker", "-f", path);
    expect(out).toContain("from 99-worker-generated-kubelet, after 01-worker-kubelet\n");
    expect(out).toContain("    maxPods: 64: KubeletConfig/more-pods spec.kubeletConfig.maxPods\n");
    expect(out).toContain(
      '    evictionHard.memory.available: "1Gi": KubeletConfig/more-pods spec.kubeletConfig.evictionHard.memory.available\n',
    );
    expect(out).not.toContain("podPidsLimit");
  });

  test("prints the origin of kernel arguments, units and fields, also as JSON", async () => {
    const path = save("1.json", ...members);
    expect(json(await mco("blame", "--karg", "nosmt", "-f", path, "--json"))).toMatchObject({
      apiVersion: "cli.mco/v1",
      kind: "Blame",
      pools: [{ pool: "worker", origins: [{ kind: "kernelArgument", name: "nosmt", from: "99-worker" }] }],
    });
    expect((await mco("blame", "--field", "fips", "-f", path)).out).toContain("from cluster");
    expect(await mco("blame", "--unit", "none.service", "-f", path)).toMatchObject({ code: 1, out: "" });
    expect((await mco("blame", "-f", path)).code).toBe("MCO_USAGE");
  });
});

const kubeletConfig = (kubeletConfig_: object, pool = "worker") => ({
  apiVersion,
  kind: "KubeletConfig",
  metadata: { name: "more-pods" },
  spec: {
    machineConfigPoolSelector: { matchLabels: { [`pools.operator.machineconfiguration.openshift.io/${pool}`]: "" } },
    kubeletConfig: kubeletConfig_,
  },
});
const kubeletBase = config(
  "01-worker-kubelet",
  files({ "/etc/kubernetes/kubelet.conf": JSON.stringify(kubeletDefaults("worker", "10.0.0.10")) }),
  "worker",
  { annotations: { [annotations.generatedByController]: "base" } },
);

describe("mco validate", () => {
  test.for([
    [{ maxPods: 500 }, 0, /0 errors, 0 warnings/],
    [{ maxPods: -1 }, 1, /error: KubeletConfig\/more-pods: spec\.kubeletConfig\.maxPods: must be at least 0/],
    [{ maxPods: "x" }, 1, /error: KubeletConfig\/more-pods: spec\.kubeletConfig\.maxPods: must be a whole number/],
    [
      { maxpods: 3 },
      0,
      /warning: KubeletConfig\/more-pods: spec\.kubeletConfig\.maxpods: is no field of kubelet 1\.34, which ignores it; write maxPods/,
    ],
    [{ serializeImagePulls: false, clusterDNS: ["10.0.0.1"] }, 1, /clusterDNS: must not be set/],
  ] as const)("a KubeletConfig is judged as a kubelet judges it: %j", async ([settings, code, says]) => {
    const result = await mco("validate", save("1.json", kubeletConfig(settings)));
    expect([result.code, result.out]).toEqual([code, expect.stringMatching(says)]);
  });

  test("a ContainerRuntimeConfig is judged as the reference judges it", async () => {
    const object = { ...kubeletConfig({}), kind: "ContainerRuntimeConfig" };
    const spec = { ...object.spec, kubeletConfig: undefined, containerRuntimeConfig: { pidsLimit: 3 } };
    const { code, out } = await mco("validate", save("1.json", { ...object, spec }));
    expect([code, out]).toEqual([1, expect.stringContaining("spec.containerRuntimeConfig.pidsLimit: must be 0")]);
  });

  test("good manifests have no problem", async () => {
    expect(await mco("validate", save("1.json", base, infra))).toMatchObject({
      code: 0,
      out: "2 documents: 0 errors, 0 warnings\n",
    });
  });

  test("every problem has file, document, line, field, reason and remedy", async () => {
    const path = join(typed.folder, "bad.yaml");
    writeFileSync(
      path,
      `apiVersion: ${apiVersion}
kind: MachineConfig
metadata: {name: a, labels: {${labels.role}: worker}}
spec:
  kernelType: fast
  config:
    ignition: {version: 3.4.0}
    storage:
      files:
        - path: /etc/a
        - path: etc/b
---
apiVersion: ${apiVersion}
kind: MachineConfigPool
metadata: {name: p}
spec:
  paused: maybe
  colour: blue
---
- [
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
---
apiVersion: ${apiVersion}
kind: MachineConfig
metadata: {name: a, labels: {${labels.role}: worker}}
`,
    );
    const result = await mco("validate", path, "--json");
    expect(result.code).toBe(1);
    const { problems } = json(result) as {
      problems: { document: number; line: number; severity: string; object: string; path: string; remedy?: string }[];
    };
    expect(problems.map(({ document, line, path: field, severity }) => [document, line, severity, field])).toEqual([
      [1, 5, "error", "spec.kernelType"],
      [1, 11, "error", "spec.config.storage.files[1].path"],
      [2, 17, "error", "spec.paused"],
      [2, 18, "warning", "spec.colour"],
      [3, expect.any(Number), "error", ""],
      [4, 23, "warning", "kind"],
      [5, 28, "error", "metadata.name"],
    ]);
    expect(problems[0]?.remedy).toBe("one of default, realtime, 64k-pages");
    expect((await mco("validate", path)).out).toContain(`${path}:5:15: error: MachineConfig/a: spec.kernelType: `);
  });

  test("violations of the API server's schema are reported too", async () => {
    const manifest = {
      apiVersion: "operator.openshift.io/v1",
      kind: "MachineConfiguration",
      metadata: { name: "cluster" },
      spec: { nodeDisruptionPolicy: { files: [{ path: "/etc/a", actions: [{ type: "Reboot" }, { type: "Drain" }] }] } },
    };
    expect((await mco("validate", save("1.json", manifest))).out).toContain("Reboot must be the only action");
  });

  test("the hook of pre-commit names the command, which takes several files [cli-pre-commit-1]", async () => {
    const hooks = parse(readFileSync(join(import.meta.dirname, "../../.pre-commit-hooks.yaml"), "utf8")) as readonly {
      readonly entry: string;
    }[];
    expect(hooks.map(({ entry }) => entry)).toEqual(["mco validate --"]);
    expect((await mco("validate", "--", save("1.json", base), save("2.json", infra))).code).toBe(0);
    // The name of a file is no flag.
    expect(await mco("validate", "--", "-fnone.yaml")).toMatchObject({
      code: 1,
      out: expect.stringContaining("-fnone.yaml: error: there is no such file or folder") as string,
    });
  });

  test("what is missing is an error, no crash", async () => {
    expect(await mco("validate", join(typed.folder, "none.yaml"))).toMatchObject({
      code: 1,
      out: expect.stringContaining("there is no such file or folder") as string,
    });
    expect((await mco("validate")).code).toBe("MCO_USAGE");
  });
});

const mirrorSet = (name: string, ...imageDigestMirrors: readonly object[]) => ({
  apiVersion: "config.openshift.io/v1",
  kind: "ImageDigestMirrorSet",
  metadata: { name },
  spec: { imageDigestMirrors },
});
const mirrored = { source: "quay.io/team", mirrors: ["mirror.example.com/team"] };
const blocks = {
  apiVersion: "config.openshift.io/v1",
  kind: "Image",
  metadata: { name: "cluster" },
  spec: { registrySources: { blockedRegistries: ["quay.io"] } },
};
const tenantPolicy = (namespace: string) => ({
  apiVersion: "config.openshift.io/v1",
  kind: "ImagePolicy",
  metadata: { name: "own", namespace },
  spec: {
    scopes: [`quay.io/${namespace}`],
    policy: {
      rootOfTrust: {
        policyType: "PublicKey",
        publicKey: { keyData: btoa("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n") },
      },
    },
  },
});

describe("settings of registries", () => {
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "w0", labels: { "node-role.kubernetes.io/worker": "" } },
  };

  test("mco plan as a comment: a row for each fate of machines, and the reasons to unfold [cli-markdown-5]", async () => {
    const from = save("1.json", base, node, { ...node, metadata: { ...node.metadata, name: "w1" } });
    const change = save("2.json", config("50-worker", files({ "/etc/new": "@all `x` | </details>" })));
    const { code, out } = await mco("plan", "-f", change, "--from", from, "--format", "markdown");
    expect(code).toBe(2);
    expect(out).toMatch(
      /^### This change concerns 1 of 1 pool\n\n\| pool \| configuration \| machines \| what happens \|\n/,
    );
    expect(out).toMatch(/\n\| `worker` \| `rendered-worker-[0-9a-f]{32}` \| 2 \| `drain, reboot` \|\n/);
    expect(out).toMatch(
      /<summary><code>pool worker<\/code><\/summary>\n\n```text\n[^]*because[^]*\n```\n\n<\/details>\n$/,
    );
    const wrong = save("3.json", config("50-worker", files({ "etc/new": "x" })));
    expect(await mco("plan", "-f", wrong, "--from", from, "--format", "markdown")).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^### This change cannot be applied\n/) as string,
    });
  });

  test("mco plan --os-stream shows the machines that reboot, what breaks them, and what is not known [cli-os-stream-1]", async () => {
    const image = (name: string) => `registry.example.com/${name}@sha256:${"0".repeat(64)}`;
    const streams = {
      apiVersion,
      kind: "OSImageStream",
      metadata: { name: "cluster" },
      spec: { defaultStream: "a" },
      status: {
        defaultStream: "a",
        availableStreams: ["a", "b"].map((name) => ({
          name,
          osImage: image(name),
          osExtensionsImage: image(`${name}-extensions`),
        })),
      },
    };
    const from = save("streams.json", base, controllerConfig, streams, node);
    const planned = await mco("plan", "--os-stream", "b", "--from", from);
    expect(planned.out).toContain("w0: drain, reboot");
    expect(planned.out).toContain(
      `OS image stream b: ${image("b")}\npool worker: w0\n  not known: the OS image could not be read`,
    );
    expect(planned.code).toBe(2);
    expect(await mco("plan", "--os-stream", "c", "--from", from)).toMatchObject({ code: "MCO_USAGE" });
  });

  test("mco plan shows what a mirror set changes on which machines, and what it costs them [cli-registries-1]", async () => {
    const from = save("1.json", base, node, mirrorSet("a", { ...mirrored, source: "quay.io/other" }));
    const result = await mco("plan", "-f", save("2.json", mirrorSet("b", mirrored)), "--from", from);
    expect(result).toMatchObject({ code: 2 });
    expect(result.out).toContain("~ /etc/containers/registries.conf");
    expect(result.out).toContain("reload crio.service");
    expect(result.out).toContain("w0: reload crio.service");
    expect(result.out).not.toContain("not part of this plan");
    // The settings that are there already are no change.
    const same = await mco(
      "plan",
      "-f",
      save("3.json", mirrorSet("a", { ...mirrored, source: "quay.io/other" })),
      "--from",
      from,
    );
    expect(same).toMatchObject({ code: 0, out: expect.stringContaining("pool worker: nothing changes") as string });
  });

  test("mco plan refuses a mirror set that contradicts another, with the field [cli-registries-2]", async () => {
    const never = mirrorSet("b", { ...mirrored, mirrorSourcePolicy: "NeverContactSource" });
    const result = await mco(
      "plan",
      "-f",
      save("2.json", never),
      "--from",
      save("1.json", base, mirrorSet("a", mirrored)),
    );
    expect(result.code).toBe(1);
    expect(result.out).toContain(
      "refused: ImageDigestMirrorSet/b: spec.imageDigestMirrors[0].mirrorSourcePolicy: must be the same in every rule for quay.io/team",
    );
  });

  test("mco validate judges a mirror set as an API server does [cli-registries-4]", async () => {
    const tagged = mirrorSet("b", { ...mirrored, mirrors: ["mirror.example.com/team:v1"] });
    expect((await mco("validate", save("1.json", mirrorSet("a", mirrored)))).code).toBe(0);
    const { code, out } = await mco("validate", save("2.json", tagged));
    expect(code).toBe(1);
    expect(out).toContain("spec.imageDigestMirrors[0].mirrors[0]");
  });

  test("mco validate and mco plan judge mirror sets with each other, without any machine [cli-registries-5]", async () => {
    const never = mirrorSet("b", { ...mirrored, mirrorSourcePolicy: "NeverContactSource" });
    const path = save("1.json", mirrorSet("a", mirrored), never);
    const problem = "must be the same in every rule for quay.io/team; ImageDigestMirrorSet/a";
    const { code, out } = await mco("validate", path);
    expect([code, out]).toEqual([1, expect.stringContaining(problem)]);
    // Both are told, each with what to do.
    expect(out).toMatch(/ImageDigestMirrorSet\/a: .*; ImageDigestMirrorSet\/b .*; write NeverContactSource here, or/);
    expect(out).toMatch(/ImageDigestMirrorSet\/b: .*; write AllowContactingSource here, or NeverContactSource there\n/);
    expect(await mco("plan", "-f", path, "--offline")).toMatchObject({
      code: 1,
      out: expect.stringContaining(
        `refused: ImageDigestMirrorSet/b: spec.imageDigestMirrors[0].mirrorSourcePolicy: ${problem}`,
      ),
    });
    // What has the wrong shape is judged by itself.
    const shapeless = { ...never, spec: { imageDigestMirrors: "none" } };
    const wrong = await mco("validate", save("2.json", mirrorSet("a", mirrored), shapeless));
    expect(wrong.code).toBe(1);
    expect(wrong.out).not.toContain("must be the same");
  });

  test("mco validate and mco plan warn of a mirror set that the Image config leaves without effect [cli-registries-7]", async () => {
    const problem =
      "spec.imageDigestMirrors[0].source: has no effect: machines refuse images of quay.io/team, from mirrors as well, because Image/cluster spec.registrySources.blockedRegistries[0] blocks quay.io; take the block out";
    const path = save("1.json", mirrorSet("a", mirrored), blocks);
    const { code, out } = await mco("validate", path);
    expect([code, out]).toEqual([0, expect.stringContaining(`warning: ImageDigestMirrorSet/a: ${problem}`)]);
    const planned = await mco(
      "plan",
      "-f",
      save("2.json", blocks),
      "--from",
      save("3.json", base, node, mirrorSet("a", mirrored)),
    );
    expect(planned.code).toBe(2);
    expect(planned.out).toContain(`warning: ImageDigestMirrorSet/a: ${problem.replace("source:", "source")}`);
  });

  test("image policies of one name in two namespaces are two objects [cli-registries-6]", async () => {
    const [one, two] = [tenantPolicy("one"), tenantPolicy("two")];
    expect(await mco("validate", save("1.json", one, two))).toMatchObject({ code: 0 });
    const { code, out } = await mco("validate", save("2.json", one, one));
    expect([code, out]).toEqual([1, expect.stringContaining("ImagePolicy/one/own stands in")]);
  });

  test("mco plan refuses a policy of a namespace that would be left out, as mco validate does [cli-registries-8]", async () => {
    const left =
      "ImagePolicy/one/own: spec.scopes[0]: quay.io/one is in quay.io, which the Image config cluster blocks";
    const validated = await mco("validate", save("1.json", blocks, tenantPolicy("one")));
    expect([validated.code, validated.out]).toEqual([1, expect.stringContaining(`error: ${left}`)]);
    const refused = { code: 1, out: expect.stringContaining(`refused: ${left}`) as string };
    const own = save("2.json", tenantPolicy("one"));
    expect(await mco("plan", "-f", own, "--from", save("3.json", base, node, blocks))).toMatchObject(refused);
    // The same object again is no change, and still left out.
    const there = save("4.json", base, node, blocks, tenantPolicy("one"));
    expect(await mco("plan", "-f", own, "--from", there)).toMatchObject(refused);
    // So is one that another object of the change takes its effect from; the others reach machines.
    const before = save("5.json", base, node, tenantPolicy("one"));
    const { code, out } = await mco("plan", "-f", save("6.json", blocks), "--from", before);
    expect([code, out]).toEqual([1, expect.stringContaining(`refused: ${left}`)]);
    expect(out).toContain("w0: drain, reload crio.service");
  });

  test("mco plan counts what was wrong with registries before the change, and says what the change adds [cli-registries-9]", async () => {
    const from = save("1.json", base, node, blocks, mirrorSet("a", mirrored), tenantPolicy("one"));
    const added = save("2.json", mirrorSet("b", { ...mirrored, source: "quay.io/other" }));
    const { code, out } = await mco("plan", "-f", added, "--from", from);
    expect(code).toBe(2);
    expect(out.split("\n").filter((line) => /^(warning|refused):/.test(line))).toEqual([
      expect.stringContaining("warning: ImageDigestMirrorSet/b: spec.imageDigestMirrors[0].source has no effect"),
      "warning: 2 problems with registries stood before this change (mco explain tells more): ImageDigestMirrorSet/a, ImagePolicy/one/own",
    ]);
    expect(json(await mco("plan", "-f", added, "--from", from, "--json"))).toMatchObject({
      refusals: [],
      warnings: [expect.anything(), expect.anything()],
    });
  });

  test("mco blame leads from a file to the fields of the objects that it was made from [cli-registries-3]", async () => {
    const path = save("1.json", base, mirrorSet("a", mirrored));
    const result = await mco("blame", "/etc/containers/registries.conf", "-f", path);
    expect(result.code).toBe(0);
    expect(result.out).toContain("from 99-worker-generated-registries");
    expect(result.out).toContain(
      "quay.io/team: mirror mirror.example.com/team for digests: ImageDigestMirrorSet/a spec.imageDigestMirrors[0].mirrors[0]",
    );
    expect(json(await mco("blame", "/etc/containers/registries.conf", "-f", path, "--json"))).toMatchObject({
      pools: [
        {
          origins: [{ causes: [{ object: "ImageDigestMirrorSet/a", path: "spec.imageDigestMirrors[0].mirrors[0]" }] }],
        },
      ],
    });
  });
});

describe("a CRIOCredentialProviderConfig", () => {
  const credentials = (...matchImages: readonly string[]) => ({
    apiVersion: "config.openshift.io/v1",
    kind: "CRIOCredentialProviderConfig",
    metadata: { name: "cluster" },
    spec: { matchImages },
  });
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "w0", labels: { "node-role.kubernetes.io/worker": "" } },
  };
  const role = { "machineconfiguration.openshift.io/role": "worker" };
  const files = { ...base, metadata: { name: "00-worker", labels: role } };
  const path = "/etc/kubernetes/credential-providers/generic-credential-provider.yaml";

  test("mco plan shows the file and that kubelets restart; what is there already is no change [cli-credentials-1]", async () => {
    const from = save("1.json", files, node);
    const result = await mco("plan", "-f", save("2.json", credentials("quay.io")), "--from", from);
    expect(result).toMatchObject({ code: 2 });
    expect(result.out).toContain(`+ ${path}`);
    expect(result.out).toContain("restart kubelet.service");
    expect(result.out).not.toContain("not part of this plan");
    const there = save("3.json", files, node, credentials("quay.io"));
    const same = await mco("plan", "-f", save("4.json", credentials("quay.io")), "--from", there);
    expect(same).toMatchObject({ code: 0, out: expect.stringContaining("pool worker: nothing changes") as string });
  });

  test("mco plan and mco validate refuse what a kubelet would not take, with the place [cli-credentials-2]", async () => {
    const wrong = save("1.json", credentials("quay.io", "Quay.io"));
    const plan = await mco("plan", "-f", wrong, "--from", save("2.json", files, node));
    expect(plan.code).toBe(1);
    expect(plan.out).toContain("refused: CRIOCredentialProviderConfig/cluster: spec.matchImages[1]");
    const validate = await mco("validate", wrong);
    expect(validate.code).toBe(1);
    expect(validate.out).toContain("spec.matchImages[1]");
    expect((await mco("validate", save("3.json", credentials("quay.io")))).code).toBe(0);
  });

  test("mco blame leads from the file to the match image [cli-credentials-3]", async () => {
    const result = await mco("blame", path, "-f", save("1.json", files, credentials("quay.io", "docker.io")));
    expect(result.out).toContain("from 97-worker-generated-credentialproviderconfig");
    expect(result.out).toContain(
      "docker.io: credentials by CRI-O: CRIOCredentialProviderConfig/cluster spec.matchImages[1]",
    );
  });
});

describe("mco plan without a cluster", () => {
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "w0", labels: { "node-role.kubernetes.io/worker": "" } },
  };
  test("a pool that the cluster's default opts in to images drains and reboots, whatever the change [cli-offline-commands-40]", async () => {
    const buildConfig = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: objects.buildConfig, namespace },
      data: { defaultOptIn: "true" },
    };
    const mirrors = config("99-x", files({ "/etc/containers/registries.conf": "" }));
    const planned = async (...before: readonly object[]) =>
      (await mco("plan", "-f", save("2.json", mirrors), "--from", save("1.json", base, node, ...before), "--json")).out;
    const nodesOf = (out: string) => (JSON.parse(out) as { pools: readonly { nodes: unknown }[] }).pools[0]?.nodes;
    expect(nodesOf(await planned())).toMatchObject([{ node: "w0", reboots: false, disruption: "services" }]);
    expect(nodesOf(await planned(buildConfig))).toMatchObject([{ node: "w0", drains: true, reboots: true }]);
    const optIn = await mco("plan", "-f", save("3.json", buildConfig), "--from", save("1.json", base, node));
    expect(optIn.out).toContain("pool worker opts in to images: every machine of it drains and reboots");
    expect(optIn.out).not.toContain("ConfigMap");
  });

  test("a folder replaces the cluster, including machines", async () => {
    const result = await mco(
      "plan",
      "-f",
      save("2.json", config("99-x", files({ "/etc/x": "x" }))),
      "--from",
      save("1.json", base, node),
      "--json",
    );
    expect(result.code).toBe(2);
    expect(json(result)).toMatchObject({
      kind: "Plan",
      pools: [
        {
          pool: "worker",
          verdict: "changes",
          to: nameOf("worker", [base, config("99-x", files({ "/etc/x": "x" }))]),
          nodes: [{ node: "w0", drains: true, reboots: true }],
        },
      ],
    });
  });

  describe("with sets of pinned images", () => {
    const pinned = (name: string, ...images: readonly string[]) => ({
      apiVersion: "machineconfiguration.openshift.io/v1",
      kind: "PinnedImageSet",
      metadata: { name, labels: { "machineconfiguration.openshift.io/role": "worker" } },
      spec: { pinnedImages: images.map((image) => ({ name: image })) },
    });
    const [one, two] = ["1", "2"].map((digit) => `registry.example.com/app@sha256:${digit.repeat(64)}`);

    test("names the machines, the images that come and those that go, and that nothing is disrupted [offline-commands-pins-1]", async () => {
      const before = save("1.json", base, node, pinned("a", one ?? ""));
      const { code, out } = await mco("plan", "-f", save("2.json", pinned("a", two ?? "")), "--from", before);
      expect(code).toBe(2);
      expect(out).toContain(
        [
          "pool worker: pinned images change",
          `  + ${two}`,
          `  - ${one}`,
          "  w0: fetches 1 image where it is missing (20 machines of the cluster at a time; each compares the sizes with its free disk before it begins); unpins 1 image, which the kubelet may remove; no drain, no reboot",
          "  w0: 1 image, of sizes that are not known; its kubelet does not say how large its disk is",
          `  not known: the size of ${two}: no cluster is asked for its credentials`,
        ].join("\n"),
      );
      const same = await mco("plan", "-f", save("3.json", pinned("b", one ?? "")), "--from", before);
      expect([same.code, same.out.includes("pinned")]).toEqual([0, false]);
    });

    test("warns of a set that no pool has, and refuses a tag with the field and what to write [offline-commands-pins-2]", async () => {
      const alone = { ...pinned("a", one ?? ""), metadata: { name: "a" } };
      const warned = await mco("plan", "-f", save("2.json", alone), "--from", save("1.json", base, node));
      expect(warned.out).toContain("warning: PinnedImageSet/a: metadata.labels: no pool selects it");
      const tag = pinned("a", "registry.example.com/app:latest");
      const refused = await mco("plan", "-f", save("3.json", tag), "--from", save("1.json", base, node));
      expect(refused.code).toBe(1);
      expect(refused.out).toMatch(
        /refused: PinnedImageSet\/a: spec\.pinnedImages\[0\]\.name: .*must be named by its digest/,
      );
    });
  });

  test("without anything before it, everything is new", async () => {
    expect(await mco("plan", "-f", save("1.json", base), "--offline")).toMatchObject({
      code: 2,
      out: expect.stringContaining(`pool worker: renders ${nameOf("worker", [base])}`) as string,
    });
  });

  test("a KubeletConfig shows the lines of kubelet.conf that change, and what that costs", async () => {
    const before = save("1.json", base, kubeletBase, node);
    const { out, code } = await mco("plan", "-f", save("2.json", kubeletConfig({ maxPods: 64 })), "--from", before);
    expect(out).toContain("~ /etc/kubernetes/kubelet.conf\n      maxPods: 250 → 64\n\n");
    expect(out).toMatch(/w0: .*reboot/);
    expect(out).not.toContain("conflict");
    expect(code).toBe(2);
    // The base is JSON, and what is generated is YAML.
    const first = save("1.json", base, kubeletBase, node, kubeletConfig({ maxPods: 64 }));
    const again = await mco("plan", "-f", save("2.json", kubeletConfig({ maxPods: 65 })), "--from", first);
    expect(again.out).toContain("      maxPods: 64 → 65\n");
  });

  test.for([
    [
      kubeletConfig({ maxPods: -1 }),
      "refused: KubeletConfig/more-pods: spec.kubeletConfig.maxPods: must be at least 0",
    ],
    [
      kubeletConfig({ maxPods: 3 }, "none"),
      "refused: KubeletConfig/more-pods: spec.machineConfigPoolSelector: selects none of the pools",
    ],
    [
      kubeletConfig({ maxPods: 3, x: 1 }),
      "warning: KubeletConfig/more-pods: spec.kubeletConfig.x is no field of kubelet 1.34",
    ],
  ] as const)("a KubeletConfig that is wrong says why: %#", async ([object, says]) => {
    const { out } = await mco("plan", "-f", save("2.json", object), "--from", save("1.json", base, kubeletBase));
    expect(out).toContain(says);
  });

  test("members that give one path different contents are a conflict", async () => {
    const { out } = await mco(
      "plan",
      "-f",
      save("2.json", config("99-x", files({ "/etc/a": "x" }))),
      "--from",
      save("1.json", base),
    );
    expect(out).toContain("warning: conflict: 99-x replaces the contents that 00-worker gives /etc/a");
  });

  test("what running machines could not follow is refused with the member's name", async () => {
    const links = config("99-links", {
      config: { ignition: { version: "3.4.0" }, storage: { links: [{ path: "/etc/l", target: "/etc/a" }] } },
    });
    const { code, out } = await mco("plan", "-f", save("2.json", links), "--from", save("1.json", base));
    expect(code).toBe(1);
    expect(out).toContain("99-links");
    expect(out).toContain("the section links changes");
  });
});

describe("a manifest without the shape of its kind", () => {
  const wrong = [
    [{ ...config("x", {}), spec: { config: "x", kernelArguments: 5 } }, "MachineConfig/x: spec.config"],
    [{ ...infra, spec: { machineConfigSelector: "x" } }, "MachineConfigPool/infra: spec.machineConfigSelector"],
    [
      {
        apiVersion: "config.openshift.io/v1",
        kind: "ImageDigestMirrorSet",
        metadata: { name: "team" },
        spec: { imageDigestMirrors: "x" },
      },
      "ImageDigestMirrorSet/team: spec.imageDigestMirrors",
    ],
  ] as const;

  test.for(wrong)("ends every command with its field [offline-commands-1] %#", async ([manifest, field]) => {
    const [file, sound] = [save("wrong.json", manifest), save("sound.json", base)];
    for (const [name, ...args] of [
      ["render", "worker", "-f", file],
      ["diff", sound, file],
      ["blame", "/etc/a", "--pool", "worker", "-f", file],
    ] as const)
      expect([name, (await mco(name, ...args)).code]).toEqual([name, "MCO_MANIFEST_INVALID"]);
    for (const words of [
      ["--from", sound, "-f", file],
      ["--from", file, "-f", sound],
    ]) {
      const { code, out } = await mco("plan", ...words);
      expect([code, out]).toEqual([1, expect.stringContaining(`refused: ${field}: `)]);
    }
  });
});
