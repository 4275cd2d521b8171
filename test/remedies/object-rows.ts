import type { MachineStateBook } from "../../src/api/books/machine-state-book.ts";
import type { MachineStateChapter } from "../../src/api/books/machine-state-chapter.ts";
import type { MachineStateJournal } from "../../src/api/books/machine-state-journal.ts";
import { ContainerRuntimeConfig } from "../../src/api/kinds/container-runtime-config.ts";
import type { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { JoinPlace } from "../../src/api/kinds/join-place.ts";
import { KubeletConfig } from "../../src/api/kinds/kubelet-config.ts";
import { MachineConfiguration } from "../../src/api/kinds/machine-configuration.ts";
import { NodeBinding } from "../../src/api/kinds/node-binding.ts";
import { InternalReleaseImage } from "../../src/api/kinds/internal-release-image.ts";
import { OSImageStream } from "../../src/api/kinds/os-image-stream.ts";
import { explainInternalReleaseImage } from "../../src/core/preview/explain-internal-release-image.ts";
import { explainOSImageStream } from "../../src/core/preview/explain-os-image-stream.ts";
import { PinnedImageSet } from "../../src/api/kinds/pinned-image-set.ts";
import { ProvisioningToken } from "../../src/api/kinds/provisioning-token.ts";
import { annotations, labels, namespace, objects } from "../../src/api/names.ts";
import { type KubeObject, timestampOf } from "../../src/api/schema/object.ts";
import { nodeCommand } from "../../src/cli/commands/node.ts";
import { tokenCommand } from "../../src/cli/commands/token.ts";
import type { Io } from "../../src/cli/io.ts";
import { explainControllerConfig } from "../../src/core/operator/explain-settings.ts";
import { machineConfigurationStatus } from "../../src/core/operator/machine-configuration-status.ts";
import { explainBook, explainChapter, explainJournal } from "../../src/core/preview/explain-books.ts";
import { explainNodeBinding } from "../../src/core/preview/explain-joining-kinds.ts";
import { factsOf } from "../../src/core/pool/pool-queries.ts";
import { templateStatus } from "../../src/core/render/controller-config-of.ts";
import { type Harness, updatedPool } from "../support/control-plane-harness.ts";
import { type Row, type TextRow, byItself } from "./row.ts";

const merge = (body: object) => ({ type: "merge", body }) as const;
const io: Io = { out: () => undefined, err: () => undefined, screen: undefined };
const day = 24 * 3_600_000;
const now = Date.UTC(2030, 0, 2);
const hash = "0".repeat(64);

/** A pool, and the controllers of the suite beside it. */
const cluster = async (): Promise<Harness> => (await updatedPool(["w0"])).harness;
const inFuture = (harness: Harness, ms: number) => timestampOf(harness.kernel.clock.now() + ms);

const token = (name: string, pool: string, spec: object): ProvisioningToken => ({
  apiVersion: ProvisioningToken.apiVersion,
  kind: ProvisioningToken.kind,
  metadata: { name },
  spec: { pool, tokenHash: hash, ...spec },
});

/** Virtual time has a cost for each event: only a few pass in this one. */
const later = async (harness: Harness, ms: number): Promise<void> => {
  harness.kernel.schedule(ms, "later", () => undefined);
  await harness.pass(ms + 1000);
};

/** A MachineConfiguration as the operator reports on it, and what becomes of it when a person changes it. */
const settings = (title: string, says: string, wrong: object, right: object): Row => ({
  reasons: ["kind/MachineConfiguration"],
  title,
  isLong: true,
  async make() {
    const harness = await cluster();
    const key = { name: objects.machineConfiguration };
    const apply = (body: object) =>
      harness.act(async () => {
        const { kube } = harness;
        const before = await kube.get(MachineConfiguration, key);
        if (before === undefined)
          await kube.create(MachineConfiguration, {
            apiVersion: MachineConfiguration.apiVersion,
            kind: MachineConfiguration.kind,
            metadata: key,
            spec: { managementState: "Managed", logLevel: "Normal", operatorLogLevel: "Normal" },
          });
        const object = await kube.patch(MachineConfiguration, key, merge(body));
        // As the operator's task does.
        const status = machineConfigurationStatus(object, harness.kernel.clock.now());
        await kube.patch(MachineConfiguration, key, merge({ status }), { subresource: "status" });
      });
    await apply(wrong);
    return { harness, subject: "machineconfiguration", says: [says], remedy: () => apply(right) };
  },
});

const machineSets = { resource: "machinesets", apiGroup: "machine.openshift.io" } as const;

/** Objects of the other kinds, in an API server with the suite's controllers. */
export const objectRows: readonly Row[] = [
  ...(
    [
      [KubeletConfig, "kubeletConfig", { maxPods: -1 }, { maxPods: 64 }],
      [ContainerRuntimeConfig, "containerRuntimeConfig", { pidsLimit: 3 }, { pidsLimit: 2048 }],
    ] as const
  ).map(([resource, field, wrong, right]): Row => {
    const type = resource.kind.toLowerCase();
    return {
      reasons: [`kind/${resource.kind}`],
      title: `a ${resource.kind} that is refused`,
      async make() {
        const harness = await cluster();
        const { apiVersion, kind } = resource;
        const machineConfigPoolSelector = { matchLabels: { [`${labels.poolPrefix}worker`]: "" } };
        await harness.act(() =>
          harness.kube.create<KubeObject>(resource, {
            apiVersion,
            kind,
            metadata: { name: "x" },
            spec: { machineConfigPoolSelector, [field]: wrong },
          } as KubeObject),
        );
        await harness.pass(3000);
        return {
          harness,
          subject: `${type}/x`,
          says: [`correct the named field: kubectl edit ${type}/x`],
          async remedy() {
            await harness.act(() =>
              harness.kube.patch<KubeObject>(resource, { name: "x" }, merge({ spec: { [field]: right } })),
            );
            await harness.pass(3000);
          },
        };
      },
    };
  }),
  {
    reasons: ["kind/ProvisioningToken"],
    title: "a token whose time is over",
    async make() {
      const harness = await cluster();
      // It is kept for a day, of which a minute is left.
      const expiresAt = inFuture(harness, 60_000 - day);
      await harness.act(() => harness.kube.create(ProvisioningToken, token("abcdefghij", "worker", { expiresAt })));
      return {
        harness,
        subject: "provisioningtoken/abcdefghij",
        says: [byItself("it is removed by itself at"), "mco token create --pool worker"],
        remedy: () => later(harness, 120_000),
        isGone: true,
      };
    },
  },
  {
    reasons: ["kind/ProvisioningToken"],
    title: "a token of a pool that does not exist",
    async make() {
      const harness = await cluster();
      await harness.act(() =>
        harness.kube.create(ProvisioningToken, token("abcdefghij", "ghost", { expiresAt: inFuture(harness, day) })),
      );
      const { kernel, kube } = harness;
      const parts = { kube, io, clock: kernel.clock, random: kernel.random, fallbackServer: undefined };
      return {
        harness,
        subject: "pt/abcdefghij",
        says: ["mco token revoke abcdefghij"],
        remedy: () => harness.act(() => tokenCommand(parts, { verb: "revoke", ids: ["abcdefghij"], json: false })),
        isGone: true,
      };
    },
  },
  {
    reasons: ["kind/PinnedImageSet"],
    title: "a set of pinned images that no pool has",
    async make() {
      const harness = await cluster();
      await harness.act(() =>
        harness.kube.create(PinnedImageSet, {
          apiVersion: PinnedImageSet.apiVersion,
          kind: PinnedImageSet.kind,
          metadata: { name: "x" },
          spec: { pinnedImages: [{ name: `registry.example.com/app@sha256:${hash}` }] },
        }),
      );
      const worker = { metadata: { labels: { [labels.role]: "worker" } } };
      return {
        harness,
        subject: "pinnedimageset/x",
        says: [`kubectl label pinnedimageset x ${labels.role}=worker`],
        remedy: () => harness.act(() => harness.kube.patch(PinnedImageSet, { name: "x" }, merge(worker))),
        leaves: "machines fetch the images in turn",
      };
    },
  },
  {
    reasons: ["kind/JoinPlace"],
    title: "a place that no machine has taken",
    isLong: true,
    async make() {
      const harness = await cluster();
      const spec = { pool: "worker", expiresAt: inFuture(harness, 60_000) };
      await harness.act(() =>
        harness.kube.create(JoinPlace, {
          apiVersion: JoinPlace.apiVersion,
          kind: JoinPlace.kind,
          metadata: { name: "x" },
          spec,
        }),
      );
      return {
        harness,
        subject: "joinplace/x",
        says: [byItself("mco explain pool/worker names machines that are overdue")],
        remedy: () => later(harness, 120_000),
        isGone: true,
      };
    },
  },
  {
    reasons: ["kind/NodeBinding"],
    title: "a name whose Node was deleted",
    async make() {
      const harness = await cluster();
      const spec = { pool: "worker", publicKey: hash, expiresAt: inFuture(harness, day) };
      await harness.act(() =>
        harness.kube.create(NodeBinding, {
          apiVersion: NodeBinding.apiVersion,
          kind: NodeBinding.kind,
          metadata: { name: "w9" },
          spec: { ...spec, releasedAt: inFuture(harness, -1000) },
        }),
      );
      const parts = { kube: harness.kube, io, now: () => harness.kernel.clock.now() };
      return {
        harness,
        subject: "nodebinding/w9",
        says: ["mco node release w9"],
        remedy: () =>
          harness.act(() => nodeCommand(parts, { verb: "release", names: ["w9"], isDeleted: false, json: false })),
        // The name has no machine: another one may take it.
        leaves: "the next machine that takes the name ends this",
      };
    },
  },
  settings(
    "boot images that nothing manages",
    "set selection.mode of each of spec.managedBootImages.machineManagers to None",
    { spec: { managedBootImages: { machineManagers: [{ ...machineSets, selection: { mode: "All" } }] } } },
    { spec: { managedBootImages: { machineManagers: [{ ...machineSets, selection: { mode: "None" } }] } } },
  ),
  settings(
    "a config server that asks for no credential",
    `kubectl annotate machineconfiguration cluster ${annotations.configServerAccess}-`,
    { metadata: { annotations: { [annotations.configServerAccess]: "insecure" } } },
    { metadata: { annotations: { [annotations.configServerAccess]: null } } },
  ),
  settings(
    "an access of the config server that is not understood",
    `set the annotation ${annotations.configServerAccess} to required or insecure`,
    { metadata: { annotations: { [annotations.configServerAccess]: "sometimes" } } },
    { metadata: { annotations: { [annotations.configServerAccess]: "required" } } },
  ),
];

const controllerConfig = (progress: Parameters<typeof templateStatus>[1]): ControllerConfig => {
  const object = {
    metadata: { name: objects.controllerConfig, generation: 1 },
    spec: {},
  } as unknown as ControllerConfig;
  return { ...object, status: templateStatus(object, progress, now) };
};
const binding = (spec: object): NodeBinding => ({
  apiVersion: NodeBinding.apiVersion,
  kind: NodeBinding.kind,
  metadata: { name: "w9" },
  spec: { pool: "worker", publicKey: hash, expiresAt: timestampOf(now + day), ...spec },
});
const facts = factsOf({ pools: [], nodes: [], machineConfigNodes: [] }, now);
const chapter = (spec: object): MachineStateChapter =>
  ({
    metadata: { name: "node.w9.000001" },
    spec: { book: "node/w9", chapter: "Update", state: "Open", sections: [], ...spec },
  }) as unknown as MachineStateChapter;
const book = (chapters: readonly object[], more: object = {}): MachineStateBook =>
  ({
    metadata: { name: "node.w9" },
    spec: { book: "node/w9", health: "Update", chapters, ...more },
  }) as unknown as MachineStateBook;

/** States of the other kinds that end outside of the object, or with the object that it is about. */
const osImageStream = (defaultStream: string): OSImageStream => {
  const image = `registry.example.com/os@sha256:${hash}`;
  const stream = { name: "rhel-9", osImage: image, osExtensionsImage: image };
  return {
    apiVersion: OSImageStream.apiVersion,
    kind: OSImageStream.kind,
    metadata: { name: "cluster" },
    spec: { defaultStream },
    status: { availableStreams: [stream], defaultStream: stream.name },
  };
};

const internalReleaseImage: InternalReleaseImage = {
  apiVersion: InternalReleaseImage.apiVersion,
  kind: InternalReleaseImage.kind,
  metadata: { name: "cluster" },
  spec: { releases: [{ name: "ocp-release-bundle-4.20.1-x86_64" }] },
};

export const objectTexts: readonly TextRow[] = [
  {
    reasons: ["kind/OSImageStream"],
    title: "a default that is no stream any more",
    explain: () => explainOSImageStream(osImageStream("rhel-8"), facts),
    says: [`kubectl patch osimagestream cluster --type merge -p '{"spec":{"defaultStream":"rhel-9"}}'`],
    after: () => explainOSImageStream(osImageStream("rhel-9"), facts),
  },
  {
    reasons: ["kind/InternalReleaseImage"],
    title: "a bundle of releases, for which no machine serves a registry",
    explain: () => explainInternalReleaseImage(internalReleaseImage, undefined, now),
    says: ["ImageDigestMirrorSet"],
  },
  {
    reasons: ["kind/ControllerConfig"],
    title: "a ControllerConfig from which nothing can be made",
    explain: () => explainControllerConfig(controllerConfig({ at: "failing", message: "no pull secret" }), now),
    says: [`kubectl logs -n ${namespace} deployment/${objects.controller}`],
    after: () => explainControllerConfig(controllerConfig({ at: "completed", version: "1" }), now),
  },
  {
    reasons: ["kind/ControllerConfig"],
    title: "a ControllerConfig whose configurations are being made",
    explain: () => explainControllerConfig(controllerConfig({ at: "running" }), now),
    says: [byItself("the controller makes them by itself")],
    after: () => explainControllerConfig(controllerConfig({ at: "completed", version: "1" }), now),
  },
  {
    reasons: ["kind/NodeBinding"],
    title: "a name that an administrator released",
    explain: () => explainNodeBinding(binding({ revoked: true }), facts),
    says: ["mco token create --pool worker --node w9"],
  },
  {
    reasons: ["kind/NodeBinding"],
    title: "a name whose last certificate ended",
    explain: () => explainNodeBinding(binding({ expiresAt: timestampOf(now - day) }), facts),
    says: ["kubectl delete node w9"],
  },
  {
    reasons: ["kind/NodeBinding"],
    title: "a machine that has its certificate and no Node",
    explain: () => explainNodeBinding(binding({}), facts),
    says: [byItself("its kubelet registers it")],
  },
  {
    reasons: ["kind/MachineStateChapter"],
    title: "an open chapter",
    explain: () => explainChapter(chapter({}), now),
    says: [byItself("it goes on: mco explain node/w9")],
    after: () => explainChapter(chapter({ state: "Closed", outcome: "Succeeded" }), now),
  },
  {
    reasons: ["kind/MachineStateChapter"],
    title: "a chapter that failed",
    explain: () => explainChapter(chapter({ state: "Closed", outcome: "Failed", reason: "ServiceFailed" }), now),
    says: ["read the service's log on the machine", "mco explain node/w9"],
  },
  {
    reasons: ["kind/MachineStateChapter"],
    title: "a chapter whose writer is gone",
    explain: () => explainChapter(chapter({ state: "Abandoned" }), now),
    says: ["mco explain node/w9"],
  },
  {
    reasons: ["kind/MachineStateBook"],
    title: "a book with an open chapter",
    explain: () => explainBook(book([{ number: 1, chapter: "Update" }]), now),
    says: [byItself("chapter Update goes on: mco book node/w9")],
    after: () => explainBook(book([{ number: 1, chapter: "Update", endedAt: "x", outcome: "Succeeded" }]), now),
  },
  {
    reasons: ["kind/MachineStateBook"],
    title: "a book whose last chapter failed",
    explain: () => explainBook(book([{ number: 1, chapter: "Update", endedAt: "x", outcome: "Failed" }]), now),
    says: ["mco explain node/w9"],
  },
  {
    reasons: ["kind/MachineStateJournal"],
    title: "a journal that lost lines",
    explain: () =>
      explainJournal(
        { metadata: { name: "controller" }, spec: { lines: [], dropped: 3 } } as unknown as MachineStateJournal,
        now,
      ),
    says: [byItself("the remaining lines are correct")],
  },
];
