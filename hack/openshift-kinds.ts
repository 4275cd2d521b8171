/**
 * Writes `src/cluster/openshift-kinds.json`: the definitions of OpenShift's kinds that a cluster of `mco up` has, for
 * people and for the controllers that read them. `make openshift-kinds OPENSHIFT_API=FOLDER` runs it with a clone of
 * openshift/api. Of each definition only the facts stay: names, scope, versions, the structural schema with its limits,
 * printer columns, and the rules in CEL, with messages of this suite.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

const output = join(import.meta.dirname, "../src/cluster/openshift-kinds.json");

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
function facts(schema: Node): Node {
  return Object.fromEntries(
    Object.entries(schema).flatMap(([key, value]): readonly (readonly [string, unknown])[] => {
      switch (key) {
        case "description":
        case "example":
        case "externalDocs":
        case "title":
          return [];
        case "properties":
          return [[key, mapped(value as Readonly<Record<string, Node>>)]];
        case "items":
        case "additionalProperties":
          return [[key, isNode(value) ? facts(value) : value]];
        case "x-kubernetes-validations": {
          const kept = (value as readonly Rule[]).filter(({ rule }) => rule.length <= longestRule).map(ruleOf);
          return kept.length === 0 ? [] : [[key, kept]];
        }
        default:
          return [[key, value]];
      }
    }),
  );
}

const mapped = (properties: Readonly<Record<string, Node>>): Node =>
  Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, facts(child)]));

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
