import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { fieldManagers } from "../api/names.ts";
import { baseConfigs, kubeadmKubeletPath, kubeletPullSecretPath } from "../core/render/base-configs.ts";
import { isOpenShiftBy } from "../core/render/openshift-inputs.ts";
import { pullSecretKey, pullSecretOf, pullSecretSelection, pullSecretSelections } from "../core/render/pull-secret.ts";
import { isCurrent } from "../core/render/generated-config.ts";
import { type TemplateProgress, templateStatus } from "../core/render/controller-config-of.ts";
import { wholeFileText } from "../core/render/config-file.ts";
import { trimMachineConfig } from "../core/pool/trim.ts";
import { equalValues } from "../ignition/canonical.ts";
import { writeGenerated } from "./settings/generated-configs.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { isPassing } from "../kube/kube-error.ts";
import { type Outcome, done } from "../kube/outcome.ts";

export interface TemplateOptions {
  readonly version: string;
  readonly generatorVersion: string;
}

/** What kubeadm keeps is not watched: its rights name one object, and the next pass finds a new one. */
const reconcileAfterSeconds = 600;
/** What kubeadm gives every machine that joins; other clusters have no such object. */
const kubeadmKey = { namespace: "kube-system", name: "kubelet-config" } as const;

/** Makes the base configurations of all machines from the ControllerConfig. */
export function templateController(options: TemplateOptions): Controller {
  return {
    name: "template",
    watches: [
      watching({
        resource: ControllerConfig,
        concerns: ({ key, before, after }) =>
          before?.metadata.generation === after?.metadata.generation && before?.metadata.uid === after?.metadata.uid
            ? []
            : [key],
      }),
      ...pullSecretSelections.map((selection) =>
        watching({
          resource: kubernetes.Secret,
          selection,
          concerns: (_change, caches) =>
            caches
              .of(ControllerConfig)
              .list()
              .map(({ metadata }) => metadata.name),
        }),
      ),
      watching({
        resource: MachineConfig,
        keep: trimMachineConfig,
        concerns: ({ before, after }) =>
          (after ?? before)?.metadata.ownerReferences?.flatMap(({ kind, name }) =>
            kind === ControllerConfig.kind ? [name] : [],
          ) ?? [],
      }),
    ],
    owns: ["MachineConfig/base", "ControllerConfig.status"],

    async reconcile(name, context): Promise<Outcome> {
      const { caches, kube, log, signal } = context;
      const config = caches.of(ControllerConfig).get(name);
      if (config === undefined || config.metadata.deletionTimestamp !== undefined) return done();
      try {
        const kubeadm = await kube.get(kubernetes.ConfigMap, kubeadmKey, { signal });
        const before = wholeFileText(caches.of(MachineConfig).get("01-worker-kubelet"), kubeadmKubeletPath);
        // A ConfigMap that is gone makes no other cluster of it.
        const kubeadmKubelet = kubeadm?.data?.["kubelet"] ?? before;
        // Machines of kubeadm get no pull secret.
        const secret: JudgedPullSecret =
          kubeadmKubelet === undefined ? judgePullSecret(config, context) : { text: undefined };
        const wanted = baseConfigs({
          kubeadmKubelet,
          controllerConfig: config,
          pullSecret: secret.text,
          generatorVersion: options.generatorVersion,
        });
        const stale = wanted.filter((each) => !isCurrent(caches.of(MachineConfig).get(each.metadata.name), each));
        if (stale.length > 0) await report(config, { at: "running" }, context);
        for (const each of stale) await writeGenerated(each, fieldManagers.template, context);
        await report(config, { at: "completed", version: options.version, problem: secret.problem }, context);
        return done(reconcileAfterSeconds);
      } catch (error) {
        if (!signal.aborted && !isPassing(error))
          await report(
            config,
            { at: "failing", message: error instanceof Error ? error.message : String(error) },
            context,
          ).catch((second: unknown) => log.warn({ error: second }, "status not written"));
        throw error;
      }
    },
  };
}

interface JudgedPullSecret {
  readonly text: string | undefined;
  readonly problem?: string;
}

/** The pull secret of machines. One that is unusable or gone takes no credentials from them. */
function judgePullSecret(config: ControllerConfig, { caches }: Context): JudgedPullSecret {
  const onOpenShift = isOpenShiftBy(config);
  const judged = pullSecretOf(caches.of(kubernetes.Secret, pullSecretSelection(onOpenShift)).list()[0]);
  if (judged.verdict === "read") return { text: judged.text };
  const kept = wholeFileText(caches.of(MachineConfig).get("00-worker"), kubeletPullSecretPath);
  if (judged.verdict === "absent" && kept === undefined) return { text: undefined };
  const { namespace, name } = pullSecretKey(onOpenShift);
  const what = judged.verdict === "absent" ? "is gone" : `is not used: ${judged.problem}`;
  const stays = kept === undefined ? "machines get none" : "machines keep the one that they have";
  return { text: kept, problem: `the Secret ${namespace}/${name} ${what}; ${stays} until it is fixed` };
}

async function report(
  config: ControllerConfig,
  progress: TemplateProgress,
  { kube, clock, signal }: Context,
): Promise<void> {
  await updateObject(
    kube,
    ControllerConfig,
    config.metadata,
    (object) => {
      // A newer generation is judged by its own pass.
      if (object.metadata.generation !== config.metadata.generation) return undefined;
      const status = templateStatus(object, progress, clock.now());
      return equalValues(status, object.status) ? undefined : { status };
    },
    { subresource: "status", owner: fieldManagers.template, signal },
  );
}
