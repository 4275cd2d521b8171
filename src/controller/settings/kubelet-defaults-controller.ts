import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { fieldManagers } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { kubeletBaseOf } from "../../core/kubelet/cluster-settings.ts";
import { decideDefaults, defaultsOwners, poolOfDefaults, tlsDefaults } from "../../core/kubelet/decide-defaults.ts";
import { configHolder } from "../../core/kubelet/held-configs.ts";
import { trimMachineConfig } from "../../core/pool/trim.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { type Caches, type Context, type Controller, watching } from "../../kube/controller.ts";
import { type Outcome, done, stalled, waiting } from "../../kube/outcome.ts";
import { clusterObjectsOf, clusterSettingsOf, clusterSettingsWatches } from "./cluster-settings-watches.ts";
import { removeGenerated, writeGenerated } from "./generated-configs.ts";
import { baseContents } from "../../core/render/base-config-of.ts";
import { isKubeletBase } from "./kubelet-controller.ts";
import { settingsRefused } from "../reports.ts";

const waitSeconds = 30;

/** Gives the kubelets of every pool what the cluster's config Node, FeatureGate and APIServer say. */
export function kubeletDefaultsController({ generatorVersion }: { readonly generatorVersion: string }): Controller {
  /** Pool and kind → problems as last told. */
  const told = new Map<string, string>();
  const allPools = (caches: Caches) =>
    caches
      .of(MachineConfigPool)
      .list()
      .map(({ metadata }) => metadata.name);
  return {
    name: "kubelet-defaults",
    watches: [
      watching({
        resource: MachineConfigPool,
        concerns: ({ key, before, after }) => (before === undefined || after === undefined ? [key] : []),
      }),
      watching({
        resource: MachineConfig,
        keep: trimMachineConfig,
        concerns: ({ key, before, after }, caches) => {
          if (isKubeletBase(key)) return equalValues(baseContents(before), baseContents(after)) ? [] : allPools(caches);
          const pool = poolOfDefaults(key);
          return pool === undefined ? [] : [pool];
        },
      }),
      ...clusterSettingsWatches.map((watch) => ({
        ...watch,
        concerns: (_: unknown, caches: Caches) => allPools(caches),
      })),
    ],
    owns: ["MachineConfig/kubelet-defaults"],

    async reconcile(pool, context): Promise<Outcome> {
      const { caches } = context;
      const known = caches.of(MachineConfigPool).get(pool);
      const objects = clusterObjectsOf(caches);
      const owners = defaultsOwners(pool, objects);
      const present = [...owners.values()].filter((owner) => owner !== undefined);
      if (known === undefined) {
        for (const [name, owner] of owners) if (owner !== undefined) await removeGenerated(name, owner, context);
        return done();
      }
      if (present.length === 0) return done();
      const settings = clusterSettingsOf(caches);
      const base = kubeletBaseOf(pool, settings, (name) => caches.of(MachineConfig).get(name));
      if (base === undefined)
        return waiting("BaseConfigMissing", `the base configuration of pool ${pool} is not there yet`, waitSeconds);
      const { configs, problems } = decideDefaults({ pool, objects, settings, base, generatorVersion });
      const { featureGate, apiServer } = objects;
      const gates =
        featureGate === undefined ? [] : settings.gateProblems.map((text) => ({ object: featureGate, text }));
      const isTaken = ({ metadata: { name }, spec }: MachineConfig, owner: KubeObject) =>
        configHolder(caches.of(MachineConfig).get(name), owner, { spec }) === "another";
      const owned = configs.flatMap((config) => {
        const owner = owners.get(config.metadata.name);
        return owner === undefined ? [] : [{ config, owner }];
      });
      const taken = owned.filter(({ config, owner }) => isTaken(config, owner));
      const all = [
        ...problems.map(({ object, path, reason }) => ({ object, text: `${path} ${reason}` })),
        ...gates,
        ...taken.map(({ config, owner }) => ({ object: owner, text: takenText(config.metadata.name, pool) })),
      ];
      for (const owner of present) tell(owner, { pool, problems: all }, told, context);
      for (const { config, owner } of owned)
        if (!isTaken(config, owner)) await writeGenerated(config, fieldManagers.kubelet, context);
      // Only once the others hold the profile.
      const name = tlsDefaults(pool);
      const isNeeded = base.verdict === "refused" || configs.some(({ metadata }) => metadata.name === name);
      if (!isNeeded && apiServer !== undefined) await removeGenerated(name, apiServer, context);
      const [first] = problems;
      if (first !== undefined) return stalled("Invalid", `${first.path} ${first.reason}`);
      const [foreign] = taken;
      return foreign === undefined ? done() : stalled("Invalid", takenText(foreign.config.metadata.name, pool));
    },
  };
}

const takenText = (name: string, pool: string) =>
  `the machines of pool ${pool} do not get it: another writer made the MachineConfig ${name}; rename or delete that one`;

interface Told {
  readonly object: KubeObject;
  readonly text: string;
}

/** Tells of the problems of an object by an Event, once; neither kind has conditions of ours. */
function tell(
  object: KubeObject,
  { pool, problems }: { readonly pool: string; readonly problems: readonly Told[] },
  told: Map<string, string>,
  { report }: Pick<Context, "report">,
): void {
  const message = [...new Set(problems.filter((one) => one.object === object).map(({ text }) => text))].join("; ");
  const id = `${pool} ${object.kind}`;
  if (message === (told.get(id) ?? "")) return;
  told.set(id, message);
  if (message !== "") report(settingsRefused(object, message));
}
