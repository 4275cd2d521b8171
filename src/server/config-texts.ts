import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import type { Clock } from "../ports/clock.ts";
import type { MachineStore } from "./config-source.ts";

/** Configurations whose text is kept: a rollout reads the same one for each of its machines. */
const mostTexts = 16;
const textMs = 30_000;
const compress = promisify(gzip);

/** The text of a configuration as daemons get it. */
interface ConfigText {
  /** When it was read, in monotonic milliseconds. */
  readonly at: number;
  /** `undefined`: there is none of that name. */
  readonly config: MachineConfig | undefined;
  readonly identity: Buffer;
  readonly gzip: Buffer;
}

interface ConfigTextsOptions {
  readonly machines: MachineStore;
  readonly clock: Clock;
  /** Ends the process. Reads are shared, so that no single request ends them. */
  readonly signal: AbortSignal;
}

/** Texts of configurations, read once for all machines that ask for the same one at about the same time. */
export class ConfigTexts {
  readonly #options: ConfigTextsOptions;
  readonly #held = new Map<string, Promise<ConfigText>>();

  constructor(options: ConfigTextsOptions) {
    this.#options = options;
  }

  async of(name: string): Promise<ConfigText> {
    const { clock } = this.#options;
    const before = this.#held.get(name);
    const held = await before?.catch(() => undefined);
    if (held !== undefined && clock.monotonic() - held.at < textMs) return held;
    // Another request that waited for the same text may read it already.
    const other = this.#held.get(name);
    if (other !== undefined && other !== before) return other;
    const read = this.#read(name);
    this.#held.delete(name);
    this.#held.set(name, read);
    try {
      const text = await read;
      // A missing object is requested again, since it may be created at any time.
      if (text.config === undefined) this.#forget(name, read);
      // Only what exists pushes out another: names are free to invent.
      else if (this.#held.size > mostTexts) this.#held.delete(this.#held.keys().next().value ?? name);
      return text;
    } catch (error) {
      this.#forget(name, read);
      throw error;
    }
  }

  #forget(name: string, read: Promise<ConfigText>): void {
    if (this.#held.get(name) === read) this.#held.delete(name);
  }

  async #read(name: string): Promise<ConfigText> {
    const { clock, machines, signal } = this.#options;
    const at = clock.monotonic();
    const config = await machines.machineConfig(name, signal);
    if (config === undefined) return { at, config, identity: Buffer.alloc(0), gzip: Buffer.alloc(0) };
    const { managedFields: _, ...metadata } = config.metadata as MachineConfig["metadata"] & {
      readonly managedFields?: unknown;
    };
    const identity = Buffer.from(JSON.stringify({ ...config, metadata }), "utf8");
    return { at, config, identity, gzip: await compress(identity) };
  }
}
