import {
  isNamespacePolicy,
  namespacePolicyPath,
  policyConflicts,
  policyPath,
  registriesConfPath,
  searchRegistriesPath,
  sigstorePath,
} from "./registries-config.ts";
import { type RegistryObjects, settingsOf } from "./registry-objects.ts";

/** A part of a machine's file, and the field that it comes from. */
export interface RegistriesCause {
  readonly file: string;
  /** What stands in the file: `quay.io/team: mirror mirror.example.com/team for digests`. */
  readonly what: string;
  /** `ImageDigestMirrorSet/name` */
  readonly object: string;
  readonly path: string;
}

const files: ReadonlySet<string> = new Set([registriesConfPath, policyPath, searchRegistriesPath, sigstorePath]);

/** Whether settings of registries write a file of a path. */
export const isFileOfRegistries = (path: string): boolean => files.has(path) || isNamespacePolicy(path);

const image = "Image/cluster";
const list = (name: string, i: number) => `spec.registrySources.${name}[${i}]`;

/** Where the parts of the files of registries come from, in the order of the objects' fields. */
export function registriesCauses(objects: RegistryObjects): readonly RegistriesCause[] {
  const { rules, sources, policies } = settingsOf(objects);
  const entries = (
    name: "blockedRegistries" | "insecureRegistries" | "allowedRegistries",
    file: string,
    what: string,
  ) =>
    (sources[name] ?? []).map((scope, i) => ({ file, what: `${scope}: ${what}`, object: image, path: list(name, i) }));
  const search = sources.containerRuntimeSearchRegistries ?? [];
  // A scope that a ClusterImagePolicy decides about is written for that one alone.
  const conflicts = policyConflicts(policies);
  return [
    ...rules.flatMap(({ object, path, of, source, mirrors, policy }): readonly RegistriesCause[] => [
      ...mirrors.flatMap((mirror, i) =>
        mirror === source
          ? []
          : [
              {
                file: registriesConfPath,
                what: `${source}: mirror ${mirror} for ${of}s`,
                object,
                path: `${path}.mirrors[${i}]`,
              },
            ],
      ),
      ...(policy === "NeverContactSource" && mirrors.length > 0
        ? [{ file: registriesConfPath, what: `${source}: blocked`, object, path: `${path}.mirrorSourcePolicy` }]
        : []),
    ]),
    ...entries("blockedRegistries", registriesConfPath, "blocked"),
    ...entries("insecureRegistries", registriesConfPath, "insecure"),
    ...entries("blockedRegistries", policyPath, "rejected"),
    ...entries("allowedRegistries", policyPath, "accepted, and nothing else"),
    ...(search.length === 0
      ? []
      : [
          {
            file: searchRegistriesPath,
            what: `short names: ${search.join(", ")}`,
            object: image,
            path: "spec.registrySources.containerRuntimeSearchRegistries",
          },
        ]),
    ...policies.flatMap(({ object, namespace, spec }) => {
      const covered = new Set(namespace === "" ? [] : conflicts.get(object.replace(/^ImagePolicy\//, "")));
      return (spec.scopes ?? []).flatMap((scope, i): readonly RegistriesCause[] => {
        if (covered.has(scope)) return [];
        const at = { object, path: `spec.scopes[${i}]` };
        const file = namespace === "" ? policyPath : namespacePolicyPath(namespace);
        return [
          { ...at, file, what: `${scope}: signed` },
          { ...at, file: sigstorePath, what: `${scope}: signatures beside the image` },
        ];
      });
    }),
  ];
}
