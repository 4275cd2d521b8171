import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { decodeContents, textOf } from "../../ignition/data-url.ts";

/** How the cluster's registries are reached, from its ControllerConfig. */
export interface RegistryAccess {
  /** PEM: authorities for every host. */
  readonly trust: string | undefined;
  /** PEM texts by host. */
  readonly certificates: Readonly<Record<string, readonly string[]>>;
  readonly proxy: { readonly httpProxy?: string; readonly httpsProxy?: string; readonly noProxy?: string } | undefined;
  /** Text of an auth file: credentials of the internal registry. */
  readonly nodeAuth: string | undefined;
}

const decodedText = (data: string | null | undefined): string | undefined => {
  if (data === undefined || data === null || data === "") return undefined;
  const decoded = decodeContents({ source: `data:;base64,${data}` });
  return decoded.verdict === "decoded" ? textOf(decoded.bytes) : undefined;
};

/** The cluster's trust bundle, certificates of registries and proxy. */
export function registryAccessOf(spec: ControllerConfig["spec"] | undefined): RegistryAccess {
  // Names are those of keys that users write: `__proto__` is one.
  const certificates = new Map<string, string[]>();
  for (const { file, data } of [
    ...(spec?.imageRegistryBundleData ?? []),
    ...(spec?.imageRegistryBundleUserData ?? []),
  ]) {
    const text = decodedText(data);
    // Keys of a ConfigMap cannot contain a colon: `host..port` stands for `host:port`.
    const host = file.replace("..", ":");
    if (text !== undefined) certificates.set(host, [...(certificates.get(host) ?? []), text]);
  }
  const proxy = spec?.proxy as Readonly<Record<string, string>> | null | undefined;
  const named = (["httpProxy", "httpsProxy", "noProxy"] as const).flatMap((key) =>
    typeof proxy?.[key] === "string" && proxy[key] !== "" ? [[key, proxy[key]] as const] : [],
  );
  return {
    trust: decodedText(spec?.additionalTrustBundle),
    certificates: Object.fromEntries(certificates),
    proxy: named.length === 0 ? undefined : Object.fromEntries(named),
    nodeAuth: decodedText(spec?.internalRegistryPullSecret),
  };
}

/** One auth file from several; the last one that names a host counts. `undefined`: none names any. */
export function mergedAuth(texts: readonly (string | undefined)[]): string | undefined {
  const auths: Record<string, unknown> = {};
  for (const text of texts) {
    if (text === undefined) continue;
    try {
      const read = JSON.parse(text) as { readonly auths?: Readonly<Record<string, unknown>> };
      Object.assign(auths, read.auths ?? {});
    } catch {
      // An unreadable one is ignored here: its own check reports it.
    }
  }
  return Object.keys(auths).length === 0 ? undefined : JSON.stringify({ auths });
}
