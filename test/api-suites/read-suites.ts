import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** Where the suites lie: data of openshift/api beside the checkout. `MCO_API_SUITES` names another folder. */
export const suitesFolder = process.env["MCO_API_SUITES"] ?? join(import.meta.dirname, "../../../shared/api-suites");
export const hasSuites = existsSync(join(suitesFolder, "suites"));

/** One step that changes a definition before a case: objects are stored under it, and then judged by the real one. */
export interface DefinitionPatch {
  readonly op: "add" | "remove" | "replace";
  readonly path: string;
  readonly value?: unknown;
}

export interface SuiteCase {
  readonly name: string;
  readonly initial: string;
  /** Absent: the case only creates. */
  readonly updated?: string;
  readonly initialCRDPatches?: readonly DefinitionPatch[];
  readonly expected?: string;
  readonly expectedError?: string;
  readonly expectedStatusError?: string;
}

export interface Suite {
  /** `machineconfigpools.machineconfiguration.openshift.io/OSStreams` */
  readonly title: string;
  readonly definition: string;
  readonly version: string;
  readonly gates: readonly string[];
  readonly cases: readonly SuiteCase[];
}

interface WrittenSuite {
  readonly crdName?: string;
  readonly version?: string;
  readonly featureGates?: readonly string[];
  readonly tests?: { readonly onCreate?: readonly SuiteCase[]; readonly onUpdate?: readonly SuiteCase[] };
}

/** Objects as the suites' own program reads them: scalars of YAML 1.1, but for times. */
export const readYaml = (text: string): unknown =>
  parse(text, {
    version: "1.1",
    merge: true,
    uniqueKeys: false,
    maxAliasCount: -1,
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === "string" || !/timestamp|TIME/.test(`${tag.tag} ${tag.format}`)),
  });

/** The suites of the kinds that are given, by the names of their definitions. */
export function readSuites(definitions: ReadonlySet<string>): readonly Suite[] {
  if (!hasSuites) return [];
  const folder = join(suitesFolder, "suites");
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((path) => path.endsWith(".yaml"))
    .toSorted()
    .flatMap((path): readonly Suite[] => {
      const { crdName, version, featureGates, tests } = readYaml(
        readFileSync(join(folder, path), "utf8"),
      ) as WrittenSuite;
      if (crdName === undefined || !definitions.has(crdName)) return [];
      const [, of = ""] = /\/(v[^/]+)\/tests\//.exec(path) ?? [];
      return [
        {
          title: path.replace(/^.*\/tests\//, "").replace(/\.yaml$/, ""),
          definition: crdName,
          version: version ?? of,
          gates: featureGates ?? [],
          cases: [...(tests?.onCreate ?? []), ...(tests?.onUpdate ?? [])],
        },
      ];
    });
}

/** The sets of features, by name, with the gates that each switches on. */
export function featureSets(): ReadonlyMap<string, ReadonlySet<string>> {
  const folder = join(suitesFolder, "featuregates");
  return new Map(
    readdirSync(folder).flatMap((name) => {
      const [, set] = /SelfManagedHA-(\w+)\.yaml$/.exec(name) ?? [];
      if (set === undefined) return [];
      const { status } = readYaml(readFileSync(join(folder, name), "utf8")) as {
        readonly status: {
          readonly featureGates: readonly { readonly enabled: readonly { readonly name: string }[] }[];
        };
      };
      return [[set, new Set(status.featureGates[0]?.enabled.map((gate) => gate.name))] as const];
    }),
  );
}
