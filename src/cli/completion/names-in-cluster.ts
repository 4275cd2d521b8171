import {
  MachineConfig,
  MachineConfigPool,
  MachineOSBuild,
  OSImageStream,
  ProvisioningToken,
  kubernetes,
} from "../../api/index.ts";
import { NodeBinding } from "../../api/kinds/node-binding.ts";
import { own } from "../../api/schema/own.ts";
import type { KubeObject, Resource } from "../../api/schema/object.ts";
import { isRecord } from "../../ignition/shape.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { WantedWords } from "./wanted-words.ts";

/** Objects of which `pool/NAME` and its like name one. */
const ofSubjects = { pool: MachineConfigPool, node: kubernetes.Node, mc: MachineConfig } as const;
const ofBooks = { pool: MachineConfigPool, node: kubernetes.Node, build: MachineOSBuild } as const;

/**
 * Whether every shell takes a word as it stands, and the command takes it for a value. bash inserts what is offered
 * without quotes: a path with `;` or `$(…)` in a MachineConfig would be a command of the person who completes it, and a
 * unit `--force` a flag.
 */
const isInert = (word: string): boolean => /^[\p{L}\p{N}@%+=:,./_][\p{L}\p{N}@%+=:,./_-]*$/u.test(word);

/**
 * Names that a word of a kind may become, as the cluster has them; those that a shell or the command reads otherwise are left
 * out.
 *
 * @param typed what stands there so far.
 */
export async function namesInCluster(
  kind: NonNullable<WantedWords["kind"]>,
  typed: string,
  kube: KubeClient,
): Promise<readonly string[]> {
  return (await allNames(kind, typed, kube)).filter(isInert);
}

async function allNames(
  kind: NonNullable<WantedWords["kind"]>,
  typed: string,
  kube: KubeClient,
): Promise<readonly string[]> {
  const named = async (resource: Resource<KubeObject>): Promise<readonly string[]> =>
    (await kube.list(resource, {}, { metadataOnly: true })).items.map(({ metadata }) => metadata.name);
  const behindSlash = async (kinds: Readonly<Record<string, Resource<KubeObject>>>): Promise<readonly string[]> => {
    const [prefix = ""] = typed.split("/", 1);
    const resource = own(kinds, prefix);
    return resource === undefined ? [] : (await named(resource)).map((name) => `${prefix}/${name}`);
  };
  switch (kind) {
    case "pool":
      return named(MachineConfigPool);
    case "node":
      return named(kubernetes.Node);
    case "machineConfig":
      return named(MachineConfig);
    case "build":
      return [...(await named(MachineConfigPool)), ...(await named(MachineOSBuild))];
    case "token":
      return named(ProvisioningToken);
    case "boundName":
      return named(NodeBinding);
    case "osImageStream":
      return (await kube.list(OSImageStream)).items.flatMap(({ status }) =>
        (status?.availableStreams ?? []).map(({ name }) => name),
      );
    case "subject":
      return behindSlash(ofSubjects);
    case "book":
      return behindSlash(ofBooks);
    case "path":
    case "unit":
    case "user":
    case "kernelArgument":
      return heldBy(await targetsOf(kube), kind);
    case "file":
    case "folder":
      return [];
  }
}

/** The configurations that pools give their machines. */
async function targetsOf(kube: KubeClient): Promise<readonly MachineConfig[]> {
  const pools = (await kube.list(MachineConfigPool)).items;
  const names = new Set(pools.flatMap(({ spec }) => spec.configuration?.name ?? []));
  const configs = await Promise.all([...names].map((name) => kube.get(MachineConfig, { name })));
  return configs.filter((config) => config !== undefined);
}

const itemsOf = (value: unknown, key: string): readonly Readonly<Record<string, unknown>>[] => {
  const list = isRecord(value) ? value[key] : undefined;
  return Array.isArray(list) ? list.filter(isRecord) : [];
};
const textIn = (key: string) => (item: Readonly<Record<string, unknown>>) =>
  typeof item[key] === "string" ? [item[key]] : [];

/** What configurations hold, each once. */
function heldBy(
  configs: readonly MachineConfig[],
  kind: "path" | "unit" | "user" | "kernelArgument",
): readonly string[] {
  const held = configs.flatMap(({ spec: { config, kernelArguments } }) => {
    const part = (name: string): unknown => (isRecord(config) ? config[name] : undefined);
    switch (kind) {
      case "path":
        return ["files", "links", "directories"].flatMap((list) =>
          itemsOf(part("storage"), list).flatMap(textIn("path")),
        );
      case "unit":
        return itemsOf(part("systemd"), "units").flatMap(textIn("name"));
      case "user":
        return itemsOf(part("passwd"), "users").flatMap(textIn("name"));
      case "kernelArgument":
        return kernelArguments ?? [];
    }
  });
  return [...new Set(held)].sort();
}
