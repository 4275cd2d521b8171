import { McoError } from "../api/errors.ts";
import type { MachineConfig } from "../api/machine-config.ts";
import type { Ledger, Originals } from "../core/plan-node.ts";
import type { HostLedger } from "../host/host.ts";

/** Format of the documents below. A reader takes this one and the one before; a newer one is somebody else's. */
const version = 1;

const names = { ledger: "ledger.json", previous: "previous.json", target: "target.json", originals: "originals.json" } as const;

/** What the daemon knows of its machine beyond what it can see: read once, written through, owned by one loop. */
export interface MachineDocuments {
  readonly ledger: Ledger | undefined;
  /** The configuration that the machine was last proven to have, whole. */
  readonly previous: MachineConfig | undefined;
  readonly originals: Originals | undefined;
}

export interface DocumentStore {
  /** @throws McoError `MCO_LEDGER_NEWER` when a newer daemon wrote here: then nothing may be touched. */
  load(signal: AbortSignal): Promise<MachineDocuments>;
  storeOriginals(originals: Originals, signal: AbortSignal): Promise<void>;
  openLedger(ledger: Ledger, target: MachineConfig, signal: AbortSignal): Promise<void>;
  /** Makes the target the previous configuration; crosses the debts out last. */
  closeLedger(target: MachineConfig, originals: Originals, signal: AbortSignal): Promise<void>;
}

export function documentStore(store: HostLedger): DocumentStore {
  async function read<T>(name: string, signal: AbortSignal): Promise<T | undefined> {
    const text = await store.read(name, signal);
    if (text === undefined) return undefined;
    const document = JSON.parse(text) as { v: number };
    if (document.v > version) throw new McoError("MCO_LEDGER_NEWER", { document: name, version: document.v });
    return document as T;
  }
  const write = (name: string, document: object, signal: AbortSignal) => store.write(name, JSON.stringify({ v: version, ...document }), signal);

  return {
    async load(signal) {
      const previous = await read<{ config: MachineConfig }>(names.previous, signal);
      return { ledger: await read<Ledger>(names.ledger, signal), previous: previous?.config, originals: await read<Originals>(names.originals, signal) };
    },
    storeOriginals: (originals, signal) => write(names.originals, originals, signal),
    async openLedger(ledger, target, signal) {
      await write(names.target, { config: target }, signal);
      await write(names.ledger, ledger, signal);
    },
    async closeLedger(target, originals, signal) {
      await write(names.previous, { config: target }, signal);
      await write(names.originals, originals, signal);
      await store.remove(names.target, signal);
      await store.remove(names.ledger, signal);
    },
  };
}
