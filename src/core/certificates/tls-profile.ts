import { own } from "../../api/schema/own.ts";

/**
 * The TLS settings of the `config.openshift.io` APIServer. Source of names: openshift/api
 * config/v1/types_tlssecurityprofile.go (master).
 */
export interface TlsSecurityProfile {
  readonly type?: string | undefined;
  readonly custom?:
    | { readonly ciphers?: readonly string[] | undefined; readonly minTLSVersion?: string | undefined }
    | null
    | undefined;
}

/** TLS settings of a listener, with ciphers by their OpenSSL names. */
export interface TlsSettings {
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  readonly ciphers: readonly string[];
}

export type TlsDecision =
  | {
      readonly verdict: "settings";
      readonly settings: TlsSettings;
      /** Ciphers as flags name them (IANA). */ readonly flags: readonly string[];
      /** Parts of the profile that are not followed, for people. */ readonly notes: readonly string[];
    }
  | { readonly verdict: "refused"; readonly reason: string };

interface Cipher {
  /** IANA name, as flags use it. */
  readonly flag: string;
  /** OpenSSL name, as profiles use it. */
  readonly name: string;
  readonly of: "TLSv1.2" | "TLSv1.3";
}

/**
 * Every cipher that the listeners of this suite support. https://www.iana.org/assignments/tls-parameters,
 * openssl-ciphers(1).
 */
const ciphers: readonly Cipher[] = [
  ...["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"].map((name): Cipher => ({
    flag: name,
    name,
    of: "TLSv1.3",
  })),
  ...(
    [
      ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"],
      ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
      ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"],
      ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
      ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"],
      ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"],
      ["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"],
      ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256"],
      ["TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"],
      ["TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"],
      ["TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"],
      ["TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"],
      ["TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"],
      ["TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"],
      ["TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256"],
      ["TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"],
      ["TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"],
    ] as const
  ).map(([flag, name]): Cipher => ({ flag, name, of: "TLSv1.2" })),
];

const named13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
const intermediate = [
  ...named13,
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "DHE-RSA-AES128-GCM-SHA256",
  "DHE-RSA-AES256-GCM-SHA384",
];
const old = [
  ...intermediate,
  ..."DHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-SHA256 ECDHE-RSA-AES128-SHA256 ECDHE-ECDSA-AES128-SHA ECDHE-RSA-AES128-SHA ECDHE-ECDSA-AES256-SHA384 ECDHE-RSA-AES256-SHA384 ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA DHE-RSA-AES128-SHA256 DHE-RSA-AES256-SHA256 AES128-GCM-SHA256 AES256-GCM-SHA384 AES128-SHA256 AES256-SHA256 AES128-SHA AES256-SHA DES-CBC3-SHA".split(
    " ",
  ),
];
/** The named profiles of openshift/api. */
const profiles: Readonly<Record<string, { readonly ciphers: readonly string[]; readonly minVersion: string }>> = {
  Old: { ciphers: old, minVersion: "VersionTLS10" },
  Intermediate: { ciphers: intermediate, minVersion: "VersionTLS12" },
  Modern: { ciphers: named13, minVersion: "VersionTLS13" },
};
const versions: Readonly<Record<string, TlsSettings["minVersion"] | "older">> = {
  VersionTLS10: "older",
  VersionTLS11: "older",
  VersionTLS12: "TLSv1.2",
  VersionTLS13: "TLSv1.3",
};

/** Ciphers that the kubelet knows and the listeners of this suite do not. */
const onlyOfKubelets: readonly Pick<Cipher, "flag" | "name">[] = [
  { flag: "TLS_RSA_WITH_3DES_EDE_CBC_SHA", name: "DES-CBC3-SHA" },
];

/**
 * What a profile means in a KubeletConfiguration: the lowest version, and the ciphers that Go has, by their IANA names.
 * A profile without a known type, and Custom without its part, are Intermediate, as in the reference.
 */
export function kubeletTlsOf(profile: TlsSecurityProfile | undefined): {
  readonly minVersion: string;
  readonly cipherSuites: readonly string[];
} {
  const custom = profile?.type === "Custom" ? (profile.custom ?? undefined) : undefined;
  const named = own(profiles, profile?.type ?? "") ?? profiles["Intermediate"];
  const all = [...ciphers, ...onlyOfKubelets];
  return {
    minVersion: custom === undefined ? (named?.minVersion ?? "") : (custom.minTLSVersion ?? ""),
    cipherSuites: (custom === undefined ? (named?.ciphers ?? []) : (custom.ciphers ?? [])).flatMap(
      (name) => all.find((cipher) => cipher.name === name)?.flag ?? [],
    ),
  };
}

const refused = (reason: string): TlsDecision => ({ verdict: "refused", reason });

function settingsOf(
  minVersion: TlsSettings["minVersion"],
  chosen: readonly Cipher[],
  notes: readonly string[],
): TlsDecision {
  const usable = chosen.filter(({ of }) => minVersion === "TLSv1.2" || of === "TLSv1.3");
  if (usable.length === 0) return refused(`of the ciphers that were given none is left for ${minVersion} and later`);
  return {
    verdict: "settings",
    settings: { minVersion, ciphers: usable.map(({ name }) => name) },
    flags: usable.map(({ flag }) => flag),
    notes,
  };
}

/**
 * The listener settings for a cluster's profile; Intermediate where the cluster sets none. TLS versions before 1.2 and
 * unsupported ciphers are dropped with a note; a profile without any supported cipher is refused.
 */
export function tlsOfProfile(profile: TlsSecurityProfile | undefined): TlsDecision {
  const type = profile?.type === undefined || profile.type === "" ? "Intermediate" : profile.type;
  const wanted =
    type === "Custom"
      ? { ciphers: profile?.custom?.ciphers ?? [], minVersion: profile?.custom?.minTLSVersion ?? "VersionTLS12" }
      : own(profiles, type);
  if (wanted === undefined)
    return refused(`there is no TLS profile ${type}: it is Old, Intermediate, Modern or Custom`);
  if (wanted.ciphers.length === 0) return refused("the TLS profile Custom names no ciphers");
  const version = own(versions, wanted.minVersion);
  if (version === undefined)
    return refused(`there is no TLS version ${wanted.minVersion}: it is VersionTLS12 or VersionTLS13`);
  const absent = wanted.ciphers.filter((name) => !ciphers.some((cipher) => cipher.name === name));
  const notes = [
    ...(version === "older" ? [`the profile ${type} allows versions before 1.2, which are not spoken`] : []),
    ...(absent.length === 0 ? [] : [`ciphers that are not spoken: ${absent.join(", ")}`]),
  ];
  return settingsOf(
    version === "older" ? "TLSv1.2" : version,
    wanted.ciphers.flatMap((name) => ciphers.find((cipher) => cipher.name === name) ?? []),
    notes,
  );
}

/**
 * The listener settings for command line flags, which are followed or refused.
 *
 * @param cipherSuites `undefined`: none were named, and Intermediate applies; an empty list is refused.
 */
export function tlsOfFlags(minVersion: string | undefined, cipherSuites: readonly string[] | undefined): TlsDecision {
  const version = own(versions, minVersion ?? "VersionTLS12");
  if (version === undefined)
    return refused(`there is no TLS version ${minVersion}: it is VersionTLS12 or VersionTLS13`);
  if (version === "older") return refused(`${minVersion} is not spoken: VersionTLS12 is the least`);
  if (cipherSuites === undefined)
    return settingsOf(
      version,
      intermediate.flatMap((name) => ciphers.find((cipher) => cipher.name === name) ?? []),
      [],
    );
  if (cipherSuites.length === 0) return refused("the list of ciphers is empty");
  const absent = cipherSuites.filter((flag) => !ciphers.some((cipher) => cipher.flag === flag));
  if (absent.length > 0) return refused(`ciphers that are not known: ${absent.join(", ")}`);
  return settingsOf(
    version,
    cipherSuites.flatMap((flag) => ciphers.find((cipher) => cipher.flag === flag) ?? []),
    [],
  );
}
