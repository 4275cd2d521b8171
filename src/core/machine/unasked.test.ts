import fc from "fast-check";
import { expect, test } from "vitest";
import { memoryOf } from "../../../test/support/pass-memory.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, nodeStates } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { observedAs } from "../preview/plan-cluster.ts";
import type { ObservedEntry, OriginalEntry } from "./observed-content.ts";
import { decidePass } from "./decide-pass.ts";
import type { ObservedDeployment, ObservedNode } from "./observed-node.ts";
import type { MachineView } from "./pass-plan.ts";
import { readTarget } from "./read-config.ts";

const stock = "os@sha256:1";
const config: MachineConfig = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfig",
  metadata: { name: "rendered-1" },
  spec: {
    osImageURL: stock,
    kernelArguments: ["nosmt"],
    extensions: ["usbguard"],
    config: {
      ignition: { version: "3.5.0" },
      storage: {
        files: [
          { path: "/etc/a", mode: 0o644, contents: { source: encodeDataUrl("1") } },
          { path: "/etc/chrony.conf", mode: 0o600, contents: { source: encodeDataUrl("2") } },
        ],
      },
      systemd: {
        units: [
          { name: "a.service", enabled: true, contents: "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=b.target\n" },
          { name: "b.service", enabled: false },
          { name: "c.service", mask: true },
          { name: "d.service", dropins: [{ name: "10-x.conf", contents: "[Service]\n" }] },
        ],
      },
      passwd: { users: [{ name: "core", passwordHash: "$6$wanted", sshAuthorizedKeys: ["ssh-ed25519 a"] }] },
    },
  },
};
const read = readTarget(config, undefined);
if (read.verdict === "refused") throw new Error(read.reason);
const wanted = read.wanted.config;
const settled = observedAs(wanted, { image: stock, onlyControlPlane: false });
const paths = [...wanted.entries.keys(), "/etc/left"];
const units = ["a.service", "b.service", "c.service", "d.service", "left.service"];

const file = (digest: string, mode = 0o644) => ({ kind: "file", digest, mode, uid: 0, gid: 0 }) as const;
const entry = fc.constantFrom<ObservedEntry | undefined>(
  undefined,
  file("other"),
  file("x", 0o777),
  { kind: "link", target: "/dev/null" },
  { kind: "folder", mode: 0o755, uid: 0, gid: 0 },
);
const original = fc.constantFrom<OriginalEntry | null>(null, { ...file("x"), contents: "" });
const state = fc.constantFrom("enabled", "disabled", "masked", "static", "absent");
const deployment: fc.Arbitrary<Partial<ObservedDeployment>> = fc.record(
  {
    image: fc.constantFrom(stock, "os@sha256:2"),
    kernelArguments: fc.constantFrom<string[]>([], ["nosmt"], ["nosmt", "debug"]),
    packages: fc.constantFrom<string[]>([], ["usbguard"], ["usbguard", "vim"]),
    kernelType: fc.constantFrom("default", "realtime"),
  },
  { requiredKeys: [] },
);

/** A machine in service with nothing to do, on which anything may have been changed. */
const changed = fc
  .record({
    entries: fc.dictionary(fc.constantFrom(...paths), entry),
    enablement: fc.dictionary(fc.constantFrom(...units), state),
    passwords: fc.option(fc.constantFrom("$6$by hand", ""), { nil: undefined }),
    booted: deployment,
    staged: fc.option(deployment, { nil: undefined }),
    originals: fc.dictionary(fc.constantFrom("/etc/a", "/etc/left"), original),
    were: fc.dictionary(fc.constantFrom("a.service", "left.service"), state),
    payload: fc.constantFrom("local" as const, undefined),
  })
  .map((is): ObservedNode => ({
    ...settled,
    bootId: "boot-1",
    booted: { ...settled.booted, ...is.booted },
    staged: is.staged === undefined ? undefined : { ...settled.booted, ...is.staged },
    entries: new Map(
      [...settled.entries, ...Object.entries(is.entries)].filter(
        (one): one is [string, ObservedEntry] => one[1] !== undefined,
      ),
    ),
    enablement: new Map([...settled.enablement, ...Object.entries(is.enablement)]),
    passwords: is.passwords === undefined ? settled.passwords : new Map([["core", is.passwords]]),
    originals: {
      ...settled.originals,
      paths: { ...settled.originals.paths, ...is.originals },
      enablement: { ...settled.originals.enablement, ...is.were },
    },
    payload: is.payload,
  }));

const viewOf = (node: ObservedNode): MachineView => ({
  now: 1_000_000,
  rebootPatienceSeconds: 120,
  node: {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "worker-0",
      annotations: {
        [annotations.desiredConfig]: "rendered-1",
        [annotations.currentConfig]: "rendered-1",
        [annotations.state]: nodeStates.done,
      },
    },
    spec: {},
  },
  onlyControlPlane: false,
  configuration: undefined,
  storageOverrides: [],
  documents: { ledger: undefined, previous: { config, proven: true }, originals: node.originals, refused: [] },
  adoption: undefined,
  served: undefined,
  os: node,
  forced: false,
  prepared: new Set(["adopt", "correctAnnotations", "reportOverdueReboot", "reportRefusals", "noticeTarget"]),
  desired: { config },
  compared: { node, facts: { sshFolder: undefined, freeBytes: undefined } },
});

/** That no plan for a machine disrupts it. @param plant what a careless change would make the daemon believe. */
const undisturbed = (plant: (view: MachineView) => MachineView = (view) => view) =>
  fc.property(changed, fc.boolean(), (node, isNewProcess) => {
    const memory = memoryOf("boot-1");
    const plan = decidePass(plant(viewOf(node)), isNewProcess ? { ...memory, resumedBoot: undefined } : memory);
    const disrupts =
      plan.case === "update"
        ? plan.steps.filter((step) => ["drain", "reboot", "restart", "reload", "daemonReload"].includes(step.do))
        : [];
    expect({ plan: plan.case, disrupts }).toEqual({ plan: plan.case, disrupts: [] });
    expect(["goBack", "awaitRestart", "awaitReboot"]).not.toContain(plan.case);
  });

test("a machine that was given no new target is neither drained nor rebooted, nor are its services restarted, whatever was changed on it [machine-unasked-1]", () => {
  fc.assert(undisturbed(), { numRuns: 3000 });
});

const believing = (view: MachineView, belief: Partial<ObservedNode>): MachineView =>
  view.compared === undefined
    ? view
    : { ...view, compared: { ...view.compared, node: { ...view.compared.node, ...belief } } };

test.for<[string, Partial<ObservedNode>]>([
  ["somebody asked to apply everything again", { forced: true }],
  ["the machine has never been in service", { inService: false }],
  ["the machine has no configuration yet", { previous: undefined }],
])("a daemon that believes that %s is found [machine-unasked-2]", ([, belief]) => {
  const { failed } = fc.check(
    undisturbed((view) => believing(view, belief)),
    { numRuns: 300, seed: 1, endOnFailure: true },
  );
  expect(failed).toBe(true);
});
