import { McoError } from "../api/errors.ts";
import type { MachineConfig } from "../api/machine-config.ts";
import type { Ledger, Originals } from "../core/plan-node.ts";
import type { HostLedger } from "../host/host.ts";

/** Format of the documents below. A reader takes this one and the one before; a newer one is somebody else's. */
const version = 1;

const names = { ledger: "ledger.json", previous: "previous.json", target: "target.json", originals: "originals.json", refused: "refused.json" } as const;

/** A target that this machine went back from. */
export interface RefusedTarget {
  readonly config: string;
  readonly image: string;
  readonly reason: string;
  /** RFC 3339. */
  readonly at: string;
  /** It stands in the MachineConfigNode: then somebody who takes it away there lifts it here. */
  readonly reported?: boolean;
}

/** The configuration that the machine has, whole, so that going back needs no API server. */
export interface Previous {
  readonly config: MachineConfig;
  /** `false`: it started with it, and nobody has seen yet that it came up so. */
  readonly proven: boolean;
}

/** What the daemon knows of its machine beyond what it can see: read once, written through, owned by one loop. */
export interface MachineDocuments {
  readonly ledger: Ledger | undefined;
  readonly previous: Previous | undefined;
  readonly originals: Originals | undefined;
  readonly refused: readonly RefusedTarget[];
}

export interface DocumentStore {
  /**
   * @throws McoError `MCO_LEDGER_NEWER` when a newer daemon wrote here: then nothing may be touched.
   * @throws McoError `MCO_LEDGER_UNREADABLE`
   */
  load(signal: AbortSignal): Promise<MachineDocuments>;
  /** The configuration that the machine is on its way to; `undefined` when it is on none. */
  target(signal: AbortSignal): Promise<MachineConfig | undefined>;
  /** Takes a machine over that another one set up: from now on these documents say what it has. */
  adopt(previous: Previous, originals: Originals, signal: AbortSignal): Promise<void>;
  storeOriginals(originals: Originals, signal: AbortSignal): Promise<void>;
  openLedger(ledger: Ledger, target: MachineConfig, signal: AbortSignal): Promise<void>;
  /** Crosses out what is paid, or notes that a reboot was asked for. */
  updateLedger(ledger: Ledger, signal: AbortSignal): Promise<void>;
  /** Makes the target the previous configuration; crosses the debts out last. */
  closeLedger(target: MachineConfig, originals: Originals, signal: AbortSignal): Promise<void>;
  storeRefused(refused: readonly RefusedTarget[], signal: AbortSignal): Promise<void>;
}

export function documentStore(store: HostLedger): DocumentStore {
  async function read<T>(name: string, signal: AbortSignal): Promise<T | undefined> {
    const text = await store.read(name, signal);
    if (text === undefined) return undefined;
    let document: unknown;
    try {
      document = JSON.parse(text);
    } catch (cause) {
      throw new McoError("MCO_LEDGER_UNREADABLE", { document: name, problem: "it is no JSON" }, { cause });
    }
    const v = typeof document === "object" && document !== null && "v" in document ? document.v : undefined;
    if (typeof v !== "number") throw new McoError("MCO_LEDGER_UNREADABLE", { document: name, problem: "it has no version" });
    if (v > version) throw new McoError("MCO_LEDGER_NEWER", { document: name, version: v });
    return document as T;
  }
  const write = (name: string, document: object, signal: AbortSignal) => store.write(name, JSON.stringify({ v: version, ...document }), signal);

  return {
    async load(signal) {
      const ledger = await read<Ledger>(names.ledger, signal);
      // Its absence in a document says that nothing but a proven one was ever kept.
      const previous = await read<{ config: MachineConfig; proven?: boolean }>(names.previous, signal);
      const refused = await read<{ targets: readonly RefusedTarget[] }>(names.refused, signal);
      return { ledger, previous: previous === undefined ? undefined : { config: previous.config, proven: previous.proven !== false }, originals: await read<Originals>(names.originals, signal), refused: refused?.targets ?? [] };
    },
    async target(signal) {
      return (await read<{ config: MachineConfig }>(names.target, signal))?.config;
    },
    async adopt(previous, originals, signal) {
      await write(names.originals, originals, signal);
      await write(names.previous, previous, signal);
    },
    storeOriginals: (originals, signal) => write(names.originals, originals, signal),
    async openLedger(ledger, target, signal) {
      await write(names.target, { config: target }, signal);
      await write(names.ledger, ledger, signal);
    },
    updateLedger: (ledger, signal) => write(names.ledger, ledger, signal),
    async closeLedger(target, originals, signal) {
      await write(names.previous, { config: target, proven: true }, signal);
      await write(names.originals, originals, signal);
      await store.remove(names.target, signal);
      await store.remove(names.ledger, signal);
    },
    async storeRefused(refused, signal) {
      if (refused.length === 0) await store.remove(names.refused, signal);
      else await write(names.refused, { targets: refused }, signal);
    },
  };
}
