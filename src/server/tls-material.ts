import { McoError } from "../api/errors.ts";
import { readBundle } from "../core/certificates/certificate-facts.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { TlsFiles } from "../ports/listener.ts";
import type { Logger } from "../ports/logger.ts";

/** Where certificate, key and authorities lie. */
export interface TlsPaths {
  readonly certificate: string;
  readonly key: string;
  /** Authorities whose certificates machines may show. */
  readonly clientCa?: string | undefined;
}

export interface TlsMaterialOptions {
  readonly files: Pick<Files, "readText">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly paths: TlsPaths;
}

/**
 * How often the files are read. Their content is compared, not only their dates: a Secret is replaced by a link
 * elsewhere, and the file's own link stays as it is.
 */
const lookMs = 10_000;
const waitMs = 1000;

/** From when to when a certificate is good, in milliseconds since the epoch; `undefined`: it cannot be read. */
export function validityOf({
  certificate,
}: Pick<TlsFiles, "certificate">): { readonly from: number; readonly until: number } | undefined {
  const bundle = readBundle(certificate);
  const leaf = bundle.verdict === "read" ? bundle.certificates[0] : undefined;
  return leaf === undefined ? undefined : { from: Date.parse(leaf.notBefore), until: Date.parse(leaf.notAfter) };
}

async function read({ files, paths }: TlsMaterialOptions): Promise<TlsFiles | undefined> {
  const [certificate, key, clientCa] = await Promise.all([
    files.readText(paths.certificate),
    files.readText(paths.key),
    paths.clientCa === undefined ? undefined : files.readText(paths.clientCa),
  ]);
  if (certificate === undefined || key === undefined || (paths.clientCa !== undefined && clientCa === undefined))
    return undefined;
  for (const [file, text] of [
    [paths.certificate, certificate],
    [paths.clientCa, clientCa],
  ] as const) {
    if (text === undefined) continue;
    const bundle = readBundle(text);
    if (bundle.verdict === "unreadable")
      throw new McoError("MCO_SERVER_CERTIFICATE", { file, problem: bundle.problem });
    if (bundle.certificates.length === 0)
      throw new McoError("MCO_SERVER_CERTIFICATE", { file, problem: "it holds no certificate" });
  }
  return { certificate, key, ...(clientCa === undefined ? {} : { clientCa }) };
}

/** The files once all of them are there. */
export async function tlsMaterial(options: TlsMaterialOptions, signal: AbortSignal): Promise<TlsFiles> {
  for (let tries = 0; ; tries += 1) {
    const found = await read(options);
    if (found !== undefined) return found;
    if (tries === 0) options.log.warn({ ...options.paths }, "waiting for the certificate and its key");
    await options.clock.sleep(waitMs, signal);
  }
}

/**
 * Forwards the content of the files when it changes; unusable content (a file that is being replaced) is read again.
 */
export async function followTlsMaterial(
  options: TlsMaterialOptions,
  first: TlsFiles,
  use: (tls: TlsFiles) => void,
  signal: AbortSignal,
): Promise<void> {
  let used = first;
  let trouble = "";
  for (;;) {
    await options.clock.sleep(lookMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const found = await read(options);
      if (found === undefined || same(found, used)) continue;
      use(found);
      used = found;
      trouble = "";
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      if (text !== trouble) options.log.warn({ error }, "a new certificate cannot be used; the one before stays");
      trouble = text;
    }
  }
}

const same = (a: TlsFiles, b: TlsFiles) =>
  a.certificate === b.certificate && a.key === b.key && a.clientCa === b.clientCa;
