import { pushAll } from "../api/schema/push-all.ts";
import { type ErrorCode, McoError } from "../api/errors.ts";
import { type Node, kubernetes } from "../api/foreign/kubernetes.ts";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { PinnedImageSet } from "../api/kinds/pinned-image-set.ts";
import { annotations, fieldManagers, hostPaths } from "../api/names.ts";
import type { Condition } from "../api/schema/object.ts";
import { withNodeProgress } from "../core/books/node-progress.ts";
import { type PinAnswer, type PinGrant, pinAnswerText, pinTurnSeconds } from "../core/images/pin-grant.ts";
import {
  type PinFailure,
  type PinRecord,
  type PinView,
  type PinnedSet,
  forecastPins,
  imagesOf,
  isVersion,
  pinAnswerOf,
  pinDropIn,
  pinRecordText,
} from "../core/images/pinned-images.ts";
import { type PinReport, pausedConditions, pinnedStatus, withoutFalling } from "../core/images/pinned-status.ts";
import { redactText } from "../core/text/redact.ts";
import type { Host } from "../host/host.ts";
import type { ImageLayer, PodImages } from "../host/pod-images.ts";
import type { Context } from "../kube/controller.ts";
import { updateObject } from "../kube/kube-client.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import { imagesNotPinned, imagesPinned } from "./reports.ts";

/** The daemon's own document of the sets that the machine has. */
export const pinRecordName = "pinned-images.json";
const engine = "crio.service";
/** Attempts of one image in one turn, and the delay before the second; it doubles. */
const attempts = 3;
const firstDelayMs = 2000;
/** Images in a row that no registry answered for: then the turn is over. */
const mostUnanswered = 3;
/** Progress is written at most so often. */
const progressMs = 10_000;
const retryGrantSeconds = 30;

type PinHost = Pick<Host, "files" | "units" | "ledger">;

interface Fetch {
  readonly host: PinHost;
  readonly images: PodImages;
  readonly nodeName: string;
  readonly grant: PinGrant;
  readonly record: PinRecord;
  readonly node: Node;
  /** Ends when an update begins. */
  readonly turn: AbortSignal;
}

/** One image of the grant's sets, with every place that names it. */
interface WantedImage {
  readonly image: string;
  readonly places: readonly { readonly set: string; readonly index: number }[];
}

/** Brings the images of a grant onto the machine, as far as one turn goes, and answers it. */
export async function fetchGrant(fetch: Fetch, context: Context): Promise<Outcome> {
  const { grant, node, host, record } = fetch;
  const sets = await readSets(grant, context);
  // A newer state of a set comes with a newer grant.
  if (sets === undefined)
    return waiting("GrantOutdated", "a set of the grant has changed since; the next grant has it", retryGrantSeconds);
  const deadline = context.clock.deadline(pinTurnSeconds * 1000, fetch.turn);
  try {
    const failures = await fetchImages(sets, { ...fetch, turn: deadline.signal }, context);
    const failed = new Set(failures.map(({ set }) => set));
    const complete = grant.sets.flatMap((set) => {
      const whole = failed.has(set.name) ? undefined : sets.find((one) => isVersion(one, set));
      const before = record.sets.find(({ name }) => name === set.name);
      return [whole ?? before].filter((one) => one !== undefined);
    });
    await keepList(complete, { record, listed: false }, host, context);
    await answerGrant(pinAnswerOf(grant, failures), { grant, complete, failures, underWay: undefined }, node, context);
    reportEnd(fetch, failures, context);
    return done(retryGrantSeconds * 60);
  } catch (error) {
    context.signal.throwIfAborted();
    // Time or an update ended the turn; what was fetched stays. Anything else is tried again.
    if (!deadline.signal.aborted) throw error;
    await answerGrant({ of: grant.number, is: "unfinished" }, undefined, node, context);
    return done();
  } finally {
    deadline.cancel();
  }
}

/** The sets of a grant with their images; `undefined`: one of them is not as the grant names it. */
async function readSets({ sets }: PinGrant, { kube, signal }: Context): Promise<readonly PinnedSet[] | undefined> {
  const read: PinnedSet[] = [];
  for (const set of sets) {
    const object = await kube.get(PinnedImageSet, { name: set.name }, { signal });
    const { uid = "", generation = 1 } = object?.metadata ?? {};
    if (object === undefined || uid !== set.uid || generation !== set.generation) return undefined;
    read.push({ ...set, images: object.spec.pinnedImages.map(({ name }) => name) });
  }
  return read;
}

/** @returns why images are not on the machine; empty: all are. */
async function fetchImages(sets: readonly PinnedSet[], fetch: Fetch, context: Context): Promise<readonly PinFailure[]> {
  const { images, turn } = fetch;
  const wanted = wantedImages(sets);
  const missing: WantedImage[] = [];
  for (const one of wanted) if (!(await images.has(one.image, turn))) missing.push(one);
  const failures: PinFailure[] = [];
  let present = wanted.length - missing.length;
  const progress = progressReporter(fetch, wanted.length, context);
  await progress(present, true);
  const { fitting, problems } = await forecast(missing, fetch, context);
  pushAll(failures, problems);
  let unanswered = 0;
  for (const one of fitting) {
    if (unanswered >= mostUnanswered) {
      pushAll(failures, failuresOf(one, "MCO_IMAGE_UNREACHABLE", "not tried: the images before it got no answer"));
      continue;
    }
    try {
      await attempted(() => images.pull(one.image, turn), turn, context);
      present += 1;
      unanswered = 0;
      await progress(present, false);
    } catch (error) {
      turn.throwIfAborted();
      unanswered = isRetryable(error) ? unanswered + 1 : 0;
      pushAll(failures, failuresOf(one, codeOf(error), problemOf(error)));
    }
  }
  return failures;
}

function wantedImages(sets: readonly PinnedSet[]): readonly WantedImage[] {
  const places = sets.flatMap((set) => set.images.map((image, index) => ({ image, set: set.name, index })));
  return [...Map.groupBy(places, ({ image }) => image)].map(([image, of]) => ({
    image,
    places: of.map(({ set, index }) => ({ set, index })),
  }));
}

/** Asks for the sizes of missing images before the first of them is fetched. */
async function forecast(
  missing: readonly WantedImage[],
  { images, turn }: Fetch,
  context: Context,
): Promise<{ readonly fitting: readonly WantedImage[]; readonly problems: readonly PinFailure[] }> {
  const layers: ImageLayer[] = [];
  const fitting: WantedImage[] = [];
  const problems: PinFailure[] = [];
  let unanswered = 0;
  for (const one of missing) {
    if (unanswered >= mostUnanswered) {
      pushAll(problems, failuresOf(one, "MCO_IMAGE_UNREACHABLE", "not tried: the images before it got no answer"));
      continue;
    }
    try {
      pushAll(layers, await attempted(() => images.layersOf(one.image, turn), turn, context));
      fitting.push(one);
      unanswered = 0;
    } catch (error) {
      turn.throwIfAborted();
      unanswered = isRetryable(error) ? unanswered + 1 : 0;
      pushAll(problems, failuresOf(one, codeOf(error), problemOf(error)));
    }
  }
  const verdict = forecastPins(layers, fitting.length === 0 ? undefined : await images.space(turn));
  if (verdict.verdict === "fits") return { fitting, problems };
  const { fetchBytes, needBytes, freeBytes } = verdict;
  const text = `${fitting.length} images are missing, ${fetchBytes} bytes as they are sent; ${needBytes} bytes must be free for them and the kubelet's reserve, and ${freeBytes} are`;
  return {
    fitting: [],
    problems: [...problems, ...fitting.flatMap((one) => failuresOf(one, "MCO_IMAGE_NO_SPACE", text))],
  };
}

/** Tries a few times where a retry can help. */
async function attempted<T>(work: () => Promise<T>, turn: AbortSignal, { clock }: Context): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      turn.throwIfAborted();
      if (!isRetryable(error) || attempt >= attempts) throw error;
      await clock.sleep(firstDelayMs * 2 ** (attempt - 1), turn);
    }
  }
}

const isRetryable = (error: unknown): boolean => error instanceof McoError && error.facts["retryable"] === true;
const codeOf = (error: unknown): ErrorCode => (error instanceof McoError ? error.code : "MCO_HOST_COMMAND_FAILED");
const problemOf = (error: unknown): string => redactText(error instanceof Error ? error.message : String(error));

const failuresOf = ({ image, places }: WantedImage, code: ErrorCode, problem: string): readonly PinFailure[] =>
  places.map(({ set, index }) => ({ set, index, image, code, problem }));

/** Writes how many images are there, now and then. */
function progressReporter(
  { grant, record, nodeName }: Fetch,
  count: number,
  context: Context,
): (present: number, always: boolean) => Promise<void> {
  let last = -Infinity;
  return async (present, always) => {
    if (!always && context.clock.monotonic() - last < progressMs) return;
    last = context.clock.monotonic();
    await writeStatus(
      { grant, complete: record.sets, failures: [], underWay: { images: count, present } },
      nodeName,
      context,
    );
  };
}

/**
 * Makes the engine's list that of these sets. The debt of a reload is recorded before the list changes: if the daemon dies
 * in between, the next one has the engine read it.
 */
export async function keepList(
  sets: readonly PinnedSet[],
  { record, listed }: Pick<PinView, "record" | "listed">,
  host: PinHost,
  { log, signal }: Context,
): Promise<void> {
  const text = pinDropIn(imagesOf(sets));
  const before = pinDropIn(imagesOf(record.sets));
  const isSame = JSON.stringify(sets) === JSON.stringify(record.sets);
  const mustWrite = text !== before || !listed || record.reloadOwed;
  if (isSame && !mustWrite) return;
  const onDisk = await host.files.read(hostPaths.pinnedImages, signal);
  const has = onDisk?.kind === "file" ? new TextDecoder().decode(onDisk.contents) : undefined;
  const changes = has !== text || (onDisk !== undefined && onDisk.kind !== "file");
  const owes = changes || record.reloadOwed;
  if (!isSame || owes !== record.reloadOwed)
    await host.ledger.write(pinRecordName, pinRecordText({ sets, reloadOwed: owes }), signal);
  if (changes && text === undefined) await host.files.remove(hostPaths.pinnedImages, signal);
  else if (changes && text !== undefined)
    await host.files.write(
      [
        {
          path: hostPaths.pinnedImages,
          entry: { kind: "file", contents: new TextEncoder().encode(text), mode: 0o644, uid: 0, gid: 0 },
        },
      ],
      signal,
    );
  if (!owes) return;
  const state = (await host.units.state([engine], signal)).get(engine);
  // An engine that does not run reads the list when it starts.
  if (state?.activity === "active") await host.units.reload(engine, signal);
  await host.ledger.write(pinRecordName, pinRecordText({ sets, reloadOwed: false }), signal);
  log.info({ images: imagesOf(sets).length }, "the engine's list of pinned images is current");
}

/** Reports to the MachineConfigNode, and then answers: what was answered is to be read there. */
export async function answerGrant(
  answer: PinAnswer,
  report: PinReport | undefined,
  node: Node,
  context: Context,
): Promise<void> {
  const { name, uid } = node.metadata;
  if (report !== undefined) await writeStatus(report, name, context);
  else if (answer.is === "unfinished") await writePause(name, context);
  await context.kube.patch(
    kubernetes.Node,
    { name },
    {
      type: "merge",
      body: { metadata: { uid, annotations: { [annotations.pinnedImageSetsAnswer]: pinAnswerText(answer) } } },
    },
    { owner: fieldManagers.daemon, signal: context.signal },
  );
}

async function writeStatus(report: PinReport, name: string, { kube, clock, signal }: Context): Promise<void> {
  const options = { subresource: "status", owner: fieldManagers.daemon, byItem: true, signal } as const;
  const statusOf = (object: MachineConfigNode) => {
    const after = pinnedStatus(object.status, report, clock.now());
    return after === undefined
      ? undefined
      : { ...after, conditions: withProgressOfNode(after.conditions, clock.now()) };
  };
  const object = await updateObject(
    kube,
    MachineConfigNode,
    { name },
    (before) => {
      const after = statusOf(before);
      const rest = after === undefined ? undefined : withoutFalling(before.status, after);
      return rest === undefined ? undefined : { status: { pinnedImageSets: [...rest] } };
    },
    options,
  );
  await updateObject(
    kube,
    MachineConfigNode,
    { name },
    (before) => {
      const after = statusOf(before);
      return after === undefined ? undefined : { status: after };
    },
    { ...options, ...(object === undefined ? {} : { cached: object }) },
  );
}

/** A turn that is over before its work is: nothing goes on until the next one. */
async function writePause(name: string, { kube, clock, signal }: Context): Promise<void> {
  await updateObject(
    kube,
    MachineConfigNode,
    { name },
    (before) => {
      const conditions = pausedConditions(before.status?.conditions ?? [], clock.now());
      return conditions === undefined
        ? undefined
        : { status: { conditions: withProgressOfNode(conditions, clock.now()) } };
    },
    { subresource: "status", owner: fieldManagers.daemon, byItem: true, signal },
  );
}

const withProgressOfNode = (conditions: readonly Condition[] = [], now: number): Condition[] => [
  ...withNodeProgress(conditions, now),
];

function reportEnd({ nodeName, grant }: Fetch, failures: readonly PinFailure[], { report }: Context): void {
  report(failures.length === 0 ? imagesPinned(nodeName, grant.sets) : imagesNotPinned(nodeName, grant.sets, failures));
}
