import fc from "fast-check";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { annotations, nodeStates, objects } from "../../src/api/names.ts";
import { type UserPolicies, mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { mostReboots } from "../../src/core/machine/plan-node.ts";
import type { Host } from "../../src/host/host.ts";
import { type Content, MachineHarness } from "./machine-harness.ts";

const { signal } = new AbortController();

/** What a machine is given, part by part. No two parts of one choice contradict each other. */
export interface Choice {
  readonly over: "nothing" | "file" | "below" | "deep";
  readonly link: "nothing" | "link" | "place";
  readonly files: readonly string[];
  readonly unit: "nothing" | "own" | "ownOther" | "masked" | "dropin" | "shadow" | "dropinFile";
  readonly account: "nothing" | "key" | "otherKey" | "password";
  readonly kernelArguments: readonly string[];
  readonly osImage: "os@sha256:1" | "os@sha256:2";
}

export type Act =
  | { readonly do: "target"; readonly choice: Choice }
  | { readonly do: "policies"; readonly which: keyof typeof policies }
  /** Somebody writes on the machine. */
  | { readonly do: "write"; readonly path: (typeof handPaths)[number] }
  /** Services of the machine change files at each boot. */
  | { readonly do: "atBoot"; readonly path: string; readonly how: "writes" | "removes" | "opens" }
  | { readonly do: "break"; readonly units: readonly string[] }
  /** Writes below this path fail. */
  | { readonly do: "failWrites"; readonly below: string }
  | { readonly do: "failToFinalise" }
  | { readonly do: "kill"; readonly effect: number; readonly when: "before" | "after" }
  | { readonly do: "powerCut" }
  | { readonly do: "wait"; readonly ms: number };

/** The configuration to which everything goes back. */
const base: Content = {
  files: { "/etc/base.conf": "base" },
  units: [{ name: "base.service", enabled: true, contents: service("base") }],
};

function service(name: string, install = "WantedBy=multi-user.target"): string {
  return `[Service]\nExecStart=/bin/${name}\n[Install]\n${install}\n`;
}

const actsOn = (path: string, serviceName: string, type: "Restart" | "Reload") => ({
  files: [
    { path, actions: [type === "Restart" ? { type, restart: { serviceName } } : { type, reload: { serviceName } }] },
  ],
});
const policies = {
  none: undefined,
  quiet: { files: ["/etc", "/var"].map((path) => ({ path, actions: [{ type: "None" }] })) },
  restart: actsOn("/etc/app", "crio.service", "Restart"),
  typo: actsOn("/etc/app", "app-typo.service", "Restart"),
  typoOfAll: actsOn("/etc", "app-typo.service", "Reload"),
  reload: actsOn("/etc", "crio.service", "Reload"),
  keys: { sshkey: { actions: [{ type: "Restart", restart: { serviceName: "keys-typo.service" } }] } },
} satisfies Readonly<Record<string, UserPolicies | undefined>>;

const ofService = "of a service";
const handPaths = ["/etc/base.conf", "/etc/p/other", "/etc/app/x.conf", "/etc/q"] as const;
const managedPaths = ["/etc/base.conf", "/etc/app/x.conf", "/etc/q", "/run/r.conf"] as const;

const choice: fc.Arbitrary<Choice> = fc.record({
  over: fc.constantFrom("nothing", "file", "below", "deep"),
  link: fc.constantFrom("nothing", "nothing", "link", "place"),
  files: fc.subarray(["/etc/app/x.conf=1", "/etc/app.conf=2", "/etc/q=3", "/run/r.conf=4", "/var/lib/v=5"]),
  unit: fc.constantFrom("nothing", "own", "ownOther", "masked", "dropin", "shadow", "dropinFile"),
  account: fc.constantFrom("nothing", "nothing", "key", "otherKey", "password"),
  kernelArguments: fc.constantFrom([], [], ["nosmt"], ["nosmt", "mitigations=off"]),
  osImage: fc.constantFrom("os@sha256:1", "os@sha256:1", "os@sha256:2"),
});

const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: choice.map((one): Act => ({ do: "target", choice: one })) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(...(Object.keys(policies) as (keyof typeof policies)[]))
      .map((which): Act => ({ do: "policies", which })),
  },
  { weight: 1, arbitrary: fc.constantFrom(...handPaths).map((path): Act => ({ do: "write", path })) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...managedPaths), fc.constantFrom("writes" as const, "removes" as const, "opens" as const))
      .map(([path, how]): Act => ({ do: "atBoot", path, how })),
  },
  {
    weight: 1,
    arbitrary: fc.subarray(["crio.service", "own.service"]).map((units): Act => ({ do: "break", units })),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom("/etc/p", "/etc/app", "/etc/systemd", "/var/usrlocal", "/home", "/none")
      .map((below): Act => ({ do: "failWrites", below })),
  },
  { weight: 1, arbitrary: fc.constant<Act>({ do: "failToFinalise" }) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom("before" as const, "after" as const))
      .map(([effect, when]): Act => ({ do: "kill", effect, when })),
  },
  { weight: 1, arbitrary: fc.constant<Act>({ do: "powerCut" }) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(1_000, 20_000, 120_000, 900_000).map((ms): Act => ({ do: "wait", ms })),
  },
);

/** What happens to a machine between its first configuration and the way back. */
export const historiesOfActs = fc.array(act, { minLength: 2, maxLength: 14 });

function contentOf({ over, link, files, unit, account, kernelArguments, osImage }: Choice): Content {
  const texts: Record<string, string> = { "/etc/base.conf": "base" };
  if (over === "file") texts["/etc/p"] = "file";
  if (over === "below") texts["/etc/p/q"] = "below";
  if (over === "deep") [texts["/etc/p/q/r"], texts["/etc/p/s"]] = ["deep", "beside"];
  if (link !== "nothing") texts[link === "link" ? "/usr/local/bin/x" : "/var/usrlocal/bin/x"] = link;
  if (unit === "dropinFile") texts["/etc/systemd/system/own.service.d"] = "a file where drop-ins are elsewhere";
  for (const file of files) texts[file.slice(0, file.indexOf("="))] = file.slice(file.indexOf("=") + 1);
  const user =
    account === "password" ? { passwordHash: "$6$salt$hash" } : { sshAuthorizedKeys: [`ssh-ed25519 ${account}`] };
  return {
    files: texts,
    units: [...(base.units ?? []), ...unitsOf(unit)],
    ignition: account === "nothing" ? {} : { passwd: { users: [{ name: "core", ...user }] } },
    spec: { kernelArguments: [...kernelArguments], osImageURL: osImage },
  };
}

function unitsOf(unit: Choice["unit"]): readonly object[] {
  switch (unit) {
    case "nothing":
    case "dropinFile":
      return [];
    case "own":
      return [{ name: "own.service", enabled: true, contents: service("own") }];
    case "ownOther":
      return [
        { name: "own.service", enabled: true, contents: service("own", "RequiredBy=a.target\nAlias=third.service") },
      ];
    case "masked":
      return [{ name: "crio.service", mask: true }];
    case "dropin":
      return [{ name: "own.service", dropins: [{ name: "10-x.conf", contents: "[Service]\nNice=1\n" }] }];
    case "shadow":
      return [{ name: "crio.service", enabled: false, contents: service("other") }];
  }
}

/** The operator has merged other policies. */
async function giveMachinesPolicies(harness: MachineHarness, user: UserPolicies | undefined): Promise<void> {
  await harness.act(async () => {
    const { kube } = harness;
    const at = { name: objects.machineConfiguration };
    const spec = { nodeDisruptionPolicy: user ?? null };
    const { metadata } = await kube.patch(MachineConfiguration, at, { type: "merge", body: { spec } });
    const status = {
      observedGeneration: metadata.generation,
      nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(user) },
    };
    await kube.patch(MachineConfiguration, at, { type: "merge", body: { status } }, { subresource: "status" });
  });
}

interface Faults {
  failing: string | undefined;
  readonly atBoot: Map<string, "writes" | "removes" | "opens">;
  readonly byHand: Set<string>;
}

/** A host whose writes fail where the faults say so. */
function failing(host: Host, faults: Faults): Host {
  const files: Host["files"] = {
    ...host.files,
    write: async (writes, until) => {
      const at = writes.findIndex(({ path }) => faults.failing !== undefined && path.startsWith(faults.failing));
      if (at < 0) return host.files.write(writes, until);
      await host.files.write(writes.slice(0, at), until);
      throw Object.assign(new Error(`ENOSPC: no space left on device, open '${writes[at]?.path}'`), { code: "ENOSPC" });
    },
  };
  return { ...host, files };
}

async function changeByService(
  harness: MachineHarness,
  path: string,
  how: "writes" | "removes" | "opens",
): Promise<void> {
  const is = await harness.file(path);
  // It has nothing to do with what is not there.
  if (is === undefined || is === "folder") return;
  if (how === "removes") await harness.host.files.remove(path, signal);
  else await harness.put(path, how === "writes" ? ofService : is, how === "opens" ? 0o666 : 0o644);
}

async function carryOut(harness: MachineHarness, one: Act, faults: Faults, name: string): Promise<void> {
  switch (one.do) {
    case "target":
      await harness.config(name, contentOf(one.choice));
      await harness.desire(name);
      return;
    case "policies":
      return giveMachinesPolicies(harness, policies[one.which]);
    case "write": {
      const is = await harness.file(one.path);
      // What is managed at the moment, or nothing: nobody writes over a folder, or below a file.
      if (is === "folder" || (one.path === "/etc/p/other" && (await harness.file("/etc/p")) !== "folder")) return;
      faults.byHand.add(one.path);
      return harness.put(one.path, "by hand");
    }
    case "atBoot":
      return void faults.atBoot.set(one.path, one.how);
    case "break":
      return harness.host.breakUnits?.(one.units);
    case "failWrites":
      faults.failing = one.below;
      return;
    case "failToFinalise":
      return harness.host.failToFinalise?.("a disk that is full");
    case "kill":
      harness.countEffectsFromHere();
      harness.killAt = { effect: one.effect, when: one.when };
      return;
    case "powerCut":
      return harness.boot({ orderly: false });
    case "wait":
      return harness.pass(one.ms);
  }
}

/**
 * Carries out acts on a machine and takes all of them back.
 *
 * @param plant a careless change of the host, for trying that it is found.
 * @returns what is wrong, on the way there or then; `undefined`: the machine is settled, as before.
 */
export async function wayBack(
  acts: readonly Act[],
  plant: (host: Host) => Host = (host) => host,
): Promise<string | undefined> {
  const faults: Faults = { failing: undefined, atBoot: new Map(), byHand: new Set() };
  const harness = await MachineHarness.make({ folderLinks: { "/usr/local": "/var/usrlocal" } });
  harness.tamper = (host) => plant(failing(host, faults));
  await harness.updatedTo("rendered-base", base);
  harness.atBoot = async () => {
    for (const [path, how] of faults.atBoot) await changeByService(harness, path, how);
  };
  const before = await stateOf(harness);
  let earlier = 0;
  for (const [index, one] of acts.entries()) {
    // What was asked for before is another target's.
    if (one.do === "target") earlier = harness.reboots.length;
    await carryOut(harness, one, faults, `rendered-${index}`);
    await harness.pass(500);
    const forOne = harness.reboots.length - earlier;
    if (forOne > mostReboots) return `${forOne} reboots for one target`;
  }

  faults.failing = undefined;
  faults.atBoot.clear();
  harness.killAt = undefined;
  await harness.host.breakUnits?.([]);
  await giveMachinesPolicies(harness, undefined);
  harness.reboots.length = 0;
  await takeBackByHand(harness, faults);
  await harness.desire("rendered-base");
  try {
    await harness.untilDone("rendered-base");
  } catch (error) {
    return `the machine is not settled: ${String(error)}`;
  }
  await takeBackByHand(harness, faults);
  const settled = harness.reboots.length;
  if (settled > mostReboots) return `${settled} reboots on the way back`;
  const effects = harness.effects.length;
  await harness.pass(3_600_000);
  if (harness.reboots.length > settled) return "it reboots once more, and nobody asked for that";
  if ((await harness.annotation(annotations.state)) !== nodeStates.done) return "it does not stay settled";
  const after = await stateOf(harness);
  const different = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => before[key] !== after[key],
  );
  if (different.length > 0)
    return `left behind: ${different.map((key) => `${key}: ${before[key]} → ${after[key]}`).join("; ")}`;
  return harness.effects.length > effects
    ? `it is busy: ${harness.effects.slice(effects, effects + 5).join()}`
    : undefined;
}

/** What somebody wrote goes, and the base's own file is as it was: what differs from it is left to people. */
async function takeBackByHand(harness: MachineHarness, { byHand }: Faults): Promise<void> {
  for (const path of byHand)
    if (path !== "/etc/base.conf" && ["by hand", ofService].includes((await harness.file(path)) ?? ""))
      await harness.host.files.remove(path, signal);
  await harness.put("/etc/base.conf", "base");
}

/** What of a machine configurations decide. */
async function stateOf(harness: MachineHarness): Promise<Readonly<Record<string, string>>> {
  const { booted } = await harness.host.os.status(signal);
  const disk = [...harness.host.snapshot()].filter(
    ([path]) =>
      /^\/(etc|usr|home|root)\//.test(path) ||
      path.startsWith("/var/usrlocal") ||
      path === "/var/lib/v" ||
      path.startsWith("shadow:"),
  );
  return {
    ...Object.fromEntries(disk.filter(([path]) => !path.startsWith("/etc/machine-config-daemon/"))),
    "booted image": booted.image,
    "kernel arguments": booted.kernelArguments.join(" "),
  };
}
