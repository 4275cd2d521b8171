import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiGates, apiGatesOf } from "../../src/api/feature-sets.ts";
import { definedResources } from "../../src/api/index.ts";
import { openshiftKinds } from "../../src/standin/cluster/openshift-kinds.ts";
import { Api, type ApiTarget } from "../contract/api-target.ts";
import { agreement } from "./agreement.ts";
import { playSuite } from "./play-suite.ts";
import { type Suite, featureSets, hasSuites, readSuites } from "./read-suites.ts";

const own = definedResources.map((resource) => resource.crd());
const definitions = new Map([...own, ...openshiftKinds].map((crd) => [crd.metadata.name, crd]));
/** Of OpenShift's kinds a cluster has what its default features have. */
const isPlayed = ({ definition, gates }: Suite, inDefault: ReadonlySet<string>) =>
  definedResources.some(({ plural, group }) => definition === `${plural}.${group}`) ||
  gates.every((gate) => (gate.startsWith("-") ? !inDefault.has(gate.slice(1)) : inDefault.has(gate)));
/** The definition of a kind on a cluster with the features of a suite. */
const definitionFor = ({ definition, gates }: Suite) =>
  definedResources
    .find(({ plural, group }) => definition === `${plural}.${group}`)
    ?.crd(apiGatesOf({ status: { featureGates: [{ enabled: gates.map((name) => ({ name })) }] } })) ??
  definitions.get(definition);
const suites = hasSuites
  ? readSuites(new Set(definitions.keys())).filter((suite) =>
      isPlayed(suite, featureSets().get("Default") ?? new Set()),
    )
  : [];

interface Running {
  readonly target: ApiTarget;
  close(): Promise<void> | void;
}

/** Plays openshift/api's suites of the suite's own kinds on a server, with the definitions that are installed. */
export function apiSuites(server: string, start: () => Promise<Running>, { skip = false } = {}): void {
  if (!hasSuites) process.stdout.write("openshift/api's suites are not beside the checkout: they are not played.\n");

  describe.skipIf(skip || !hasSuites)(`openshift/api's suites on ${server}`, () => {
    let running: Running;
    beforeAll(async () => {
      running = await start();
    });
    afterAll(async () => {
      await running.close();
    });

    test.for(suites)(
      "$title $version ends as on the reference, but where the table says [api-suites-1]",
      async (suite) => {
        const definition = definitionFor(suite);
        if (definition === undefined) throw new Error(`${suite.definition} is not defined`);
        const played = await playSuite(new Api(running.target), suite, definition as never);
        const known = new Set(
          agreement
            .filter((kind) => kind.definition === suite.definition)
            .flatMap((kind) => (kind.differences ?? []).flatMap((difference) => difference.cases)),
        );
        const caseOf = (name: string) => `${suite.title.replace(/^.*\//, "")}: ${name}`;
        const faults = played.filter(({ fault }) => fault !== undefined);
        expect(faults.filter(({ name }) => !known.has(caseOf(name)))).toEqual([]);
        // A difference that is gone leaves the table.
        expect(played.filter(({ name, fault }) => fault === undefined && known.has(caseOf(name)))).toEqual([]);
      },
    );

    test("features that decide about fields are in the sets that openshift/api puts them in [api-suites-3]", () => {
      const inSets = (gate: string) => [...featureSets()].flatMap(([set, gates]) => (gates.has(gate) ? [set] : []));
      for (const [gate, sets] of Object.entries(apiGates))
        expect(inSets(gate).toSorted()).toEqual([...sets].toSorted());
    });

    test("the table has the number of cases of each kind [api-suites-2]", () => {
      const counted = [...new Set(suites.map(({ definition }) => definition))].map((definition) => [
        definition,
        suites.filter((suite) => suite.definition === definition).reduce((sum, { cases }) => sum + cases.length, 0),
      ]);
      expect(agreement.map(({ definition, cases }) => [definition, cases]).toSorted()).toEqual(counted.toSorted());
    });
  });
}
