import type { Secret } from "../../api/foreign/kubernetes.ts";
import { labels, machineNamespace } from "../../api/names.ts";
import { readPem } from "../certificates/pem.ts";
import { decodeContents, encodeDataUrl, textOf } from "../../ignition/data-url.ts";
import { isRecord } from "../../ignition/shape.ts";
import { textOfBase64 } from "../render/base-configs.ts";

/** Secrets of the installer, one for each role. */
export const installedUserData = ["master", "worker", "arbiter"].map((role) => `${role}-user-data`);

/** What becomes of user data that the installer made. */
export type InstalledAuthority =
  /** It trusts the config server, or is nobody's whom the operator serves. */
  | { readonly verdict: "current" }
  | { readonly verdict: "renew"; /** Decoded. */ readonly userData: string }
  | { readonly verdict: "refused"; readonly message: string };

/**
 * Decides whether user data of the installer gets the present authorities of the config server, in place of the single one that
 * it has: openshift/machine-config-operator pkg/controller/certrotation/certrotation_controller.go (main). User data of another
 * form stays: a machine that trusts another authority than its user data was written for does not start.
 *
 * @param secret `undefined`: the cluster has none of this name.
 * @param authorities PEM.
 */
export function decideAuthority(
  secret: Pick<Secret, "metadata" | "data"> | undefined,
  authorities: string,
): InstalledAuthority {
  if (secret === undefined || secret.metadata.deletionTimestamp !== undefined) return { verdict: "current" };
  const { name, labels: given = {} } = secret.metadata;
  if (labels.managedUserData in given) return { verdict: "current" };
  const read = pointerIn(secret.data?.["userData"]);
  const refused = (why: string): InstalledAuthority => ({
    verdict: "refused",
    message: `the Secret ${machineNamespace}/${name} does not trust the present authorities of the config server and is left as it is, since ${why}; let machines start from the Secret ${name}-managed, or keep its authorities up to date yourself and say so: kubectl label secret -n ${machineNamespace} ${name} ${labels.managedUserData}=`,
  });
  if (typeof read === "string") return refused(read);
  const { config, ignition, security, tls, trusted } = read;
  const wanted = blocksOf(authorities);
  const present = new Set(trusted.flatMap((text) => (text === undefined ? [] : blocksOf(text))));
  const [first, ...others] = trusted;
  // An authority that the config server no longer has goes, unless somebody else named it.
  if (wanted.every((block) => present.has(block)) && (others.length > 0 || present.size === wanted.length))
    return { verdict: "current" };
  if (others.length > 0) return refused(`its userData names ${trusted.length} authorities, and not one`);
  if (first === undefined) return refused("its userData does not hold the authority itself");
  const renewed = { ...tls, certificateAuthorities: [{ source: encodeDataUrl(authorities) }] };
  return {
    verdict: "renew",
    userData: JSON.stringify({ ...config, ignition: { ...ignition, security: { ...security, tls: renewed } } }),
  };
}

/** The certificates of a bundle, however they are laid out; a text that is none is itself. */
function blocksOf(text: string): readonly string[] {
  const pem = readPem(text);
  return pem.verdict === "read" && pem.blocks.length > 0
    ? [...new Set(pem.blocks.map((block) => block.text))]
    : [text.trim()];
}

type Fields = Readonly<Record<string, unknown>>;

/** User data that leads to a config server, and whom it trusts. */
interface Pointer {
  readonly config: Fields;
  readonly ignition: Fields;
  readonly security: Fields;
  readonly tls: Fields;
  /** PEM; `undefined`: an authority that is not in the user data itself. */
  readonly trusted: readonly (string | undefined)[];
}

/**
 * Reads user data of any form. Versions 2 and 3 have these fields in the same place.
 *
 * @returns otherwise why it is no such pointer. It shows nothing of the contents, which can hold credentials.
 */
function pointerIn(encoded: string | undefined): Pointer | string {
  const text = encoded === undefined ? "" : textOfBase64(encoded);
  if (text === "") return "it has no userData";
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch {
    return "its userData is no JSON";
  }
  const ignition = isRecord(config) ? config["ignition"] : undefined;
  if (!isRecord(config) || !isRecord(ignition) || typeof ignition["version"] !== "string")
    return "its userData is no Ignition config";
  if (!sourcesIn(ignition["config"]).some(isOfConfigServer)) return "its userData leads to no config server";
  const { security } = ignition;
  const tls = isRecord(security) ? security["tls"] : undefined;
  const list = isRecord(tls) ? tls["certificateAuthorities"] : undefined;
  if (!isRecord(security) || !isRecord(tls) || !Array.isArray(list) || list.length === 0)
    return "its userData names no authority";
  return {
    config,
    ignition,
    security,
    tls,
    trusted: list.map((authority: unknown) => (isRecord(authority) ? inlineText(authority) : undefined)),
  };
}

/** `append` is that of version 2, `merge` that of version 3; both have `replace`. */
function sourcesIn(config: unknown): readonly unknown[] {
  if (!isRecord(config)) return [];
  return [config["append"], config["merge"], [config["replace"]]]
    .flatMap((each): readonly unknown[] => (Array.isArray(each) ? each : []))
    .flatMap((each) => (isRecord(each) ? [each["source"]] : []));
}

const isOfConfigServer = (source: unknown): boolean =>
  typeof source === "string" && /^https?:\/\/[^/]+\/config\//.test(source);

function inlineText({ source, compression }: Fields): string | undefined {
  if (typeof source !== "string" || (compression !== undefined && typeof compression !== "string")) return undefined;
  const contents = decodeContents(compression === undefined ? { source } : { source, compression });
  return contents.verdict === "decoded" ? textOf(contents.bytes) : undefined;
}
