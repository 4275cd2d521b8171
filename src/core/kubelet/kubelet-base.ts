import { lenientKubernetesYaml } from "../text/kubernetes-yaml.ts";
import { readOnce } from "../text/read-once.ts";
import { type Decoded, decodeGo } from "./decode-go.ts";
import { kubeletConfiguration } from "./kubelet-fields.ts";

/** The feature gates that the cluster knows, as its FeatureGate says. */
export interface KnownGates {
  readonly enabled?: readonly string[];
  readonly disabled?: readonly string[];
}

export interface KubeletBaseInputs {
  /** Text of the template's `/etc/kubernetes/kubelet.conf`, without TLS settings. */
  readonly text: string;
  readonly tls: KubeletTls;
  readonly gates: KnownGates;
  /** Of the config Node `cluster`. */
  readonly latencyProfile: string | undefined;
  readonly pool: string;
}

/** TLS settings of a kubelet's own server. */
export interface KubeletTls {
  readonly minVersion: string;
  /** By their IANA names. */
  readonly cipherSuites: readonly string[];
}

/** How often a kubelet reports by a worker latency profile. Source: openshift/api config/v1/types_node.go. */
const reportEvery: Readonly<Record<string, string>> = {
  Default: "10s",
  MediumUpdateAverageReaction: "20s",
  LowUpdateSlowReaction: "1m0s",
};

export type BaseReading =
  | {
      readonly verdict: "read";
      readonly config: Decoded;
      /** Where the machines have the file; absent: where OpenShift has it. */
      readonly path?: string;
    }
  | { readonly verdict: "refused"; readonly reason: string };

/**
 * What every generated kubelet.conf of a pool begins with: the template's, with the cluster's TLS settings, its feature
 * gates, and for the pool `worker` its latency profile.
 */
export function kubeletBase({ text, tls, gates, latencyProfile, pool }: KubeletBaseInputs): BaseReading {
  const read = readKubeletText(text);
  if (read.verdict === "refused") return read;
  const every = pool === "worker" && latencyProfile !== undefined ? reportEvery[latencyProfile] : undefined;
  return {
    verdict: "read",
    config: {
      ...read.value,
      ...withTls(tls),
      featureGates: { ...(read.value["featureGates"] as Decoded | undefined), ...gatesAs(gates) },
      ...(every === undefined ? {} : { nodeStatusUpdateFrequency: every }),
    },
  };
}

/** What a base kubelet.conf says by itself. */
const readKubeletText = readOnce(
  (
    text,
  ): { readonly verdict: "read"; readonly value: Decoded } | Extract<BaseReading, { readonly verdict: "refused" }> => {
    const read = lenientKubernetesYaml(text);
    if (read === undefined) return { verdict: "refused", reason: "the base configuration is no YAML" };
    const { value, problems } = decodeGo(read.value, kubeletConfiguration);
    const [first] = problems;
    return first === undefined
      ? { verdict: "read", value }
      : { verdict: "refused", reason: `the base configuration is wrong: ${first.path} ${first.reason}` };
  },
);

export const withTls = ({ minVersion, cipherSuites }: KubeletTls): Decoded => ({
  tlsMinVersion: minVersion,
  tlsCipherSuites: cipherSuites,
});

const gatesAs = ({ enabled = [], disabled = [] }: KnownGates): Readonly<Record<string, boolean>> =>
  Object.fromEntries([...disabled.map((name) => [name, false]), ...enabled.map((name) => [name, true])]);
