import { annotations, hostPaths, nodeStates } from "../../src/api/names.ts";
import { type Content, firstImage, secondImage, unitText } from "./contents.ts";
import type { Happening, CrashHarness, Scenario } from "./crash-harness.ts";

const registries = "/etc/containers/registries.conf";
const registry = (name: string) => `[[registry]]\nprefix = "${name}"\nlocation = "${name}"\n`;

const target = (name: string): Happening => ({ what: `target ${name}`, happens: (harness) => harness.target(name) });
/** A target that comes during an update: after `effect`, or when an update is over before that. */
const targetAfter = (effect: RegExp, name: string): Happening => ({
  what: `target ${name} after ${effect.source}`,
  when: (harness) => harness.effects.some((one) => effect.test(one)),
  happens: (harness) => harness.target(name),
});
const happening = (
  what: string,
  happens: (harness: CrashHarness) => Promise<void>,
  when?: (harness: CrashHarness) => boolean,
): Happening => ({
  what,
  happens,
  ...(when === undefined ? {} : { when }),
});
const isDegraded = (harness: CrashHarness) => harness.has(annotations.state) === nodeStates.degraded;
const after = (effect: RegExp) => (harness: CrashHarness) => harness.effects.some((one) => effect.test(one));

const plain: Content = { files: { "/etc/app/base": "base" } };
const quiet = { files: [{ path: "/etc/quiet", actions: [{ type: "None" as const }] }] };
const service = "app.service";
/** A unit whose changes need no reboot. */
const gently = {
  units: [
    {
      name: service,
      actions: [{ type: "DaemonReload" as const }, { type: "Restart" as const, restart: { serviceName: service } }],
    },
  ],
  files: quiet.files,
};

const everything: Content = {
  files: {
    ...plain.files,
    "/etc/chrony.conf": "ours",
    "/etc/deep/er/file": { text: "deep", mode: 0o600, uid: 5, gid: 6 },
    "/var/lib/app/data": { text: "data", user: "core" },
    [registries]: registry("one.example"),
  },
  units: [
    { name: service, contents: unitText("one"), enabled: true, dropins: { "10-x.conf": "[Service]\nNice=1\n" } },
    { name: "vendor.service", enabled: true },
    { name: "crio.service", dropins: { "10-y.conf": "[Service]\nNice=2\n" } },
  ],
  keys: ["anna", "ben"],
  passwords: { core: "hash" },
  kernelArguments: ["quiet", "mitigations=off nosmt"],
};

/** Histories of one machine, each until all updates are done. The title says what happens to the machine. */
export const scenarios: readonly Scenario[] = [
  {
    title: "a machine joins with files, units, keys, a password and kernel arguments",
    start: undefined,
    contents: { a: everything },
    happenings: [target("a")],
    services: ["crio.service", service],
  },
  {
    title: "a changed file drains and reboots",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/base": "other", "/etc/app/new": "new" } } },
    happenings: [target("b")],
  },
  {
    title: "many files of all kinds change at once",
    start: "a",
    contents: { a: plain, b: everything },
    happenings: [target("b")],
    services: ["crio.service", service],
  },
  {
    title: "everything comes and goes again, and nothing is left behind",
    start: "a",
    contents: { a: everything, none: {} },
    happenings: [target("none")],
    leavesNothing: true,
    services: ["crio.service"],
  },
  {
    title: "a file that a person had made is managed for a while, and then theirs again",
    start: "a",
    contents: { a: {}, b: { files: { "/etc/theirs": "ours" } }, none: {} },
    happenings: [
      happening("a person makes a file", (harness) => harness.edit("/etc/theirs", "theirs")),
      target("b"),
      target("none"),
    ],
  },
  {
    title: "registries.conf changes so that crio only reloads",
    start: "a",
    contents: {
      a: { files: { [registries]: registry("one.example") } },
      b: { files: { [registries]: registry("one.example") + registry("two.example") } },
    },
    happenings: [target("b")],
    services: ["crio.service"],
  },
  {
    title: "a registry is removed, which drains and reloads without a reboot",
    start: "a",
    contents: {
      a: { files: { [registries]: registry("one.example") + registry("two.example") } },
      b: { files: { [registries]: registry("two.example") } },
    },
    happenings: [target("b")],
    services: ["crio.service"],
  },
  {
    title: "a file whose policy says to do nothing",
    start: "a",
    contents: { a: { files: { "/etc/quiet": "one" } }, b: { files: { "/etc/quiet": "two" } } },
    policies: quiet,
    happenings: [target("b")],
  },
  {
    title: "a unit is rewritten and restarted under its policy",
    start: "a",
    contents: {
      a: { units: [{ name: service, contents: unitText("one"), enabled: true }] },
      b: { units: [{ name: service, contents: unitText("two", "other.target"), enabled: true }] },
    },
    policies: gently,
    happenings: [target("b")],
    services: [service],
  },
  {
    title: "a drop-in comes, changes and goes under a policy that restarts",
    start: "a",
    contents: {
      a: { units: [{ name: service, contents: unitText("one"), enabled: true }] },
      b: {
        units: [
          { name: service, contents: unitText("one"), enabled: true, dropins: { "10-x.conf": "[Service]\nNice=1\n" } },
        ],
      },
      c: {
        units: [
          { name: service, contents: unitText("one"), enabled: true, dropins: { "10-x.conf": "[Service]\nNice=2\n" } },
        ],
      },
    },
    policies: gently,
    happenings: [target("b"), target("c"), target("a")],
    services: [service],
  },
  {
    title: "a unit is disabled, and then masked",
    start: "a",
    contents: {
      a: { units: [{ name: service, contents: unitText("one"), enabled: true }] },
      b: { units: [{ name: service, contents: unitText("one"), enabled: false }] },
      c: { units: [{ name: service, mask: true }] },
    },
    happenings: [target("b"), target("c")],
  },
  {
    title: "a mask is removed",
    start: "a",
    contents: {
      a: { units: [{ name: "vendor.service", mask: true }] },
      b: { units: [{ name: "vendor.service", mask: false, enabled: true }] },
    },
    happenings: [target("b")],
  },
  {
    title: "a vendor unit is disabled and left to its preset again",
    start: "a",
    contents: { a: {}, b: { units: [{ name: "vendor.service", enabled: false }] }, c: { units: [] } },
    happenings: [target("b"), target("c")],
  },
  {
    title: "keys and a password change without a reboot, and go",
    start: "a",
    contents: {
      a: { ...plain, keys: ["anna"], passwords: { core: "one" } },
      b: { ...plain, keys: ["anna", "ben"], passwords: { core: "two" } },
      c: plain,
    },
    happenings: [target("b"), target("c")],
  },
  {
    title: "kernel arguments change",
    start: "a",
    contents: { a: { kernelArguments: ["quiet", "a=1"] }, b: { kernelArguments: ["a=1", "b=2"] } },
    happenings: [target("b")],
  },
  {
    title: "the OS image changes, together with a file of which it ships another default",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/base": "base", "/etc/chrony.conf": "ours" }, osImage: secondImage } },
    happenings: [target("b")],
  },
  {
    title: "the OS image, kernel arguments, accounts and units go back all at once",
    start: "b",
    contents: { a: { ...plain, osImage: firstImage }, b: { ...everything, osImage: secondImage } },
    happenings: [target("a")],
    services: ["crio.service"],
  },
  {
    title: "an extension and the realtime kernel come and go again",
    start: "a",
    contents: { a: plain, b: { ...plain, extensions: ["usbguard"], kernelType: "realtime" } },
    happenings: [target("b"), target("a")],
  },
  {
    title: "a shutdown does not finalise what was staged",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/one": "1" }, kernelArguments: ["b=1"] } },
    happenings: [
      target("b"),
      happening(
        "the next shutdown will fail",
        async (harness) => harness.subject.machine.failToFinalise?.("no space left"),
        after(/os\.stage/),
      ),
    ],
  },
  {
    title: "the target moves back while the machine is drained",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/base": "other" } } },
    happenings: [target("b"), targetAfter(/PATCH nodes/, "a")],
  },
  {
    title: "the target moves back while its files are being written",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/base": "other", "/etc/app/one": "1", "/etc/app/two": "2" } } },
    happenings: [target("b"), targetAfter(/files\.write/, "a")],
  },
  {
    title: "another target comes while the first is being written",
    start: "a",
    contents: {
      a: plain,
      b: { files: { "/etc/app/one": "1", "/etc/app/two": "2" }, kernelArguments: ["b=1"] },
      c: { files: { "/etc/app/two": "3", "/etc/app/three": "3" } },
    },
    happenings: [target("b"), targetAfter(/files\.write/, "c")],
  },
  {
    title: "another target comes while a reload is owed",
    start: "a",
    contents: {
      a: plain,
      b: { ...plain, files: { ...plain.files, [registries]: registry("one.example") } },
      c: {
        ...plain,
        files: { ...plain.files, [registries]: registry("one.example") + registry("two.example"), "/etc/quiet": "q" },
      },
    },
    policies: quiet,
    happenings: [target("b"), targetAfter(/files\.write/, "c")],
    services: ["crio.service"],
  },
  {
    title: "a managed file is changed by hand, and changed back",
    drifts: true,
    start: "a",
    contents: { a: plain },
    happenings: [
      happening("a person edits", (harness) => harness.edit("/etc/app/base", "mine")),
      happening("and undoes it", (harness) => harness.restore("/etc/app/base"), isDegraded),
    ],
  },
  {
    title: "a managed file is deleted, and the force file made",
    drifts: true,
    start: "a",
    contents: { a: plain },
    happenings: [
      happening("a person deletes", (harness) => harness.edit("/etc/app/base", undefined)),
      happening("and forces", (harness) => harness.edit(hostPaths.force, ""), isDegraded),
    ],
    afterPowerCut: force,
  },
  {
    title: "drift is overtaken by a new target",
    drifts: true,
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/base": "other" } } },
    happenings: [
      happening("a person edits", (harness) => harness.edit("/etc/app/base", "mine")),
      { ...target("b"), when: isDegraded },
    ],
  },
  {
    title: "a person reboots the machine while its files are being written",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/one": "1", "/etc/app/two": "2" }, kernelArguments: ["b=1"] } },
    happenings: [target("b"), happening("a reboot by hand", (harness) => harness.handReboot(), after(/files\.write/))],
  },
  {
    title: "the power goes while the next OS is staged",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/one": "1" }, osImage: secondImage, kernelArguments: ["b=1"] } },
    happenings: [target("b"), happening("a power cut", async (harness) => harness.powerCut(), after(/os\.stage/))],
  },
  {
    title: "the API server is unavailable while files are written",
    start: "a",
    contents: { a: plain, b: { files: { "/etc/app/one": "1", [registries]: registry("one.example") } } },
    happenings: [
      target("b"),
      happening("the API server goes", async (harness) => harness.apiAway(90_000), after(/files\.write/)),
    ],
    services: ["crio.service"],
  },
  {
    title: "the API server is unavailable while a reload is owed",
    start: "a",
    contents: { a: plain, b: { files: { ...plain.files, [registries]: registry("one.example") } } },
    happenings: [
      target("b"),
      happening("the API server goes", async (harness) => harness.apiAway(90_000), after(/ledger\.write ledger/)),
    ],
    services: ["crio.service"],
  },
  {
    title: "a person has cordoned the machine before it is updated",
    start: "a",
    cordonedByPerson: true,
    contents: { a: plain, b: { files: { "/etc/app/base": "other" } } },
    happenings: [happening("a cordon", (harness) => harness.annotate({}, { unschedulable: true })), target("b")],
  },
  {
    title: "the only control-plane machine reboots without a drain",
    start: "a",
    onlyControlPlane: true,
    contents: { a: plain, b: { files: { "/etc/app/base": "other" } } },
    happenings: [target("b")],
  },
];

/** A power cut removes the force file; the administrator creates it again. */
async function force(harness: CrashHarness): Promise<void> {
  if (isDegraded(harness) || harness.has(annotations.state) === nodeStates.working)
    await harness.edit(hostPaths.force, "");
}
