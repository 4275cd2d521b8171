import { type ServedConfig, composeServed, inIgnitionVersion } from "../core/join/served-config.ts";
import { type Problem, sentenceOf } from "../ignition/problem.ts";
import { type ServedVersion, servedVersions } from "../ignition/convert-ignition.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { type Pieces, packedPieces, plainPieces, withoutText } from "./body-pieces.ts";
import type { ConfigSource, PoolLookup, PoolSnapshot } from "./config-source.ts";

export const newestVersion: ServedVersion = servedVersions[servedVersions.length - 1] ?? "3.5.0";

/** One body with its headers, prepared once and served to every request, each with a credential of its own. */
export interface PreparedBody {
  /** Bytes that are kept for it. */
  readonly size: number;
  /** The body in pieces that are sent one after the other. @param credential absent where the body has a place for none. */
  readonly bodyWith: (credential: string | undefined) => readonly Uint8Array[];
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type CachedAnswer =
  | {
      readonly verdict: "answer";
      readonly config: string;
      readonly version: ServedVersion;
      readonly identity: PreparedBody;
      readonly gzip: PreparedBody;
    }
  | {
      readonly verdict: "cannotSay";
      readonly config: string;
      readonly losses: Extract<ServedConfig, { readonly verdict: "cannotSay" }>["losses"];
    }
  | { readonly verdict: "invalid"; readonly config: string; readonly problem: string }
  | Extract<PoolLookup, { readonly verdict: "absent" | "notReady" }>;

type Rendered = Exclude<CachedAnswer, { readonly verdict: "absent" | "notReady" }>;

export interface ResponseCacheOptions {
  readonly source: ConfigSource;
  readonly clock: Clock;
  readonly log: Logger;
  /** Bytes of bodies that are kept; more than that is made again when it is asked for. */
  readonly mostBytes?: number;
  /** `false`: everything is made for each request, as a measure of what keeping is worth. */
  readonly keeps?: boolean;
  readonly onRender?: (
    pool: string,
    version: ServedVersion,
    verdict: Rendered["verdict"],
    milliseconds: number,
  ) => void;
}

export const defaultMostBytes = 96 * 1024 * 1024;

interface Kept {
  readonly of: PoolSnapshot;
  readonly rendered: Rendered;
  readonly bytes: number;
}

const keyOf = (pool: string, version: ServedVersion) => `${pool}\n${version}`;
const same = (a: PoolSnapshot, b: PoolSnapshot) => a.config === b.config && a.version === b.version;

/**
 * Prepared answers: one for each pool and version of Ignition. After a change they are prepared again at once for the
 * requested versions, and for the newest. Requests meanwhile wait for that preparation, and the work is never done
 * twice.
 */
export class ResponseCache {
  readonly #options: ResponseCacheOptions;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();
  readonly #making = new Map<string, { readonly of: PoolSnapshot; readonly done: Promise<Rendered> }>();
  readonly #asked = new Map<string, Set<ServedVersion>>();
  /** The half of an answer that all versions share, of what was made last. */
  #composed: { readonly of: PoolSnapshot; readonly composed: ReturnType<typeof composeServed> } | undefined;
  #bytes = 0;
  #isWarming = false;
  #isStale = false;

  constructor(options: ResponseCacheOptions) {
    this.#options = options;
  }

  /** Of bodies that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Prepares the requested versions and the newest, now and after every change, until `signal` aborts. */
  run(signal: AbortSignal): void {
    const stop = this.#options.source.onChange(() => this.#warm(signal));
    signal.addEventListener("abort", stop, { once: true });
    this.#warm(signal);
  }

  /** What a machine of this pool is answered. */
  async of(pool: string, version: ServedVersion): Promise<CachedAnswer> {
    const look = this.#options.source.pool(pool);
    if (look.verdict !== "snapshot") return look;
    const asked = this.#asked.get(pool) ?? new Set();
    asked.add(version);
    this.#asked.set(pool, asked);
    return this.#get(pool, version, look.snapshot);
  }

  /**
   * Pools that cannot be served as they are now, in the newest version, and why; `undefined` of one: it is being made
   * ready.
   */
  unready(): ReadonlyMap<string, string> {
    const { source } = this.#options;
    return new Map(
      source.pools().flatMap((pool): readonly (readonly [string, string])[] => {
        const look = source.pool(pool);
        if (look.verdict === "absent") return [];
        if (look.verdict === "notReady") return [[pool, look.reason]];
        const kept = this.#kept.get(keyOf(pool, newestVersion));
        if (kept === undefined || kept.of.version !== look.snapshot.version) return [[pool, "NotRenderedYet"]];
        return kept.rendered.verdict === "answer" ? [] : [[pool, "CannotRender"]];
      }),
    );
  }

  async #get(pool: string, version: ServedVersion, snapshot: PoolSnapshot): Promise<Rendered> {
    const key = keyOf(pool, version);
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#options.keeps !== false && kept.of.version === snapshot.version) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept.rendered;
    }
    return this.#make(pool, version, snapshot);
  }

  #make(pool: string, version: ServedVersion, snapshot: PoolSnapshot): Promise<Rendered> {
    const key = keyOf(pool, version);
    const making = this.#making.get(key);
    if (making !== undefined && same(making.of, snapshot) && this.#options.keeps !== false) return making.done;
    const done = this.#render(pool, version, snapshot).finally(() => {
      if (this.#making.get(key)?.done === done) this.#making.delete(key);
    });
    this.#making.set(key, { of: snapshot, done });
    return done;
  }

  async #render(pool: string, version: ServedVersion, snapshot: PoolSnapshot): Promise<Rendered> {
    const { clock, onRender, mostBytes = defaultMostBytes } = this.#options;
    const began = clock.monotonic();
    const rendered = await this.#judge(snapshot, version);
    onRender?.(pool, version, rendered.verdict, clock.monotonic() - began);
    // An outdated answer goes only to requests that already waited for it.
    const now = this.#options.source.pool(pool);
    const bytes = rendered.verdict === "answer" ? rendered.identity.size + rendered.gzip.size : 0;
    if (now.verdict === "snapshot" && same(now.snapshot, snapshot) && bytes <= mostBytes)
      this.#keep(keyOf(pool, version), { of: snapshot, rendered, bytes }, mostBytes);
    return rendered;
  }

  /** What one pool's configuration breaks must not break the answers of others. */
  async #judge(snapshot: PoolSnapshot, version: ServedVersion): Promise<Rendered> {
    try {
      // Versions that are made one after the other begin with the same half.
      if (this.#composed === undefined || !same(this.#composed.of, snapshot) || this.#options.keeps === false)
        this.#composed = { of: snapshot, composed: composeServed(snapshot.inputs) };
      return await render(snapshot, this.#composed.composed, version, this.#options.keeps !== false);
    } catch (error) {
      this.#options.log.error({ error, config: snapshot.config, version }, "a bug kept an answer from being made");
      return {
        verdict: "invalid",
        config: snapshot.config,
        problem: "it cannot be turned into an answer; the server's log says why",
      };
    }
  }

  #keep(key: string, kept: Kept, mostBytes: number): void {
    this.#drop(key);
    this.#kept.set(key, kept);
    this.#bytes += kept.bytes;
    for (const [oldest] of this.#kept) {
      if (this.#bytes <= mostBytes) return;
      if (oldest !== key) this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
  }

  /** One after the other, so that requests find room in between. */
  #warm(signal: AbortSignal): void {
    this.#isStale = true;
    if (this.#isWarming) return;
    this.#isWarming = true;
    void (async () => {
      while (this.#isStale && !signal.aborted) {
        this.#isStale = false;
        await this.#warmOnce(signal);
      }
      this.#isWarming = false;
    })();
  }

  async #warmOnce(signal: AbortSignal): Promise<void> {
    const { source, clock } = this.#options;
    const pools = source.pools();
    for (const key of this.#kept.keys()) if (!pools.includes(key.split("\n")[0] ?? "")) this.#drop(key);
    for (const pool of this.#asked.keys()) if (!pools.includes(pool)) this.#asked.delete(pool);
    for (const pool of pools) {
      for (const version of new Set([newestVersion, ...(this.#asked.get(pool) ?? [])])) {
        const look = source.pool(pool);
        if (look.verdict !== "snapshot" || signal.aborted) continue;
        const kept = this.#kept.get(keyOf(pool, version));
        if (kept !== undefined && same(kept.of, look.snapshot)) continue;
        await this.#make(pool, version, look.snapshot);
        await clock.sleep(0, signal).catch(() => undefined);
      }
    }
  }
}

async function render(
  { config, placeholder }: PoolSnapshot,
  composed: ReturnType<typeof composeServed>,
  version: ServedVersion,
  packs: boolean,
): Promise<Rendered> {
  const served = composed.verdict === "invalid" ? composed : inIgnitionVersion(composed, version);
  if (served.verdict === "cannotSay") return { verdict: "cannotSay", config, losses: served.losses };
  if (served.verdict === "invalid")
    return { verdict: "invalid", config, problem: sentenceOf(served.problems satisfies readonly Problem[]) };
  const body = Buffer.from(served.body, "utf8");
  const digest = await crypto.subtle.digest(
    "SHA-256",
    placeholder === undefined ? body : withoutText(body, placeholder),
  );
  const tag = Buffer.from(digest).toString("hex").slice(0, 40);
  const common = {
    "content-type": "application/json",
    "cache-control": "no-store",
    vary: "Accept, Accept-Encoding, Authorization",
    "x-content-type-options": "nosniff",
  };
  // Weak where each answer differs by its credential: equal tags mean the same configuration, not the same bytes.
  const of = (pieces: Pieces, suffix: string, more: Readonly<Record<string, string>>): PreparedBody => {
    const etag = `${placeholder === undefined ? "" : "W/"}"${tag}${suffix}"`;
    return { ...pieces, etag, headers: { ...common, etag, ...more } };
  };
  const identity = of(plainPieces(body, placeholder), "", {});
  return {
    verdict: "answer",
    config,
    version,
    identity,
    gzip: packs ? of(await packedPieces(body, placeholder), "-gzip", { "content-encoding": "gzip" }) : identity,
  };
}
