import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { mergePolicies } from "../config/disruption-policy.ts";
import { type NodeConfig, nodeConfigOf, splitKernelArguments } from "../config/node-config.ts";
import { observedAs } from "../preview/plan-cluster.ts";
import { planNode } from "./plan-node.ts";
import { ignitionOf } from "../config/validate-machine-config.ts";
import type { ObservedDeployment, ObservedNode } from "./observed-node.ts";

const policies = mergePolicies({
  files: [{ path: "/etc/quiet", actions: [{ type: "None" }] }],
  units: [
    {
      name: "a.service",
      actions: [{ type: "DaemonReload" }, { type: "Reload", reload: { serviceName: "a.service" } }],
    },
  ],
});
const installable = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";

interface Parts {
  readonly files?: Readonly<Record<string, string>>;
  readonly units?: readonly object[];
  readonly keys?: readonly string[];
  readonly kernelArguments?: readonly string[];
  readonly osImage?: string;
  readonly extensions?: readonly string[];
  readonly kernelType?: string;
  /** More of the storage section: directories, links, files that append. */
  readonly storage?: {
    readonly directories?: readonly object[];
    readonly links?: readonly object[];
    readonly files?: readonly object[];
  };
}

function config(
  name: string,
  {
    files = {},
    units = [],
    keys = [],
    kernelArguments = [],
    osImage = "",
    extensions = [],
    kernelType,
    storage = {},
  }: Parts,
): NodeConfig {
  const machineConfig: MachineConfig = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name },
    spec: {
      osImageURL: osImage,
      kernelArguments: [...kernelArguments],
      extensions: [...extensions],
      ...(kernelType === undefined ? {} : { kernelType }),
      baseOSExtensionsContainerImage: "extensions@1",
      config: {
        ignition: { version: "3.5.0" },
        storage: {
          ...storage,
          files: [
            ...Object.entries(files).map(([path, text]) => ({ path, contents: { source: encodeDataUrl(text) } })),
            ...(storage.files ?? []),
          ],
        },
        systemd: { units },
        ...(keys.length === 0 ? {} : { passwd: { users: [{ name: "core", sshAuthorizedKeys: keys }] } }),
      },
    },
  };
  const ignition = ignitionOf(machineConfig);
  const result = nodeConfigOf(machineConfig, ignition?.verdict === "valid" ? ignition.config : undefined);
  if (result.verdict === "refused") throw new Error(result.reason);
  return result.config;
}

const before = config("old", {
  files: { "/etc/a": "1", "/etc/quiet": "1" },
  units: [{ name: "a.service", enabled: true, contents: installable }],
  kernelArguments: ["quiet"],
  osImage: "os@1",
});
const on = (change: Partial<ObservedNode> = {}): ObservedNode => ({
  ...observedAs(before, { image: "os@1", onlyControlPlane: false }),
  ...change,
});
const system = (image: string, kernelArguments: readonly string[]): ObservedDeployment => ({
  image,
  kernelArguments,
  packages: [],
  kernelType: "default",
});
const same: Parts = {
  files: { "/etc/a": "1", "/etc/quiet": "1" },
  units: [{ name: "a.service", enabled: true, contents: installable }],
  kernelArguments: ["quiet"],
  osImage: "os@1",
};
const to = (parts: Parts) => config("new", { ...same, ...parts });
const stepsOf = (node: ObservedNode, target: NodeConfig) => {
  const plan = planNode(node, target, policies);
  return plan.verdict !== "change"
    ? []
    : plan.steps.map((step) =>
        "paths" in step && step.do !== "openLedger"
          ? `${step.do} ${step.paths.join(" ")}`
          : "path" in step
            ? `${step.do} ${step.path}`
            : "unit" in step
              ? `${step.do} ${step.unit}`
              : step.do === "relinkUnits"
                ? `${step.do} - ${step.remove.join(" ")}${step.make.map(({ path }) => ` + ${path}`).join("")}`
                : step.do,
      );
};

describe("planNode", () => {
  test("asks for nothing when the machine has the target [machine-plan-node-1]", () => {
    expect(planNode(on(), before, policies)).toEqual({ verdict: "inSync" });
  });

  test.for<{ title: string; parts: Parts; node?: Partial<ObservedNode>; steps: readonly string[] }>([
    { title: "only another name: the ledger is closed for it", parts: {}, steps: ["closeLedger"] },
    {
      title: "a file that no policy names: drain first, reboot last",
      parts: { files: { "/etc/a": "2", "/etc/quiet": "1" } },
      steps: ["drain", "openLedger", "writeEntries /etc/a", "reboot", "closeLedger"],
    },
    {
      title: "a file with policy None: written, and that is all",
      parts: { files: { "/etc/a": "1", "/etc/quiet": "2" } },
      steps: ["openLedger", "writeEntries /etc/quiet", "closeLedger"],
    },
    {
      title: "a removed file: restored",
      parts: { files: { "/etc/a": "1" } },
      steps: ["openLedger", "restoreEntries /etc/quiet", "closeLedger"],
    },
    {
      title: "a drop-in of a unit with a policy: daemon-reload before the reload",
      parts: {
        units: [
          {
            name: "a.service",
            enabled: true,
            contents: installable,
            dropins: [{ name: "x.conf", contents: "[Service]\n" }],
          },
        ],
      },
      steps: [
        "openLedger",
        "writeEntries /etc/systemd/system/a.service.d/x.conf",
        "daemonReload",
        "reload a.service",
        "closeLedger",
      ],
    },
    {
      title: "a unit with a new text: links that it does not keep are removed before, new ones are made after",
      parts: { units: [{ name: "a.service", enabled: true, contents: `${installable}WantedBy=other.target\n` }] },
      node: {
        links: new Map([
          ["/etc/systemd/system/multi-user.target.wants/a.service", "/etc/systemd/system/a.service"],
          ["/etc/systemd/system/old.target.wants/a.service", "/etc/systemd/system/a.service"],
        ]),
        originals: { ...on().originals, links: { "a.service": {} } },
      },
      steps: [
        "openLedger",
        "relinkUnits - /etc/systemd/system/old.target.wants/a.service",
        "writeEntries /etc/systemd/system/a.service",
        "enableUnit a.service",
        "daemonReload",
        "reload a.service",
        "closeLedger",
      ],
    },
    {
      title: "a unit whose enablement is no longer configured follows the presets",
      parts: { units: [{ name: "a.service", contents: installable }] },
      steps: ["openLedger", "presetUnit a.service", "daemonReload", "reload a.service", "closeLedger"],
    },
    {
      title: "a unit that is disabled",
      parts: { units: [{ name: "a.service", enabled: false, contents: installable }] },
      steps: ["openLedger", "disableUnit a.service", "daemonReload", "reload a.service", "closeLedger"],
    },
    {
      title: "kernel arguments: staged before anything is written, then a reboot",
      parts: { kernelArguments: ["quiet", "nosmt"], files: { "/etc/a": "2", "/etc/quiet": "1" } },
      steps: ["drain", "openLedger", "stageOs", "writeEntries /etc/a", "reboot", "closeLedger"],
    },
    {
      title: "an OS image",
      parts: { osImage: "os@2" },
      steps: ["refreshCredentials", "prefetch", "drain", "openLedger", "stageOs", "reboot", "closeLedger"],
    },
    {
      title: "SSH keys: no disruption",
      parts: { keys: ["ssh-ed25519 A"] },
      steps: ["openLedger", "writeEntries /home/core/.ssh/authorized_keys.d/ignition", "closeLedger"],
    },
  ])("$title [machine-plan-node-2]", ({ parts, node, steps }) => {
    expect(stepsOf(on(node), to(parts))).toEqual(steps);
  });

  test("a machine without an earlier configuration reboots undrained [machine-plan-node-3]", () => {
    const { entries: _, ...fresh } = on();
    const steps = stepsOf(
      {
        ...fresh,
        entries: new Map(),
        previous: undefined,
        inService: false,
        originals: { paths: {}, enablement: {}, passwords: {}, kernelArguments: ["quiet"], ownKernelArguments: [] },
      },
      to({ files: { "/etc/a": "2" } }),
    );
    expect(steps).not.toContain("drain");
    expect(steps).toContain("reboot");
  });

  test("the only control-plane machine reboots undrained [machine-plan-node-5]", () => {
    expect(stepsOf(on({ onlyControlPlane: true }), to({ files: { "/etc/a": "2", "/etc/quiet": "1" } }))).toEqual([
      "openLedger",
      "writeEntries /etc/a",
      "reboot",
      "closeLedger",
    ]);
  });

  test("debts of an interrupted update are paid, also when the disk is right already [machine-plan-node-6]", () => {
    const target = to({ files: { "/etc/a": "2", "/etc/quiet": "1" } });
    const written = new Map(on().entries).set("/etc/a", {
      kind: "file",
      digest: digestOf(target, "/etc/a"),
      mode: 0o644,
      uid: 0,
      gid: 0,
    } as const);
    const ledger = { v: 1, target: "new", bootId: "", owes: [{ kind: "reboot" }], openedAt: "" } as const;
    // The ledger says it already: it is not written again.
    expect(stepsOf(on({ entries: written, ledger }), target)).toEqual(["drain", "reboot", "closeLedger"]);
    expect(stepsOf(on({ entries: written, ledger, bootId: "another boot" }), target)).toEqual(["closeLedger"]);
  });

  test("an obsolete staged system is discarded", () => {
    expect(stepsOf(on({ staged: system("os@9", []) }), before)).toEqual(["discardStaged", "closeLedger"]);
  });

  test("the same deployment is not staged twice [machine-plan-node-7]", () => {
    const target = to({ kernelArguments: ["quiet", "nosmt"] });
    expect(stepsOf(on({ staged: system("os@1", ["quiet", "nosmt"]) }), target)).not.toContain("stageOs");
  });

  test("arguments of other owners stay on the command line [machine-plan-node-9]", () => {
    const plan = planNode(
      on({
        booted: system("os@1", ["root=x", "quiet", "theirs"]),
        originals: { ...on().originals, kernelArguments: ["root=x"] },
      }),
      to({ kernelArguments: ["nosmt"] }),
      policies,
    );
    expect(plan.verdict === "change" ? plan.steps.find((step) => step.do === "stageOs") : undefined).toMatchObject({
      deployment: { kernelArguments: ["root=x", "theirs", "nosmt"] },
    });
  });

  test("extensions and a kernel: packages of the extensions image beside those that somebody layered by hand [machine-plan-node-10]", () => {
    const plan = planNode(
      on({ booted: { ...system("os@1", ["quiet"]), packages: ["htop"] } }),
      to({ extensions: ["usbguard"], kernelType: "realtime" }),
      policies,
    );
    const steps = plan.verdict === "change" ? plan.steps : [];
    expect(steps.map((step) => step.do)).toEqual([
      "refreshCredentials",
      "prefetch",
      "drain",
      "openLedger",
      "stageOs",
      "reboot",
      "closeLedger",
    ]);
    expect(steps.find((step) => step.do === "prefetch")).toEqual({ do: "prefetch", images: ["extensions@1"] });
    expect(steps.find((step) => step.do === "stageOs")).toMatchObject({
      deployment: { image: "os@1", packages: ["htop", "usbguard"], kernelType: "realtime" },
      packagesFrom: "extensions@1",
    });
  });

  test("a machine with a foreign OS gets files and units, and keeps its image [machine-plan-node-11]", () => {
    const can = { images: false, kernelArguments: false, packages: false, kernelTypes: [] };
    expect(stepsOf(on({ can }), to({ osImage: "os@2" }))).toEqual(["closeLedger"]);
    expect(stepsOf(on({ can }), to({ files: { "/etc/a": "1", "/etc/quiet": "2" }, osImage: "os@2" }))).toEqual([
      "openLedger",
      "writeEntries /etc/quiet",
      "closeLedger",
    ]);
  });

  test("a machine that booted another system has drifted by that alone, and is repaired with everything that belongs to its own", () => {
    const wrong = on({ booted: system("os@0", ["quiet"]), entries: new Map(), bootId: "another boot" });
    expect(stepsOf(wrong, before)).toEqual([
      "refreshCredentials",
      "prefetch",
      "drain",
      "openLedger",
      "stageOs",
      "writeEntries /etc/a /etc/quiet /etc/systemd/system/a.service",
      "enableUnit a.service",
      "reboot",
      "closeLedger",
    ]);
    const drift = [{ kind: "osImage", from: "os@0", to: "os@1" }];
    expect(planNode(wrong, before, policies)).toMatchObject({ drift });
    // It boots its system for the first time.
    expect(planNode({ ...wrong, inService: false }, before, policies)).toMatchObject({ drift: [] });
  });

  test("a target that three reboots did not boot is given up; the force file asks again", () => {
    const target = to({ osImage: "os@2" });
    const ledger = (rebootsAsked: readonly string[]) =>
      ({ v: 1, target: "new", bootId: "b3", owes: [{ kind: "reboot" }], openedAt: "", rebootsAsked }) as const;
    expect(planNode(on({ bootId: "b4", ledger: ledger(["b1", "b2", "b3"]) }), target, policies)).toMatchObject({
      verdict: "bootFails",
      tried: 3,
      wanted: { image: "os@2" },
    });
    expect(planNode(on({ bootId: "b3", ledger: ledger(["b1", "b2", "b3"]) }), target, policies)).toMatchObject({
      verdict: "change",
    });
    expect(
      planNode(on({ bootId: "b4", ledger: ledger(["b1", "b2", "b3"]), forced: true }), target, policies),
    ).toMatchObject({ verdict: "change" });
    expect(
      planNode(on({ bootId: "b4", ledger: { ...ledger(["b1", "b2", "b3"]), target: "older" } }), target, policies),
    ).toMatchObject({ verdict: "change" });
  });

  test("a target that is undone by three boots is given up; the force file asks again [machine-plan-undone-1]", () => {
    const target = to({ files: { "/etc/a": "2" } });
    const ledger = { v: 1, target: "new", bootId: "b3", owes: [{ kind: "reboot" }], openedAt: "" } as const;
    const after = (rebootsAsked: readonly string[], more: Partial<ObservedNode> = {}) =>
      planNode(on({ bootId: "b4", ledger: { ...ledger, rebootsAsked }, ...more }), target, policies);
    expect(after(["b1", "b2", "b3"])).toMatchObject({
      verdict: "bootUndoes",
      tried: 3,
      changes: expect.arrayContaining([{ kind: "file", path: "/etc/a", op: "update" }]),
    });
    expect(after(["b2", "b3"])).toMatchObject({ verdict: "change" });
    expect(after(["b1", "b2", "b3"], { forced: true })).toMatchObject({ verdict: "change" });
    expect(after(["b1", "b2", "b3"], { ledger: { ...ledger, target: "older" } })).toMatchObject({ verdict: "change" });
  });

  describe("what only a machine that starts with it follows", () => {
    const born = to({
      storage: {
        directories: [{ path: "/var/lib/app", mode: 0o750, user: { id: 7 } }],
        links: [{ path: "/etc/link", target: "/etc/a" }],
        files: [{ path: "/etc/hosts", append: [{ source: encodeDataUrl("10.0.0.1 me\n") }] }],
      },
    });
    const fresh = (change: Partial<ObservedNode> = {}) => on({ previous: undefined, inService: false, ...change });

    test("folders, links and appended files are part of a first configuration", () => {
      expect(stepsOf(fresh(), born)).toEqual([
        "openLedger",
        "makeFolder /var/lib/app",
        "writeEntries /etc/link /etc/hosts",
        "reboot",
        "closeLedger",
      ]);
    });

    test("a second pass over a machine that has them changes nothing, and nothing is appended twice", () => {
      const original = {
        kind: "file",
        contents: btoa("localhost\n"),
        digest: "",
        mode: 0o644,
        uid: 0,
        gid: 0,
      } as const;
      const entries = new Map(on().entries)
        .set("/var/lib/app", { kind: "folder", mode: 0o750, uid: 7, gid: 0 })
        .set("/etc/link", { kind: "link", target: "/etc/a" })
        .set("/etc/hosts", {
          kind: "file",
          digest: digestOfText("localhost\n10.0.0.1 me\n"),
          mode: 0o644,
          uid: 0,
          gid: 0,
        });
      const ledger = { v: 1, target: "new", bootId: "old boot", owes: [{ kind: "reboot" }], openedAt: "" } as const;
      expect(
        stepsOf(
          fresh({
            entries,
            ledger,
            originals: { ...on().originals, paths: { ...on().originals.paths, "/etc/hosts": original } },
          }),
          born,
        ),
      ).toEqual(["closeLedger"]);
    });

    test("a machine that runs already is not asked for them", () => {
      expect(stepsOf(on(), born)).toEqual(["closeLedger"]);
    });
  });

  test("drift is listed apart from what was asked for", () => {
    const drifted = new Map(on().entries).set("/etc/a", { kind: "file", digest: "other", mode: 0o644, uid: 0, gid: 0 });
    const plan = planNode(on({ entries: drifted }), to({ files: { "/etc/a": "1", "/etc/quiet": "2" } }), policies);
    expect(plan).toMatchObject({ verdict: "change", drift: [{ kind: "file", path: "/etc/a" }] });
  });

  test("every consequence names its cause [machine-plan-node-4]", () => {
    const plan = planNode(on(), to({ files: { "/etc/a": "2", "/etc/quiet": "2" } }), policies);
    expect(plan).toMatchObject({
      because: [
        { consequence: { kind: "reboot" }, why: "/etc/a has no disruption policy" },
        { consequence: { kind: "none" } },
      ],
    });
  });
});

const digestOfText = (text: string) => bytesToHex(sha256(utf8ToBytes(text)));

function digestOf(target: NodeConfig, path: string): string {
  const entry = target.entries.get(path);
  return entry?.kind === "file" ? entry.digest : "";
}

describe("splitKernelArguments", () => {
  test.for([
    { text: "a b=1  c", words: ["a", "b=1", "c"] },
    { text: 'a="x y"  b=c"d e"f\tg', words: ['a="x y"', 'b=c"d e"f', "g"] },
    { text: "  ", words: [] },
  ])("$text [machine-plan-node-8]", ({ text, words }) => {
    expect(splitKernelArguments(text)).toEqual(words);
  });
});
