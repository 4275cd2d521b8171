import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { labels } from "../api/names.ts";
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

  test("a pool that nobody knows is a usage error", async () => {
    expect((await mco("render", "blue", "-f", save("1.json", base))).code).toBe("MCO_USAGE");
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
    expect((await mco("diff", "rendered-worker-1", "rendered-worker-3", "-f", known)).code).toBe("MCO_USAGE");
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
  test("tells who gave a file and what that overrode", async () => {
    const result = await mco("blame", "/etc/a", "--pool", "worker", "-f", save("1.json", ...members));
    expect(result.code).toBe(0);
    expect(result.out).toContain("  file /etc/a\n    from 99-worker, after 00-worker\n");
    expect(result.out).toContain("99-worker overrides the contents of 00-worker");
  });
  test("tells it of kernel arguments, units and fields, as JSON too", async () => {
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

describe("mco validate", () => {
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
    expect((await mco("validate", path)).out).toContain(`${path}:5: error: MachineConfig/a: spec.kernelType: `);
  });

  test("rules that only the API server's schema holds are told too", async () => {
    const manifest = {
      apiVersion: "operator.openshift.io/v1",
      kind: "MachineConfiguration",
      metadata: { name: "cluster" },
      spec: { nodeDisruptionPolicy: { files: [{ path: "/etc/a", actions: [{ type: "Reboot" }, { type: "Drain" }] }] } },
    };
    expect((await mco("validate", save("1.json", manifest))).out).toContain("Reboot and None must be the only action");
  });

  test("what is missing is an error, no crash", async () => {
    expect(await mco("validate", join(typed.folder, "none.yaml"))).toMatchObject({
      code: 1,
      out: expect.stringContaining("cannot be read: ENOENT") as string,
    });
    expect((await mco("validate")).code).toBe("MCO_USAGE");
  });
});

describe("mco plan without a cluster", () => {
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "w0", labels: { "node-role.kubernetes.io/worker": "" } },
  };
  test("a folder stands for the cluster, machines included", async () => {
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

  test("without anything before it, everything is new", async () => {
    expect(await mco("plan", "-f", save("1.json", base), "--offline")).toMatchObject({
      code: 2,
      out: expect.stringContaining(`pool worker: renders ${nameOf("worker", [base])}`) as string,
    });
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
