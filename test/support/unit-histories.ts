import fc from "fast-check";
import { expect } from "vitest";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { type NodeConfig, nodeConfigOf } from "../../src/core/config/node-config.ts";
import { ignitionOf } from "../../src/core/config/validate-machine-config.ts";
import { type NodePlan, driftOf, planNode } from "../../src/core/machine/plan-node.ts";
import { describeChange } from "../../src/core/config/change.ts";
import { documentStore } from "../../src/daemon/machine-documents.ts";
import { observeHost } from "../../src/daemon/observe-host.ts";
import { type StepContext, performStep } from "../../src/daemon/perform-step.ts";
import type { Host } from "../../src/host/host.ts";
import { systemClock } from "../../src/ports/node/index.ts";

const { signal } = new AbortController();

/** A unit of a configuration, as Ignition spells it. */
export interface UnitWanted {
  readonly name: string;
  readonly contents?: string;
  readonly enabled?: boolean;
  readonly mask?: boolean;
  readonly dropins?: readonly { readonly name: string; readonly contents: string }[];
}

/** What the OS of these machines ships, and which of it is enabled. */
export const vendorUnits: Readonly<Record<string, string>> = {
  "on.service": "[Service]\nExecStart=/bin/on\n[Install]\nWantedBy=multi-user.target\n",
  "off.service": "[Service]\nExecStart=/bin/off\n[Install]\nWantedBy=multi-user.target\nAlias=off-alias.service\n",
  "plain.service": "[Service]\nExecStart=/bin/plain\n",
  "tty@.service": "[Service]\nExecStart=/bin/tty %I\n[Install]\nWantedBy=getty.target\nDefaultInstance=tty1\n",
  "on.socket": "[Socket]\nListenStream=/run/on\n[Install]\nWantedBy=sockets.target\n",
  "bare@.service": "[Service]\nExecStart=/bin/bare %I\n[Install]\nWantedBy=multi-user.target\n",
  "pair.service": "[Service]\nExecStart=/bin/pair\n[Install]\nWantedBy=multi-user.target\nAlso=pair.socket\n",
  "pair.socket": "[Socket]\nListenStream=/run/pair\n[Install]\nWantedBy=sockets.target\n",
};
export const vendorPreset = "enable on.service\nenable on.socket\nenable tty@.service tty1\ndisable *\n";
export const enabledByVendor = ["on.service", "on.socket", "tty@.service", "pair.socket"];

const section = (lines: string) => `[Service]\nExecStart=/bin/x\n${lines === "" ? "" : `[Install]\n${lines}\n`}`;
const contents = fc.constantFrom(
  section("WantedBy=multi-user.target"),
  section("WantedBy=a.target \\\n  b.target"),
  section("RequiredBy=c.target\nAlias=%p-third.service"),
  section("WantedBy=multi-user.target\nAlso=on.socket"),
  section("Also=on.socket own.socket"),
  section(""),
);
const templates = fc.constantFrom(
  section("WantedBy=multi-user.target\nDefaultInstance=one"),
  section("WantedBy=t@%i.target\nDefaultInstance=two"),
  section("WantedBy=multi-user.target"),
  section(""),
);
const sockets = fc.constantFrom(
  "[Socket]\nListenStream=/run/o\n[Install]\nWantedBy=sockets.target\n",
  "[Socket]\nListenStream=/run/o\n",
);
const option = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });

function unitOf(name: string, text: fc.Arbitrary<string> | undefined): fc.Arbitrary<UnitWanted> {
  const dropins = option(
    fc
      .constantFrom("[Service]\nNice=1\n", "[Install]\nWantedBy=drop.target\n")
      .map((text) => [{ name: "10-x.conf", contents: text }]),
  );
  return fc
    .record({
      contents: text === undefined ? fc.constant(undefined) : option(text),
      enabled: option(fc.boolean()),
      mask: fc.constantFrom(undefined, undefined, false, true),
      dropins,
    })
    .map((unit) => ({ name, ...(JSON.parse(JSON.stringify(unit)) as Omit<UnitWanted, "name">) }));
}

/** Units of one configuration: of our own, and those that the OS ships and that it shadows, masks or switches. */
const unitsWanted: fc.Arbitrary<readonly UnitWanted[]> = fc
  .tuple(
    option(unitOf("own.service", contents)),
    option(unitOf("own.socket", sockets)),
    option(unitOf("own@.service", templates)),
    option(unitOf("own@i.service", undefined)),
    option(unitOf("on.service", contents)),
    option(unitOf("off.service", contents)),
    option(unitOf("tty@.service", templates)),
    option(unitOf("tty@s0.service", undefined)),
    option(unitOf("on.socket", sockets)),
    option(unitOf("plain.service", contents)),
    option(unitOf("pair.service", undefined)),
  )
  .map((units) => units.flatMap((unit) => unit ?? []));

/** Configurations that follow each other. */
export const unitHistories = fc.array(unitsWanted, { minLength: 3, maxLength: 6 });

export function configOf(
  name: string,
  units: readonly UnitWanted[],
): { machineConfig: MachineConfig; config: NodeConfig } {
  const machineConfig: MachineConfig = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name },
    spec: { config: { ignition: { version: "3.5.0" }, systemd: { units: [...units] } } },
  };
  const ignition = ignitionOf(machineConfig);
  if (ignition?.verdict !== "valid") throw new Error(JSON.stringify(ignition));
  const config = nodeConfigOf(machineConfig, ignition.config);
  if (config.verdict === "refused") throw new Error(config.reason);
  return { machineConfig, config: config.config };
}

/** No change of a unit disrupts anything. */
const policies = (units: readonly UnitWanted[]) =>
  mergePolicies({ units: units.map(({ name }) => ({ name, actions: [{ type: "None" }] })) });
const everyUnit = [
  ...Object.keys(vendorUnits),
  "own.service",
  "own.socket",
  "own@.service",
  "own@i.service",
  "bare@i.service",
  "tty@s0.service",
  "plain@.service",
  "masked@.service",
  "masked@a.service",
  "nothing-there.service",
].map((name) => ({ name }));

/**
 * Applies one configuration as the daemon does, and observes once more.
 *
 * @returns what is left to do, or differs without a request.
 */
export async function applyUnits(host: Host, name: string, units: readonly UnitWanted[]): Promise<readonly string[]> {
  const documents = documentStore(host.ledger);
  const target = configOf(name, units);
  const look = async (): Promise<{ plan: NodePlan; site: StepContext }> => {
    const known = await documents.load(signal);
    const before = known.previous?.config;
    const ignition = before === undefined ? undefined : ignitionOf(before);
    const read =
      before === undefined || ignition?.verdict !== "valid" ? undefined : nodeConfigOf(before, ignition.config);
    const previous = read?.verdict === "decoded" ? read.config : undefined;
    const observed = await observeHost(
      host,
      known,
      { previous, target: target.config, inService: false, onlyControlPlane: false },
      signal,
    );
    const { originals, ledger } = observed;
    return {
      plan: planNode(observed, target.config, policies(everyUnit)),
      site: { host, documents, clock: systemClock, observed, target, originals, ledger },
    };
  };
  const { plan, site } = await look();
  if (plan.verdict === "change")
    for (const step of plan.steps) if (step.do !== "drain") await performStep(step, site, signal);
  const after = await look();
  const drift = driftOf(after.site.observed).map((change) => `drift: ${describeChange(change)}`);
  return after.plan.verdict === "change"
    ? [...drift, ...after.plan.steps.map((step) => `left: ${JSON.stringify(step)}`)]
    : drift;
}

/** A machine, and what it has below /etc/systemd. */
export interface UnitMachine {
  readonly host: Host;
  units(): Readonly<Record<string, string>>;
}

/** Applies configurations, the last of which is empty, and compares with a machine that gets each of them first. */
export async function expectNoTrace(
  history: readonly (readonly UnitWanted[])[],
  newMachine: () => Promise<UnitMachine>,
): Promise<void> {
  const machine = await newMachine();
  for (const [index, units] of [...history, []].entries()) {
    const name = `rendered-${index}`;
    expect(await applyUnits(machine.host, name, units)).toEqual([]);
    const fresh = await newMachine();
    expect(await applyUnits(fresh.host, name, units)).toEqual([]);
    expect(machine.units()).toEqual(fresh.units());
  }
}
