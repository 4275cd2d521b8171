import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { McoError } from "../../api/errors.ts";
import {
  type File,
  type IgnitionConfig,
  type Resource,
  decodeContents,
  encodeDataUrl,
  ignitionVersion,
  mergeTwo,
  parseIgnition,
  sentenceOf,
} from "../../ignition/index.ts";
import { type Clock, DeadlineExceeded } from "../../ports/clock.ts";
import type { Download, Downloaded, Downloader } from "../../ports/download.ts";
import type { Logger } from "../../ports/logger.ts";
import { type Random, backedOff } from "../../ports/random.ts";

export interface FetchParts {
  readonly download: Downloader;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly userAgent: string;
  /** Reports why something could not be fetched, each time. */
  readonly onTrouble: (reason: string) => void;
}

/** The reference's, coreos/ignition internal/resource/http.go (main). */
const retry = { firstMs: 200, lastMs: 5_000, spread: 0.1 };
const headersTimeoutSeconds = 10;
/** Referring to a configuration that refers to another one, and so on. */
const deepest = 10;
const maxBytes = 32 * 1024 * 1024;

const failed = (url: string, reason: string, facts: object = {}) =>
  new McoError("MCO_IGNITION_FETCH_FAILED", { url, reason, ...facts });
const refused = (reason: string) => new McoError("MCO_IGNITION_REFUSED", { reason });

/** How documents are fetched, as the referring configuration specifies. */
interface Manners {
  readonly authorities: readonly string[];
  readonly headersTimeoutMs: number;
  /** 0: as long as it takes. */
  readonly totalMs: number;
}

/**
 * Follows a pointer to the machine's configuration, and fetches everything that it refers to: the result has no
 * references left. Temporary failures of a server (5xx, no connection) are retried for as long as the referring
 * configuration specifies.
 *
 * @throws McoError `MCO_IGNITION_FETCH_FAILED`, `MCO_IGNITION_REFUSED`
 */
export async function fetchConfig(pointer: unknown, parts: FetchParts, signal: AbortSignal): Promise<IgnitionConfig> {
  const config = await rendered(parsed(pointer, "the pointer"), 0);
  const manners = await mannersOf(config);
  const { storage } = config;
  if (storage?.files === undefined) return selfContained(config);
  const files: File[] = [];
  for (const { contents, append, ...file } of storage.files) {
    const added: Resource[] = [];
    for (const each of append ?? []) added.push(await inlined(each, manners));
    files.push({
      ...file,
      ...(contents === undefined
        ? {}
        : { contents: contents.source === undefined ? contents : await inlined(contents, manners) }),
      ...(append === undefined ? {} : { append: added }),
    });
  }
  return selfContained({ ...config, storage: { ...storage, files } });

  async function inlined(resource: Resource, manners: Manners): Promise<Resource> {
    const bytes = await contentsOf(resource, manners);
    return (resource.source ?? "").startsWith("data:") ? resource : { source: encodeDataUrl(bytes) };
  }

  async function rendered(config: IgnitionConfig, depth: number): Promise<IgnitionConfig> {
    if (depth > deepest) throw refused(`configurations refer to one another more than ${deepest} times`);
    const manners = await mannersOf(config);
    const { replace, merge = [] } = config.ignition.config ?? {};
    if (replace?.source !== undefined) return rendered(await referenced(replace, manners), depth + 1);
    let whole = config;
    for (const each of merge) whole = mergeTwo(whole, await rendered(await referenced(each, manners), depth + 1));
    return whole;
  }

  async function referenced(resource: Resource, manners: Manners): Promise<IgnitionConfig> {
    const accept = `application/vnd.coreos.ignition+json;version=${ignitionVersion}, */*;q=0.1`;
    const text = new TextDecoder().decode(await contentsOf(resource, manners, { accept }));
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw refused(`what ${named(resource)} holds is no JSON`);
    }
    return parsed(value, named(resource));
  }

  async function mannersOf({ ignition }: IgnitionConfig): Promise<Manners> {
    const without: Manners = {
      authorities: [],
      headersTimeoutMs: (ignition.timeouts?.httpResponseHeaders ?? headersTimeoutSeconds) * 1000,
      totalMs: (ignition.timeouts?.httpTotal ?? 0) * 1000,
    };
    const authorities: string[] = [];
    for (const resource of ignition.security?.tls?.certificateAuthorities ?? [])
      authorities.push(new TextDecoder().decode(await contentsOf(resource, without)));
    return { ...without, authorities };
  }

  async function contentsOf(
    resource: Resource,
    manners: Manners,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Uint8Array> {
    const { source = "", compression, verification } = resource;
    const isRemote = /^https?:/.test(source);
    const inline: Resource = isRemote
      ? {
          source: encodeDataUrl((await answered(resource, manners, headers)).body),
          ...(compression === undefined ? {} : { compression }),
        }
      : resource;
    const contents = decodeContents(source === "" ? undefined : inline, { maxBytes });
    if (contents.verdict === "refused") throw isRemote ? failed(source, contents.reason) : refused(contents.reason);
    if (verification?.hash !== undefined && !hasHash(contents.bytes, verification.hash))
      throw failed(named(resource), `the contents have not the hash ${verification.hash}`);
    return contents.bytes;
  }

  async function answered(
    { source: url = "", httpHeaders = [] }: Resource,
    manners: Manners,
    headers: Readonly<Record<string, string>>,
  ): Promise<Downloaded> {
    const own = Object.fromEntries(httpHeaders.map(({ name, value = "" }) => [name.toLowerCase(), value]));
    const what: Download = {
      url,
      headers: { "user-agent": parts.userAgent, "accept-encoding": "identity", ...headers, ...own },
      authorities: manners.authorities,
      headersTimeoutMs: manners.headersTimeoutMs,
      maxBytes,
    };
    const limit = manners.totalMs === 0 ? undefined : parts.clock.deadline(manners.totalMs, signal);
    const until = limit?.signal ?? signal;
    try {
      for (let failures = 1; ; failures += 1) {
        const reason = await once(what, until);
        if (typeof reason !== "string") return reason;
        parts.onTrouble(reason);
        parts.log.warn({ url, reason, attempt: failures }, "not fetched, trying again");
        await parts.clock.sleep(backedOff(parts.random, failures, retry), until);
      }
    } catch (error) {
      if (error instanceof DeadlineExceeded || (until.aborted && !signal.aborted))
        throw failed(url, "it was not to be had in the time that its configuration allows");
      throw error;
    } finally {
      limit?.cancel();
    }
  }

  /** The answer, or why another try may help. */
  async function once(what: Download, until: AbortSignal): Promise<Downloaded | string> {
    let answer: Downloaded;
    try {
      answer = await parts.download(what, until);
    } catch (error) {
      until.throwIfAborted();
      return error instanceof Error ? error.message : String(error);
    }
    if (answer.status >= 500) return `HTTP ${answer.status}${detailOf(answer)}`;
    if (answer.status === 200 || answer.status === 204) return answer;
    throw failed(what.url, `HTTP ${answer.status}${detailOf(answer)}`, { status: answer.status });
  }
}

function parsed(value: unknown, where: string): IgnitionConfig {
  const reading = parseIgnition(value);
  if (reading.verdict === "invalid") throw refused(`${where}: ${sentenceOf(reading.problems)}`);
  return reading.config;
}

/** Without what only fetching needs. */
const selfContained = ({ ignition: { version }, ...config }: IgnitionConfig): IgnitionConfig => ({
  ...config,
  ignition: { version },
});

/** Data URLs are their contents. */
const named = ({ source = "" }: Resource): string => (source.startsWith("data:") ? "a data URL" : source);

/** `sha512-…` or `sha256-…`, of the decompressed contents: coreos/ignition docs/configuration-v3_5.md (main). */
function hasHash(bytes: Uint8Array, wanted: string): boolean {
  const [kind, sum] = wanted.split("-", 2);
  return (
    bytesToHex(kind === "sha256" ? sha256(bytes) : sha512(bytes)) === sum?.toLowerCase() &&
    (kind === "sha256" || kind === "sha512")
  );
}

/** What a server says of why, where it is short. */
function detailOf({ body }: Downloaded): string {
  const text = new TextDecoder().decode(body.subarray(0, 2_000)).trim();
  try {
    const { message, detail, title } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const said = [message, detail, title].find((word) => typeof word === "string");
    return typeof said === "string" ? `: ${said}` : "";
  } catch {
    return text === "" || text.length > 200 ? "" : `: ${text}`;
  }
}
