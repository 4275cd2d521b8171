import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, hostPaths } from "../api/names.ts";
import {
  type PinPlan,
  type PinView,
  decidePins,
  imagesOf,
  parsePinRecord,
  pinDropIn,
} from "../core/images/pinned-images.ts";
import { parsePinAnswer, parsePinGrant } from "../core/images/pin-grant.ts";
import { isDone, memberFacts } from "../core/pool/member-facts.ts";
import type { Host } from "../host/host.ts";
import type { PodImages } from "../host/pod-images.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import { type LinkedSignal, linkedSignal } from "../ports/linked-signal.ts";
import { answerGrant, fetchGrant, keepList, pinRecordName } from "./fetch-pinned-images.ts";

export interface PinnedImagesOptions {
  readonly host: Pick<Host, "files" | "units" | "ledger">;
  readonly images: PodImages;
  readonly nodeName: string;
}

/** Interval for looking whether the images and their list are still there. */
const sweepSeconds = 1800;

/** What the process remembers between two passes. */
interface PinMemory {
  /** The turn that is under way: an update that begins ends it. */
  turn: LinkedSignal | undefined;
  /** When the images were last looked for, in milliseconds of the monotonic clock. */
  sweptAt: number;
}

/** The reason with which an update ends a turn. */
export class UpdateBegan extends Error {
  override readonly name = "UpdateBegan";
}

/** An update is under way: the prefetch leaves the machine, its line and its disk to it. */
const isBusy = (node: Node) => !isDone(memberFacts(node));

const grantsIn = (node: Node | undefined) =>
  JSON.stringify([
    node?.metadata.annotations?.[annotations.pinnedImageSets],
    node?.metadata.annotations?.[annotations.pinnedImageSetsAnswer],
    node !== undefined && isBusy(node),
  ]);

/**
 * Brings the images onto the machine that its Node grants, one after the other, and keeps the engine's list of pinned
 * images. It drains nothing, reboots nothing and removes no image, and steps aside for updates.
 */
export function pinnedImagesController(options: PinnedImagesOptions): Controller {
  const { nodeName } = options;
  const memory: PinMemory = { turn: undefined, sweptAt: -Infinity };
  return {
    name: "pinned-images",
    watches: [
      watching({
        resource: kubernetes.Node,
        selection: { fieldSelector: `metadata.name=${nodeName}` },
        concerns: ({ key, before, after }) => {
          if (after !== undefined && isBusy(after)) memory.turn?.abort(new UpdateBegan());
          return grantsIn(before) === grantsIn(after) ? [] : [key];
        },
      }),
    ],
    owns: ["Host/pinned-images", "MachineConfigNode.status/pinned-images", "Node.metadata.annotations/pinned-answer"],

    async reconcile(name, context): Promise<Outcome> {
      const node = context.caches.of(kubernetes.Node).get(name);
      if (node === undefined || node.metadata.deletionTimestamp !== undefined)
        return waiting("NodeAbsent", "the node is not registered yet", 30);
      const view = await observe(node, options, memory, context);
      return perform(decidePins(view), view, node, options, memory, context);
    },
  };
}

async function observe(
  node: Node,
  { host, images }: PinnedImagesOptions,
  memory: PinMemory,
  { clock, signal }: Context,
): Promise<PinView> {
  const has = node.metadata.annotations ?? {};
  const record = parsePinRecord(await host.ledger.read(pinRecordName, signal));
  const list = await host.files.read(hostPaths.pinnedImages, signal);
  const text = list?.kind === "file" ? new TextDecoder().decode(list.contents) : undefined;
  const grant = parsePinGrant(has[annotations.pinnedImageSets]);
  const answer = parsePinAnswer(has[annotations.pinnedImageSetsAnswer]);
  const lost: string[] = [];
  const isAsked = grant !== undefined && answer?.of !== grant.number;
  if (isAsked || clock.monotonic() - memory.sweptAt >= sweepSeconds * 1000) {
    for (const image of imagesOf(record.sets)) if (!(await images.has(image, signal))) lost.push(image);
    memory.sweptAt = clock.monotonic();
  }
  return {
    grant,
    answer,
    record,
    // Without an entry at the path, `undefined` is what no pinned image asks for; anything else is written again.
    listed: text === pinDropIn(imagesOf(record.sets)) && (list === undefined) === (text === undefined),
    busy: isBusy(node),
    lost,
  };
}

async function perform(
  plan: PinPlan,
  view: PinView,
  node: Node,
  options: PinnedImagesOptions,
  memory: PinMemory,
  context: Context,
): Promise<Outcome> {
  switch (plan.case) {
    case "nothing":
      return done(sweepSeconds);
    case "keep":
      await keepList(plan.sets, view, options.host, context);
      if (plan.answer !== undefined && view.grant !== undefined)
        await answerGrant(
          plan.answer,
          { grant: view.grant, complete: plan.sets, failures: [], underWay: undefined },
          node,
          context,
        );
      return done(sweepSeconds);
    case "postpone":
      await answerGrant(plan.answer, undefined, node, context);
      return done(sweepSeconds);
    case "fetch": {
      const turn = linkedSignal(context.signal);
      memory.turn = turn;
      try {
        return await fetchGrant(
          { ...options, grant: plan.grant, record: view.record, node, turn: turn.signal },
          context,
        );
      } finally {
        memory.turn = undefined;
        turn.release();
      }
    }
  }
}
