import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations, hostPaths, objects } from "../api/names.ts";
import { unitsActedOn } from "../core/config/disruption-policy.ts";
import type { MachineFacts } from "../core/machine/judge-target.ts";
import type { MachineView, Question } from "../core/machine/pass-plan.ts";
import { isControlPlane } from "../core/pool/member-facts.ts";
import { storageOverridesOf } from "../core/render/render-for-pool.ts";
import type { Host } from "../host/host.ts";
import { findAdoption, servedAnnotations } from "./adopt-machine.ts";
import { observeHost } from "./observe-host.ts";
import type { PassContext } from "./pass-context.ts";

/** Reads the inputs of every pass once: documents, annotations, the running system, the force file. */
export async function observeMachine(pass: PassContext): Promise<MachineView> {
  const { host, memory, node, context } = pass;
  const { signal, caches, clock } = context;
  const has = node.metadata.annotations ?? {};
  const documents = (memory.documents ??= await pass.documents.load(signal));
  const isUnknown = documents.previous === undefined && documents.ledger === undefined;
  const configuration = caches.of(MachineConfiguration).get(objects.machineConfiguration);
  return {
    now: clock.monotonic(),
    rebootPatienceSeconds: pass.rebootPatienceSeconds,
    node,
    onlyControlPlane: isControlPlane(node) && has[annotations.controlPlaneTopology] === "SingleReplica",
    configuration,
    storageOverrides: storageOverridesOf(configuration),
    documents,
    adoption: isUnknown ? await findAdoption(host, has, (name) => configNamed(name, pass), signal) : undefined,
    served: has[annotations.currentConfig] === undefined ? await servedAnnotations(host, signal) : undefined,
    os: await host.os.status(signal),
    forced: (await host.files.read(hostPaths.force, signal)) !== undefined,
    prepared: new Set(),
  };
}

/** Reads what a decision asks for, and adds it to the view. */
export async function observeMore(what: Question, view: MachineView, pass: PassContext): Promise<MachineView> {
  const { host, reporter, context } = pass;
  switch (what.read) {
    case "refusals":
      return { ...view, refusalsNamed: await reporter.namesRefused() };
    case "config":
      return { ...view, desired: { config: await configNamed(what.name, pass) } };
    case "finaliseFailure":
      return { ...view, finaliseFailure: { text: await host.os.finaliseFailure(context.signal) } };
    case "machine":
      return { ...view, compared: await compared(what, view, pass) };
  }
}

async function compared(
  { previous, target, inService }: Question & { readonly read: "machine" },
  view: MachineView,
  { host, documents: store, context: { signal } }: PassContext,
): Promise<NonNullable<MachineView["compared"]>> {
  const { documents, onlyControlPlane, os, configuration } = view;
  const { image } = os.booted;
  const localPayload =
    (await store.payloadImages(signal)).includes(image) && (await store.payload(image, signal)) !== undefined;
  const node = await observeHost(
    host,
    documents,
    {
      previous,
      target,
      inService,
      onlyControlPlane,
      localPayload,
      actedOn: unitsActedOn(configuration?.status?.nodeDisruptionPolicyStatus?.clusterPolicies),
      seen: view,
    },
    signal,
  );
  return { node, facts: await machineFacts(host, signal) };
}

async function machineFacts(host: Host, signal: AbortSignal): Promise<MachineFacts> {
  const core = await host.users.lookup("core", signal);
  const folder = core === undefined ? undefined : await host.files.read(`${core.home}/.ssh`, signal);
  return {
    sshFolder: core === undefined || folder?.kind !== "folder" ? undefined : { uid: folder.uid, coreUid: core.uid },
    freeBytes: await host.files.freeBytes(signal),
  };
}

/** A configuration by its name: the daemon's copy, or the one that is delivered. */
async function configNamed(
  name: string,
  { memory, configs, context: { kube, signal } }: PassContext,
): Promise<MachineConfig | undefined> {
  const previous = memory.documents?.previous;
  const known = [...memory.configs, ...(previous === undefined ? [] : [previous.config])].find(
    (config) => config.metadata.name === name,
  );
  if (known !== undefined) return known;
  const read = await configs(name, kube, signal);
  if (read !== undefined) memory.configs = [read, ...memory.configs].slice(0, 2);
  return read;
}
