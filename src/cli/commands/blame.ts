import { type Blame, type BlameQuestion, blame } from "../../core/preview/blame.ts";
import { type SettingsCause, settingsCauses } from "../../core/kubelet/settings-causes.ts";
import { credentialsCauses, isFileOfCredentials } from "../../core/runtime/credentials-causes.ts";
import { registriesConfigName } from "../../core/runtime/registries-config.ts";
import { type RegistriesCause, isFileOfRegistries, registriesCauses } from "../../core/runtime/registries-causes.ts";
import { maskText, shortKey } from "../../core/text/mask-secrets.ts";
import { type ClusterObjects, renderInputsOf } from "../../core/preview/plan-cluster.ts";
import { baseConfigOf } from "../../core/render/base-config-of.ts";
import { renderPool } from "../../core/render/render-pool.ts";
import { readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { objectsFrom, requestedPools } from "../cluster-objects.ts";
import { connect } from "../connect.ts";
import { exitCodes } from "../exit-codes.ts";
import { processIo } from "../io.ts";
import { readSoundManifests } from "../judge-manifest.ts";
import { type RegistryObjects, withRegistryManifests } from "../../core/runtime/registry-objects.ts";
import { readRegistryObjects, withPlannedRegistries } from "../registry-objects.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.blame, { positionals: true });
  const questions: readonly BlameQuestion[] = [
    ...positionals.map((path): BlameQuestion => ({ about: "path", path })),
    ...(values.unit === undefined ? [] : [{ about: "unit", name: values.unit } as const]),
    ...(values.karg === undefined ? [] : [{ about: "kernelArgument", argument: values.karg } as const]),
    ...(values.user === undefined ? [] : [{ about: "user", name: values.user } as const]),
    ...(values.field === undefined ? [] : [{ about: "field", field: values.field } as const]),
  ];
  const [question] = questions;
  if (question === undefined || questions.length > 1)
    throw usageError("name exactly one of: PATH, --unit NAME, --karg ARGUMENT, --user NAME, --field NAME");
  if (question.about === "path" && !question.path.startsWith("/"))
    throw usageError(`PATH must be absolute, not "${question.path}"`);
  const objects = withPlannedRegistries(await objectsFrom(values, "blame"), readSoundManifests(values.filename));
  const causes = await causesOf(question, values);
  const answers = requestedPools(objects, values.pool).map((pool) => {
    const result = renderPool(renderInputsOf(pool, objects));
    const name = pool.metadata.name;
    if (result.verdict === "refused") return { pool: name, verdict: "refused" as const, refusals: result.refusals };
    return {
      pool: name,
      verdict: "rendered" as const,
      rendered: result.config.metadata.name,
      origins: blame(result, question)
        .map(masked)
        .map((one) => {
          const all = one.from === registriesConfigName(name) ? causes : causesOfSettings(one, question, name, objects);
          return all.length > 0 ? { ...one, causes: all } : one;
        }),
    };
  });

  if (values.json)
    processIo().out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Blame", question, pools: answers })}\n`);
  else {
    const lines = answers.flatMap((answer) =>
      answer.verdict === "refused"
        ? answer.refusals.map(({ reason }) => `pool ${answer.pool}: would not render: ${reason}`)
        : answer.origins.length === 0
          ? []
          : [`pool ${answer.pool}: ${answer.rendered}`, ...answer.origins.flatMap(describe)],
    );
    if (lines.length > 0) processIo().out(`${lines.join("\n")}\n`);
  }
  const found = answers.some((answer) => answer.verdict === "rendered" && answer.origins.length > 0);
  if (!found && !values.json) processIo().err("mco blame: no MachineConfig sets it\n");
  return found ? exitCodes.ok : exitCodes.failed;
}

/** An origin with the fields of objects that the MachineConfig was made from. */
type CausedBlame = Blame & { readonly causes?: readonly (RegistriesCause | SettingsCause)[] };

/** The fields of KubeletConfigs, ContainerRuntimeConfigs and the cluster's own settings that a file comes from. */
function causesOfSettings(
  { from }: Blame,
  question: BlameQuestion,
  pool: string,
  { machineConfigs, settings }: ClusterObjects,
): readonly SettingsCause[] {
  const configOf = (name: string) => machineConfigs.find(({ metadata }) => metadata.name === name);
  const made = configOf(from);
  const controller = made?.metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (made === undefined || controller === undefined || question.about !== "path" || settings === undefined) return [];
  const { credentials } = settings;
  if (controller.kind === credentials?.kind)
    return isFileOfCredentials(question.path) ? credentialsCauses(credentials, question.path) : [];
  const all = [...settings.kubeletConfigs, ...settings.containerRuntimeConfigs];
  const owner = all.find(({ kind, metadata }) => kind === controller.kind && metadata.name === controller.name);
  if (owner === undefined && !["FeatureGate", "Node", "APIServer"].includes(controller.kind)) return [];
  const base = baseConfigOf("kubelet", pool, configOf);
  return settingsCauses(question.path, made, owner, base);
}

/** The fields of mirror sets, image policies and the Image config that a file comes from. */
async function causesOf(
  question: BlameQuestion,
  values: {
    readonly filename: readonly string[];
    readonly dir?: string | undefined;
    readonly kubeconfig?: string | undefined;
  },
): Promise<readonly RegistriesCause[]> {
  if (question.about !== "path" || !isFileOfRegistries(question.path)) return [];
  const { path } = question;
  const ofFile = (objects: RegistryObjects) => registriesCauses(objects).filter(({ file }) => file === path);
  if (values.filename.length > 0) return ofFile(withRegistryManifests(readSoundManifests(values.filename)));
  const { kube, close } = await connect({ kubeconfig: values.kubeconfig, directory: values.dir, component: "blame" });
  try {
    return ofFile(await readRegistryObjects(kube));
  } finally {
    close();
  }
}

/** Keys and arguments are names here, and may hold secrets. */
function masked(one: Blame): Blame {
  if (one.kind !== "sshKey")
    return {
      ...one,
      name: maskText(one.name),
      overrode: one.overrode.map((other) => ({ ...other, field: maskText(other.field) })),
    };
  const [user = "", ...key] = one.name.split(": ");
  return { ...one, name: `${user}: ${shortKey(key.join(": "))}` };
}

function describe({ causes = [], contributors, fields, from, kind, name, overrode }: CausedBlame): readonly string[] {
  const others = contributors.filter((member) => member !== from);
  const lines = [`  ${kind} ${name}`, `    from ${from}${others.length === 0 ? "" : `, after ${others.join(", ")}`}`];
  for (const { what, object, path } of causes) lines.push(`    ${what}: ${object} ${path}`);
  const isMixed = new Set(Object.values(fields)).size > 1;
  if (isMixed) for (const [field, member] of Object.entries(fields)) lines.push(`    ${field}: ${member}`);
  for (const { by, field, member } of overrode) lines.push(`    ${by} overrides the ${field} of ${member}`);
  return lines;
}
