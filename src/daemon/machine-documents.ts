import { McoError } from "../api/errors.ts";
import { fittingOriginals, mostOriginalsText, originalsToStore } from "../core/machine/kept-originals.ts";
import type { Originals } from "../core/machine/observed-content.ts";
import type { ImagePair } from "../core/machine/image-target.ts";
import { localPayloadName } from "../core/machine/image-content-plan.ts";
import type { HostLedger } from "../host/host.ts";
import type { Ledger, ImageContentRecord } from "../core/machine/observed-node.ts";
import type { MachineDocuments, KeptTarget, Previous, RefusedTarget } from "../core/machine/machine-record.ts";

/**
 * Format of the documents below. A reader accepts this format and the one before; a newer one belongs to a newer
 * daemon.
 */
const version = 2;
/** Documents without an image are the same in both formats; a daemon that knows no images can continue with them. */
const versionOf = (pair: ImagePair | undefined) => (pair === undefined ? 1 : version);

const names = {
  ledger: "ledger.json",
  previous: "previous.json",
  target: "target.json",
  originals: "originals.json",
  refused: "refused.json",
  settled: "settled.json",
  payloads: "payloads.json",
} as const;

export interface DocumentStore {
  /**
   * @throws McoError `MCO_LEDGER_NEWER` when a newer daemon wrote here: then nothing may be changed. @throws McoError
   * `MCO_LEDGER_UNREADABLE`
   */
  load(signal: AbortSignal): Promise<MachineDocuments>;
  /** The configuration that the machine is updating to; `undefined` without an update. */
  target(signal: AbortSignal): Promise<KeptTarget | undefined>;
  /** Takes over a machine that another daemon set up: from now on these documents hold its state. */
  adopt(previous: Previous, originals: Originals, signal: AbortSignal): Promise<void>;
  storeOriginals(originals: Originals, signal: AbortSignal): Promise<void>;
  openLedger(ledger: Ledger, target: KeptTarget, signal: AbortSignal): Promise<void>;
  /** Crosses out paid debts, or records that a reboot was requested. */
  updateLedger(ledger: Ledger, signal: AbortSignal): Promise<void>;
  /** Makes the target the previous configuration; crosses the debts out last. */
  closeLedger(target: KeptTarget, originals: Originals, signal: AbortSignal): Promise<void>;
  storeRefused(refused: readonly RefusedTarget[], signal: AbortSignal): Promise<void>;
  storeSettled(record: ImageContentRecord, signal: AbortSignal): Promise<void>;
  /** The payload that was laid down here for a machine with this image; `undefined` if none was. */
  payload(image: string, signal: AbortSignal): Promise<string | undefined>;
  /** Images that have a payload laid down here. */
  payloadImages(signal: AbortSignal): Promise<readonly string[]>;
  keepPayload(image: string, text: string, signal: AbortSignal): Promise<void>;
  forgetPayload(image: string, signal: AbortSignal): Promise<void>;
}

export function documentStore(store: HostLedger): DocumentStore {
  const write = writerOf(store);
  const writeLedger = ({ v: _v, ...ledger }: Ledger, signal: AbortSignal) =>
    write(names.ledger, ledger, signal, ledger.image === undefined ? 1 : version);
  const writeOriginals = (originals: Originals, signal: AbortSignal) =>
    write(names.originals, originalsToStore(originals), signal);
  const writeTarget = (
    name: string,
    { config, pair, ...more }: KeptTarget & { readonly proven?: boolean },
    signal: AbortSignal,
  ) => write(name, { config, ...(pair === undefined ? {} : { pair }), ...more }, signal, versionOf(pair));

  return {
    load: (signal) => loadDocuments(store, signal),
    target: (signal) => readDocument<KeptTarget>(store, names.target, signal),
    async adopt(previous, originals, signal) {
      await writeOriginals(originals, signal);
      await writeTarget(names.previous, previous, signal);
    },
    storeOriginals: writeOriginals,
    async openLedger(ledger, target, signal) {
      await writeTarget(names.target, target, signal);
      await writeLedger(ledger, signal);
    },
    updateLedger: writeLedger,
    async closeLedger(target, originals, signal) {
      await writeTarget(names.previous, { ...target, proven: true }, signal);
      await writeOriginals(originals, signal);
      await store.remove(names.target, signal);
      await store.remove(names.ledger, signal);
    },
    async storeRefused(refused, signal) {
      if (refused.length === 0) await store.remove(names.refused, signal);
      else await write(names.refused, { targets: refused }, signal);
    },
    storeSettled: ({ v: _v, ...record }, signal) => write(names.settled, record, signal),
    ...payloadStore(store),
  };
}

type Write = (name: string, document: object, signal: AbortSignal, v?: number) => Promise<void>;

const writerOf =
  (store: HostLedger): Write =>
  (name, document, signal, v = 1) =>
    store.write(name, JSON.stringify({ v, ...document }), signal);

const readDocument = async <T>(store: HostLedger, name: string, signal: AbortSignal): Promise<T | undefined> =>
  parseDocument<T>(await store.read(name, signal), name);

function parseDocument<T>(text: string | undefined, name: string): T | undefined {
  if (text === undefined) return undefined;
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new McoError("MCO_LEDGER_UNREADABLE", { document: name, problem: "it is no JSON" }, { cause });
  }
  const v = typeof document === "object" && document !== null && "v" in document ? document.v : undefined;
  if (typeof v !== "number")
    throw new McoError("MCO_LEDGER_UNREADABLE", { document: name, problem: "it has no version" });
  if (v > version) throw new McoError("MCO_LEDGER_NEWER", { document: name, version: v });
  return document as T;
}

/** An earlier release kept any amount: what is too much goes, and is named, before it hinders anything. */
async function readOriginals(store: HostLedger, signal: AbortSignal): Promise<Originals | undefined> {
  const text = await store.read(names.originals, signal);
  const originals = parseDocument<Originals>(text, names.originals);
  if (text === undefined || originals === undefined || text.length <= mostOriginalsText) return originals;
  const fitting = fittingOriginals(originals);
  await writerOf(store)(names.originals, fitting, signal);
  return fitting;
}

async function loadDocuments(store: HostLedger, signal: AbortSignal): Promise<MachineDocuments> {
  const ledger = await readDocument<Ledger>(store, names.ledger, signal);
  const previous = await readDocument<KeptTarget & { readonly proven?: boolean }>(store, names.previous, signal);
  const refused = await readDocument<{ readonly targets: readonly RefusedTarget[] }>(store, names.refused, signal);
  return {
    ledger,
    // A document without this field dates from when only proven configurations were kept.
    previous:
      previous === undefined
        ? undefined
        : { config: previous.config, pair: previous.pair, proven: previous.proven !== false },
    settled: await readDocument<ImageContentRecord>(store, names.settled, signal),
    originals: await readOriginals(store, signal),
    refused: refused?.targets ?? [],
  };
}

/** Payloads that were laid down on the machine for images that do not hold them. */
function payloadStore(
  store: HostLedger,
): Pick<DocumentStore, "payload" | "payloadImages" | "keepPayload" | "forgetPayload"> {
  const write = writerOf(store);
  const payloadImages = async (signal: AbortSignal) =>
    (await readDocument<{ readonly images: readonly string[] }>(store, names.payloads, signal))?.images ?? [];
  return {
    payload: (image, signal) => store.read(localPayloadName(image), signal),
    payloadImages,
    async keepPayload(image, text, signal) {
      const images = await payloadImages(signal);
      // Named before it exists, so that every payload is named by a document.
      if (!images.includes(image)) await write(names.payloads, { images: [...images, image] }, signal);
      await store.write(localPayloadName(image), text, signal);
    },
    async forgetPayload(image, signal) {
      const images = (await payloadImages(signal)).filter((one) => one !== image);
      await store.remove(localPayloadName(image), signal);
      if (images.length === 0) await store.remove(names.payloads, signal);
      else await write(names.payloads, { images }, signal);
    },
  };
}
