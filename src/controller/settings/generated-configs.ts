import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { configHolder } from "../../core/kubelet/held-configs.ts";
import { isCurrent } from "../../core/render/generated-config.ts";
import type { Context } from "../../kube/controller.ts";
import { isNotFound } from "../../kube/kube-error.ts";

/**
 * Writes a generated MachineConfig if it is not current.
 *
 * @param owner the field manager.
 * @returns whether something was written.
 */
export async function writeGenerated(
  wanted: MachineConfig,
  owner: string,
  { caches, kube, log, signal }: Pick<Context, "caches" | "kube" | "log" | "signal">,
): Promise<boolean> {
  const { name } = wanted.metadata;
  const known = caches.of(MachineConfig).get(name);
  if (isCurrent(known, wanted)) return false;
  // A previously generated config is ours, whichever client wrote it then.
  const force = known?.metadata.annotations?.[annotations.generatedByController] !== undefined;
  await kube.apply(MachineConfig, wanted, { owner, force, signal });
  log.info({ config: name }, "generated configuration written");
  return true;
}

/** Deletes a MachineConfig that an object made; one of somebody else stays. */
export async function removeGenerated(
  name: string,
  object: KubeObject,
  { caches, kube, log, signal }: Pick<Context, "caches" | "kube" | "log" | "signal">,
): Promise<void> {
  const config = caches.of(MachineConfig).get(name);
  if (config === undefined || configHolder(config, object) !== "this") return;
  const { uid } = config.metadata;
  try {
    await kube.delete(MachineConfig, { name }, { ...(uid === undefined ? {} : { uid }), signal });
    log.info({ config: name }, "generated configuration removed");
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
