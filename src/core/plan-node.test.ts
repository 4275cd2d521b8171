import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../api/machine-config.ts";
import { encodeDataUrl } from "../ignition/data-url.ts";
import { mergePolicies } from "./disruption-policy.ts";
import { type NodeConfig, nodeConfigOf, splitKernelArguments } from "./node-config.ts";
import { observedAs } from "./plan-cluster.ts";
import { type ObservedNode, planNode } from "./plan-node.ts";
import { ignitionOf } from "./validate-machine-config.ts";

const policies = mergePolicies({ files: [{ path: "/etc/quiet", actions: [{ type: "None" }] }], units: [{ name: "a.service", actions: [{ type: "DaemonReload" }, { type: "Reload", reload: { serviceName: "a.service" } }] }] });
const installable = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";

interface Parts {
  readonly files?: Readonly<Record<string, string>>;
  readonly units?: readonly object[];
  readonly keys?: readonly string[];
  readonly kernelArguments?: readonly string[];
  readonly osImage?: string;
}

function config(name: string, { files = {}, units = [], keys = [], kernelArguments = [], osImage = "" }: Parts): NodeConfig {
  const machineConfig: MachineConfig = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name },
    spec: {
      osImageURL: osImage,
      kernelArguments: [...kernelArguments],
      config: {
        ignition: { version: "3.5.0" },
        storage: { files: Object.entries(files).map(([path, text]) => ({ path, contents: { source: encodeDataUrl(text) } })) },
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

const before = config("old", { files: { "/etc/a": "1", "/etc/quiet": "1" }, units: [{ name: "a.service", enabled: true, contents: installable }], kernelArguments: ["quiet"], osImage: "os@1" });
const on = (change: Partial<ObservedNode> = {}): ObservedNode => ({ ...observedAs(before, { image: "os@1", onlyControlPlane: false }), ...change });
const same: Parts = { files: { "/etc/a": "1", "/etc/quiet": "1" }, units: [{ name: "a.service", enabled: true, contents: installable }], kernelArguments: ["quiet"], osImage: "os@1" };
const to = (parts: Parts) => config("new", { ...same, ...parts });
const stepsOf = (node: ObservedNode, target: NodeConfig) => {
  const plan = planNode(node, target, policies);
  return plan.verdict === "inSync" ? [] : plan.steps.map((step) => ("path" in step ? `${step.do} ${step.path}` : "unit" in step ? `${step.do} ${step.unit}` : step.do));
};

describe("planNode", () => {
  test("asks for nothing when the machine has the target", () => {
    expect(planNode(on(), before, policies)).toEqual({ verdict: "inSync" });
  });

  test.for([
    { title: "only another name: the ledger is closed for it", parts: {}, steps: ["closeLedger"] },
    { title: "a file that no policy names: drain first, reboot last", parts: { files: { "/etc/a": "2", "/etc/quiet": "1" } }, steps: ["drain", "openLedger", "writeEntry /etc/a", "reboot", "closeLedger"] },
    { title: "a file with policy None: written, and that is all", parts: { files: { "/etc/a": "1", "/etc/quiet": "2" } }, steps: ["openLedger", "writeEntry /etc/quiet", "closeLedger"] },
    { title: "a file that goes: restored", parts: { files: { "/etc/a": "1" } }, steps: ["openLedger", "restoreEntry /etc/quiet", "closeLedger"] },
    { title: "a drop-in of a unit with a policy: daemon-reload before the reload", parts: { units: [{ name: "a.service", enabled: true, contents: installable, dropins: [{ name: "x.conf", contents: "[Service]\n" }] }] }, steps: ["openLedger", "writeEntry /etc/systemd/system/a.service.d/x.conf", "daemonReload", "reload a.service", "closeLedger"] },
    { title: "a unit that changes its text: old links go before new ones come", parts: { units: [{ name: "a.service", enabled: true, contents: `${installable}# 2\n` }] }, steps: ["openLedger", "disableUnit a.service", "writeEntry /etc/systemd/system/a.service", "enableUnit a.service", "daemonReload", "reload a.service", "closeLedger"] },
    { title: "a unit whose enablement nobody decides any more: the presets do", parts: { units: [{ name: "a.service", contents: installable }] }, steps: ["openLedger", "presetUnit a.service", "daemonReload", "reload a.service", "closeLedger"] },
    { title: "a unit that is disabled", parts: { units: [{ name: "a.service", enabled: false, contents: installable }] }, steps: ["openLedger", "disableUnit a.service", "daemonReload", "reload a.service", "closeLedger"] },
    { title: "kernel arguments: staged before anything is written, then a reboot", parts: { kernelArguments: ["quiet", "nosmt"], files: { "/etc/a": "2", "/etc/quiet": "1" } }, steps: ["drain", "openLedger", "stageOs", "writeEntry /etc/a", "reboot", "closeLedger"] },
    { title: "an OS image", parts: { osImage: "os@2" }, steps: ["drain", "openLedger", "stageOs", "reboot", "closeLedger"] },
    { title: "SSH keys: no disruption", parts: { keys: ["ssh-ed25519 A"] }, steps: ["openLedger", "writeEntry /home/core/.ssh/authorized_keys.d/ignition", "closeLedger"] },
  ])("$title", ({ parts, steps }) => {
    expect(stepsOf(on(), to(parts))).toEqual(steps);
  });

  test("a machine without an earlier configuration reboots undrained", () => {
    const { entries: _, ...fresh } = on();
    const steps = stepsOf({ ...fresh, entries: new Map(), previous: undefined, originals: { paths: {}, enablement: {}, passwords: {}, kernelArguments: ["quiet"], ownKernelArguments: [] } }, to({ files: { "/etc/a": "2" } }));
    expect(steps).not.toContain("drain");
    expect(steps).toContain("reboot");
  });

  test("the only control-plane machine reboots undrained", () => {
    expect(stepsOf(on({ onlyControlPlane: true }), to({ files: { "/etc/a": "2", "/etc/quiet": "1" } }))).toEqual(["openLedger", "writeEntry /etc/a", "reboot", "closeLedger"]);
  });

  test("debts of an interrupted update are paid, also when the disk is right already", () => {
    const target = to({ files: { "/etc/a": "2", "/etc/quiet": "1" } });
    const written = new Map(on().entries).set("/etc/a", { kind: "file", digest: digestOf(target, "/etc/a"), mode: 0o644, uid: 0, gid: 0 } as const);
    const ledger = { v: 1, target: "new", bootId: "", owes: [{ kind: "reboot" }], openedAt: "" } as const;
    expect(stepsOf(on({ entries: written, ledger }), target)).toEqual(["drain", "openLedger", "reboot", "closeLedger"]);
    expect(stepsOf(on({ entries: written, ledger, bootId: "another boot" }), target)).toEqual(["closeLedger"]);
  });

  test("what is staged and no longer wanted is thrown away", () => {
    expect(stepsOf(on({ staged: { image: "os@9", kernelArguments: [] } }), before)).toEqual(["discardStaged", "closeLedger"]);
  });

  test("the same deployment is not staged twice", () => {
    const target = to({ kernelArguments: ["quiet", "nosmt"] });
    expect(stepsOf(on({ staged: { image: "os@1", kernelArguments: ["quiet", "nosmt"] } }), target)).not.toContain("stageOs");
  });

  test("arguments that somebody else added stay on the command line", () => {
    const plan = planNode(on({ booted: { image: "os@1", kernelArguments: ["root=x", "quiet", "theirs"] }, originals: { ...on().originals, kernelArguments: ["root=x"] } }), to({ kernelArguments: ["nosmt"] }), policies);
    expect(plan.verdict === "change" ? plan.steps.find((step) => step.do === "stageOs") : undefined).toMatchObject({ kernelArguments: ["root=x", "theirs", "nosmt"] });
  });

  test("drift is listed apart from what was asked for", () => {
    const drifted = new Map(on().entries).set("/etc/a", { kind: "file", digest: "other", mode: 0o644, uid: 0, gid: 0 });
    const plan = planNode(on({ entries: drifted }), to({ files: { "/etc/a": "1", "/etc/quiet": "2" } }), policies);
    expect(plan).toMatchObject({ verdict: "change", drift: [{ kind: "file", path: "/etc/a" }] });
  });

  test("every consequence names its cause", () => {
    const plan = planNode(on(), to({ files: { "/etc/a": "2", "/etc/quiet": "2" } }), policies);
    expect(plan).toMatchObject({ because: [{ consequence: { kind: "reboot" }, why: "/etc/a has no disruption policy" }, { consequence: { kind: "none" } }] });
  });
});

function digestOf(target: NodeConfig, path: string): string {
  const entry = target.entries.get(path);
  return entry?.kind === "file" ? entry.digest : "";
}

describe("splitKernelArguments", () => {
  test.for([
    { text: "a b=1  c", words: ["a", "b=1", "c"] },
    { text: 'a="x y"  b=c"d e"f\tg', words: ['a="x y"', 'b=c"d e"f', "g"] },
    { text: "  ", words: [] },
  ])("$text", ({ text, words }) => {
    expect(splitKernelArguments(text)).toEqual(words);
  });
});
