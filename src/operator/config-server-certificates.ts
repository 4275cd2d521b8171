import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { configServersKey, namespace, objects } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import {
  type AuthorityStep,
  type Validity,
  authorityStep,
  bundleOf,
  validityOfPem,
} from "../core/certificates/authority-rotation.ts";
import { textOfBase64 } from "../core/render/base-configs.ts";
import { type KeyPair, certificateAuthority } from "../kube/certificates.ts";
import type { Context } from "../kube/controller.ts";
import { ours } from "./cluster-sources.ts";

/** Applies a manifest unless it is there as it should be. */
type Keep = (resource: Resource, manifest: KubeObject) => Promise<void>;

const authorityName = "machine-config-server-ca";
const bundleKey = "ca-bundle.crt";
/** Keys of the authority's Secret, in addition to those of the signing authority. */
const keys = { nextCertificate: "next.crt", nextKey: "next.key", retired: "retired.crt" } as const;
const hostsAnnotation = "machineconfiguration.openshift.io/certificate-hosts";
const issuerAnnotation = "machineconfiguration.openshift.io/certificate-issuer";
/** Part of its life after which a serving certificate is replaced: long before anyone minds. */
const replacedAfter = 0.5;

interface Held {
  readonly current: KeyPair | undefined;
  readonly next: KeyPair | undefined;
  /** PEM of authorities that sign no more, and that are believed until they end. */
  readonly retired: string;
}

const digestOf = (pem: string) => bytesToHex(sha256(utf8ToBytes(pem))).slice(0, 16);
const text = (secret: Secret | undefined, key: string) => {
  const value = secret?.data?.[key];
  return value === undefined ? undefined : textOfBase64(value);
};

/** A Secret of the suite, as the API server has it now. */
const liveSecret = (name: string, context: Context): Promise<Secret | undefined> =>
  context.kube.get(kubernetes.Secret, { name, namespace }, context);

const knownSecret = (name: string, context: Context): Secret | undefined =>
  context.caches.of(kubernetes.Secret, ours).get(`${namespace}/${name}`);

/** A pair for a Secret that may be there already, as an installer left it: the type of one never changes. */
const tlsSecret = (
  existing: Secret | undefined,
  { metadata, data }: Pick<Secret, "metadata"> & { readonly data: Readonly<Record<string, string>> },
) =>
  ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...metadata, namespace },
    type: existing?.type ?? "kubernetes.io/tls",
    data,
  }) as KubeObject;

function heldIn(secret: Secret | undefined): Held {
  const pair = (certificate: string | undefined, key: string | undefined) =>
    certificate === undefined || key === undefined || certificate === "" ? undefined : { certificate, key };
  return {
    current: pair(text(secret, "tls.crt"), text(secret, "tls.key")),
    next: pair(text(secret, keys.nextCertificate), text(secret, keys.nextKey)),
    retired: text(secret, keys.retired) ?? "",
  };
}

/**
 * Maintains the config server's certificates: its own authority, whose successor is published long before it signs, and
 * a serving certificate for all names and addresses by which machines reach the server. Both are replaced
 * automatically.
 *
 * @param hosts names and addresses. @param servers URLs, for the daemons of machines that are in service.
 * @returns the change, for people; `undefined` while there are no hosts to certify.
 */
export async function keepConfigServerCertificates(
  { hosts, servers }: { readonly hosts: readonly string[]; readonly servers: readonly string[] },
  keep: Keep,
  context: Context,
): Promise<{ readonly rotated: string | undefined } | undefined> {
  if (hosts.length === 0) return undefined;
  const now = context.clock.now();
  const known = await observeAuthority(knownSecret(objects.configServerCa, context), context);
  // The cache may be older than our own last write: ask the API server before anything is made from it or replaced.
  const { secret, before, current, retiring, step } =
    known.step === "keep" ? known : await observeAuthority(await liveSecret(objects.configServerCa, context), context);
  const made = () => certificateAuthority({ name: authorityName, ...context });
  const after = await (async (): Promise<Held & { readonly current: KeyPair }> => {
    switch (step) {
      case "make": {
        const { certificate, key } = await made();
        return {
          current: { certificate, key },
          next: undefined,
          retired: bundleOf([...retiring, current?.certificate], now),
        };
      }
      case "prepare": {
        const { certificate, key } = await made();
        return { current: bug(current), next: { certificate, key }, retired: bundleOf(retiring, now) };
      }
      case "switch":
        return {
          current: bug(before.next),
          next: undefined,
          retired: bundleOf([...retiring, current?.certificate], now),
        };
      case "keep":
        return { current: bug(current), next: before.next, retired: bundleOf(retiring, now) };
    }
  })();
  const data = {
    "tls.crt": btoa(after.current.certificate),
    "tls.key": btoa(after.current.key),
    ...(after.next === undefined
      ? {}
      : { [keys.nextCertificate]: btoa(after.next.certificate), [keys.nextKey]: btoa(after.next.key) }),
    ...(after.retired === "" ? {} : { [keys.retired]: btoa(after.retired) }),
  };
  if (step !== "keep" || after.retired !== before.retired)
    await keep(kubernetes.Secret, tlsSecret(secret, { metadata: { name: objects.configServerCa }, data }));
  // Machines that start again trust these authorities: publish them before anything is signed by them.
  await keep(kubernetes.ConfigMap, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: objects.configServerCa, namespace },
    data: {
      [bundleKey]: bundleOf([after.current.certificate, after.next?.certificate, after.retired], now),
      [configServersKey]: servers.join("\n"),
    },
  } as KubeObject);
  const issued = await keepServing(after.current, hosts, keep, context);
  return { rotated: describeRotation(step, before, issued) };
}

/** The change, for people; `undefined`: none, or the first authority. */
function describeRotation(step: AuthorityStep, before: Held, issued: string | undefined): string | undefined {
  switch (step) {
    case "make":
      return before.current === undefined ? undefined : "a new authority replaced one that could no longer sign";
    case "prepare":
      return "the authority that signs next is published";
    case "switch":
      return "the published authority signs now";
    case "keep":
      return issued === undefined ? undefined : `another certificate was made, since ${issued}`;
  }
}

interface Authorities {
  readonly secret: Secret | undefined;
  readonly before: Held;
  /** What signs, if it can. */
  readonly current: KeyPair | undefined;
  /** PEM of what signs no more, or cannot. */
  readonly retiring: readonly (string | undefined)[];
  readonly step: AuthorityStep;
}

async function observeAuthority(secret: Secret | undefined, context: Context): Promise<Authorities> {
  const before = heldIn(secret);
  const isUsable = before.current === undefined ? false : await canSign(before.current, context);
  // An authority whose key is of a kind that is not read here signs no more, and is believed on.
  const current = isUsable ? before.current : undefined;
  const retiring = [before.retired, isUsable ? undefined : before.current?.certificate];
  const validity = (pair: KeyPair | undefined): Validity | undefined => validityOfPem(pair?.certificate);
  return {
    secret,
    before,
    current,
    retiring,
    step: authorityStep({ current: validity(current), next: validity(before.next) }, context.clock.now()),
  };
}

/** Why the config server needs another certificate; `undefined`: it does not. */
function whyReplaced(
  serving: Secret | undefined,
  { issuer, hosts, now }: { readonly issuer: string; readonly hosts: readonly string[]; readonly now: number },
): string | undefined {
  const validity = validityOfPem(text(serving, "tls.crt"));
  const covered = new Set((serving?.metadata.annotations?.[hostsAnnotation] ?? "").split(","));
  if (validity === undefined || text(serving, "tls.key") === undefined) return "there was none";
  if (serving?.metadata.annotations?.[issuerAnnotation] !== issuer) return "its authority was replaced";
  if (now - validity.from > (validity.until - validity.from) * replacedAfter) return "half of its time was over";
  return hosts.some((host) => !covered.has(host)) ? "machines reach the server by another name or address" : undefined;
}

/** @returns why another certificate was made; `undefined`: the one that is there stays. */
async function keepServing(
  authority: KeyPair,
  hosts: readonly string[],
  keep: Keep,
  context: Context,
): Promise<string | undefined> {
  const issuer = digestOf(authority.certificate);
  const wanted = { issuer, hosts, now: context.clock.now() };
  if (whyReplaced(knownSecret(objects.configServerTls, context), wanted) === undefined) return undefined;
  const serving = await liveSecret(objects.configServerTls, context);
  const why = whyReplaced(serving, wanted);
  if (why === undefined) return undefined;
  const signer = await certificateAuthority({ name: authorityName, ...context, existing: authority });
  const pair = await signer.issue({ commonName: objects.configServer, usage: "server", hosts });
  const notes = { [hostsAnnotation]: hosts.join(","), [issuerAnnotation]: issuer };
  await keep(
    kubernetes.Secret,
    tlsSecret(serving, {
      metadata: { name: objects.configServerTls, annotations: notes },
      data: { "tls.crt": btoa(pair.certificate), "tls.key": btoa(pair.key) },
    }),
  );
  context.log.info({ why, hosts }, "the config server has another certificate");
  return why;
}

/** Whether a pair is of the kind that this suite signs with. */
async function canSign(pair: KeyPair, context: Context): Promise<boolean> {
  try {
    await certificateAuthority({ name: authorityName, ...context, existing: pair });
    return true;
  } catch (error) {
    context.log.warn(
      { error },
      "the authority of the config server cannot sign here: another one takes its place, and it is believed until it ends",
    );
    return false;
  }
}

function bug(pair: KeyPair | undefined): KeyPair {
  if (pair === undefined) throw new Error("bug: an authority that is to be kept is not there");
  return pair;
}
