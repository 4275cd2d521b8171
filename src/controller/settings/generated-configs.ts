import { MachineConfig } from "../../api/kinds/machine-config.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { isController } from "../../core/kubelet/held-configs.ts";
import { isCurrent } from "../../core/render/generated-config.ts";
import type { Context } from "../../kube/controller.ts";
import { isNotFound } from "../../kube/kube-error.ts";

/**
 * Writes a generated MachineConfig if it is not current. One that is there is replaced, whoever made it: nothing that another
 * writer has put into it stays, so that the controller gives the role of a pool to nothing but what it wrote itself. Labels
 * that people have put on its own stay.
 *
 * @param owner the field manager.
 * @returns whether something was written.
 */
export async function writeGenerated(
  wanted: MachineConfig,
  owner: string,
  { caches, kube, log, signal }: Pick<Context, "caches" | "kube" | "log" | "signal">,
): Promise<boolean> {
  const { name, labels, annotations, ownerReferences } = wanted.metadata;
  const known = caches.of(MachineConfig).get(name);
  if (isCurrent(known, wanted)) return false;
  const isOwn = known?.metadata.ownerReferences?.some(({ uid }) => ownerReferences?.some((one) => one.uid === uid));
  if (known === undefined) await kube.create(MachineConfig, wanted, { owner, signal });
  else
    await kube.patch(
      MachineConfig,
      { name },
      {
        type: "json",
        operations: [
          { op: "replace", path: "/metadata/resourceVersion", value: known.metadata.resourceVersion },
          { op: "add", path: "/spec", value: wanted.spec },
          {
            op: "add",
            path: "/metadata/labels",
            value: { ...(isOwn === true ? known.metadata.labels : {}), ...labels },
          },
          { op: "add", path: "/metadata/annotations", value: { ...known.metadata.annotations, ...annotations } },
          { op: "add", path: "/metadata/ownerReferences", value: ownerReferences ?? [] },
        ],
      },
      { owner, signal },
    );
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
  if (config === undefined || !isController(config, object)) return;
  const { uid } = config.metadata;
  try {
    await kube.delete(MachineConfig, { name }, { ...(uid === undefined ? {} : { uid }), signal });
    log.info({ config: name }, "generated configuration removed");
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
