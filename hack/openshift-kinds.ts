/**
 * Writes `src/api/kinds/controller-config-parts.ts`, the schemas of OpenShift's objects that a ControllerConfig holds,
 * and `src/standin/cluster/openshift-kinds.json`: the definitions of OpenShift's kinds that a cluster of `mco up` has, for
 * people and for the controllers that read them. `make openshift-kinds OPENSHIFT_API=FOLDER` runs it with a clone of
 * openshift/api. Of each definition only the facts stay: names, scope, versions, the structural schema with its limits,
 * printer columns, and the rules in CEL, with messages of this suite.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

const output = join(import.meta.dirname, "../src/standin/cluster/openshift-kinds.json");
const partsOutput = join(import.meta.dirname, "../src/api/kinds/controller-config-parts.ts");
/** With every feature: what a cluster has not switched on is not written. */
const controllerConfig =
  "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_controllerconfigs-SelfManagedHA-CustomNoUpgrade";

const config = "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_";
/** Where a kind differs between sets of features, a cluster of the default set has this one. */
const sources = [
  "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default",
  `${config}apiservers-Default`,
  `${config}featuregates`,
  `${config}nodes-Default`,
  `${config}images`,
  `${config}imagedigestmirrorsets`,
  `${config}imagetagmirrorsets`,
  "operator/v1alpha1/zz_generated.crd-manifests/0000_10_config-operator_01_imagecontentsourcepolicies",
  `${config}clusterimagepolicies`,
  `${config}imagepolicies`,
  `${config}criocredentialproviderconfigs-SelfManagedHA`,
] as const;

/** A longer rule is left out: who reads the message of a refusal could not follow it. */
const longestRule = 400;

/** What this suite says where a rule refuses: the first whose text is a part of the rule. */
const messages: readonly (readonly [part: string, message: string])[] = [
  [
    "self.spec.controlPlaneTopology",
    "spec.controlPlaneTopology must be the topology that the status has, or HighlyAvailable where that is SingleReplica",
  ],
  ["oldSelf.?vsphere.vcenters", "vsphere.vcenters must not be removed once it is set"],
  ["oldSelf.all(x, self.exists(y, y.server == x.server))", "vCenters must not be added and removed in one change"],
  ["self.all(x, oldSelf.exists(y, y.server == x.server))", "vCenters must not be added and removed in one change"],
  ["self.exists_one(y, y.server == x.server)", "each vCenter must have a server of its own"],
  ["self.exists_one(y, x == y)", "each entry must be there once"],
  ["self.vcenters.exists(vc", "each failure domain must name the server of one of vcenters"],
  [".family()", "must be at most one IPv4 and one IPv6 address"],
  ["isIP(self)", "must be an IP address"],
  ["isCIDR(self)", "must be a network, such as 10.0.0.0/16"],
  ["has(oldSelf.apiServerInternalIPs)", "apiServerInternalIPs must not be removed once it is set"],
  ["has(oldSelf.ingressIPs)", "ingressIPs must not be removed once it is set"],
  ["self.dnsRecordsType", "dnsRecordsType may be External only where loadBalancer.type is UserManaged"],
  ["self.clusterHosted", "clusterHosted goes with dnsType ClusterHosted, and only with it"],
  ["self.type == 'UUID'", "uuid goes with type UUID, and only with it"],
  ["self.type == 'Name'", "name goes with type Name, and only with it"],
  ["self.type == 'HostGroup'", "hostGroup goes with type HostGroup, and only with it"],
  ["self.type == 'AWS'", "aws goes with type AWS, and only with it"],
  ["self in ['','AWS']", "must be empty or AWS"],
  ["self.zoneAffinity.type == 'HostGroup'", "a zone of type HostGroup needs a region of type ComputeCluster"],
  ["self.zoneAffinity.type == 'ComputeCluster'", "a zone of type ComputeCluster needs a region of type Datacenter"],
  ["has(oldSelf.resourceTags)", "resourceTags can be set at installation only"],
  ["has(oldSelf.resourceLabels)", "resourceLabels can be set at installation only"],
  ["self.all(x, x in oldSelf)", "cannot change after installation"],
  ["has(oldSelf.resourceGroup)", "resourceGroup must not be removed once it is set"],
  ["has(oldSelf.cloudControllerManager)", "cloudControllerManager must not be added or removed later"],
  ["has(oldSelf.state)", "state must not be added or removed later"],
  ["self == oldSelf", "must not change once it is set"],
  ["getEscapedPath", "the path of the URL must be /v and a number, or /api/v and a number"],
  ["getScheme", "must be a URL of https"],
  ["arn:(aws", "must be the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME"],
  ["openshift-io", "must not begin with openshift-io or kubernetes-io"],
  ["[0-9A-Za-z_.:/=+-@ ]", "must be made of letters, digits, spaces and _ . : / = + - @"],
  ["findAll('-----BEGIN CERTIFICATE-----')", "has a certificate without its end"],
  ["-----BEGIN CERTIFICATE-----", "must begin with a PEM certificate"],
  ["-----END CERTIFICATE-----", "must end with a PEM certificate"],
  ["-----BEGIN PUBLIC KEY-----", "must begin with a PEM public key"],
  ["-----END PUBLIC KEY-----", "must end with a PEM public key"],
  ["isURL", "must be a URL"],
  ["@\\\\S+", "must be an e-mail address"],
  ["has(self.email)", "needs an email, a hostname, or both"],
  ["dns1123Subdomain", "must be a host name, or *. and a domain"],
  ["'PKI'", "pki must be set exactly where policyType is PKI"],
  ["'PublicKey'", "publicKey must be set exactly where policyType is PublicKey"],
  ["'FulcioCAWithRekor'", "fulcioCAWithRekor must be set exactly where policyType is FulcioCAWithRekor"],
  ["'RemapIdentity'", "remapIdentity must be set exactly where matchPolicy is RemapIdentity"],
  ["'ExactRepository'", "exactRepository must be set exactly where matchPolicy is ExactRepository"],
  ["localhost:[0-9]+", "must not have a tag or a digest"],
  ["== 'localhost'", "must begin with a domain, or with localhost"],
  ["!self.contains('*')", "must be a host, a repository or an image"],
  ["self.contains('*')", "may hold * only at its begin, before a domain: *.example.com"],
  ["^\\\\*(?:", "must be a host, a repository, or *. and a domain, without tag and digest"],
  ["self.matches('^(((?:", "must be a repository or a host, without tag and digest"],
  ["blockedRegistries", "blockedRegistries and allowedRegistries must not both be set"],
  ["oldSelf.featureSet", "must not be removed once it is set"],
  ["oldSelf", "cannot be changed back"],
  ["self.metadata.name == 'cluster'", "must be named cluster: there is one of this kind"],
  ["self != '*'", "must name a registry: * alone is not allowed"],
  ["[-a-z0-9._/]", "must be a host name in lower case, whose labels may each be *, with or without port and path"],
  ["self.image", "must not be set together with image"],
  ["self.architecture", "needs a version beside it"],
];

type Node = Readonly<Record<string, unknown>>;

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && !Array.isArray(value);

/** A schema without prose. */
function facts(schema: Node, longest = longestRule): Node {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
      switch (key) {
        case "description":
        case "example":
        case "externalDocs":
        case "title":
          return [];
        case "properties":
          return [[key, mapped(value as Readonly<Record<string, Node>>, longest)]];
        case "items":
        case "additionalProperties":
          return [[key, isNode(value) ? facts(value, longest) : value]];
        case "x-kubernetes-validations": {
          const kept = (value as readonly Rule[]).filter(({ rule }) => rule.length <= longest).map(ruleOf);
          return kept.length === 0 ? [] : [[key, kept]];
        }
        default:
          return [[key, value]];
      }
    }),
  );
}

const mapped = (properties: Readonly<Record<string, Node>>, longest: number): Node =>
  Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, facts(child, longest)]));

interface Rule {
  readonly rule: string;
  readonly fieldPath?: string;
  readonly reason?: string;
  readonly optionalOldSelf?: boolean;
}

function ruleOf({ rule, fieldPath, reason, optionalOldSelf }: Rule): Node {
  const message = messages.find(([part]) => rule.includes(part))?.[1];
  if (message === undefined) throw new Error(`the table of messages has none for the rule ${rule}`);
  return {
    rule,
    message,
    ...(fieldPath === undefined ? {} : { fieldPath }),
    ...(reason === undefined ? {} : { reason }),
    ...(optionalOldSelf === undefined ? {} : { optionalOldSelf }),
  };
}

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: Node;
    readonly scope: string;
    readonly versions: readonly (Node & {
      readonly schema: { readonly openAPIV3Schema: Node };
      readonly additionalPrinterColumns?: readonly Node[];
    })[];
  };
}

function reduced({ metadata: { name }, spec: { group, names, scope, versions } }: Definition): Node {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name },
    spec: {
      group,
      names,
      scope,
      versions: versions.map(({ schema, additionalPrinterColumns: columns, ...version }) => ({
        ...version,
        schema: { openAPIV3Schema: facts(schema.openAPIV3Schema) },
        ...(columns === undefined
          ? {}
          : { additionalPrinterColumns: columns.map(({ description: _, ...column }) => column) }),
      })),
    },
  };
}

const [checkout] = process.argv.slice(2);
if (checkout === undefined) throw new Error("usage: hack/openshift-kinds.ts FOLDER, a clone of openshift/api");
const git = (...args: readonly string[]) =>
  execFileSync("git", ["-C", checkout, ...args], { encoding: "utf8", maxBuffer: 1 << 28 });
const definitions = sources.map((path) => reduced(parse(git("show", `HEAD:${path}.crd.yaml`)) as Definition));
const source = `openshift/api ${git("rev-parse", "--short=12", "HEAD").trim()}`;
writeFileSync(output, `${JSON.stringify({ source, definitions }, undefined, 1)}\n`);

const { spec: holder } = parse(git("show", `HEAD:${controllerConfig}.crd.yaml`)) as Definition;
const fields = facts(holder.versions[0]?.schema.openAPIV3Schema ?? {}, Infinity)["properties"] as Readonly<
  Record<"spec", { readonly properties: Node }>
>;
const { infra, dns, proxy, network } = fields.spec.properties;
// A module, because the library is written by the compiler alone.
writeFileSync(
  partsOutput,
  `/** Written by hack/openshift-kinds.ts. Source: ${source}. */\nexport const controllerConfigParts: Readonly<Record<"infra" | "dns" | "proxy" | "network", object>> = ${JSON.stringify({ infra, dns, proxy, network }, undefined, 2)};\n`,
);
