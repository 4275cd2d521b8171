import { describe, expect, test } from "vitest";
import { memoryHost } from "../../test/support/hosts/memory-host.ts";
import { memoryPodImages } from "../../test/support/hosts/memory-pod-images.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import { controllerNames, controllersOf } from "../controller/run-controller.ts";
import { certificateController } from "../daemon/certificate-controller.ts";
import { pinnedImagesController } from "../daemon/pinned-images-controller.ts";
import { daemonController } from "../daemon/daemon-controller.ts";
import type { Controller, Watch } from "../kube/controller.ts";
import { osBuilderControllers } from "../os-builder/run-os-builder.ts";
import { systemRandom } from "../ports/node/index.ts";
import { operatorController } from "./operator-controller.ts";
import { componentRights, machineApiRights, operatorRights } from "./rights.ts";
import { clusterConfigs } from "../../test/support/cluster-configs.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

const host = memoryHost({
  images: { stock: { usr: {}, etc: {} } },
  image: "stock",
  kernelArguments: [],
  random: systemRandom,
  onReboot: () => undefined,
});
const nodeName = "worker-0";

/** Account → the controllers of its process. The state process makes its own within its children, which own nothing. */
const processes: Readonly<Record<string, readonly Controller[]>> = {
  [objects.operator]: [operatorController({ version: "1", image: "suite", apiServer: "https://api:6443" })],
  [objects.controller]: controllersOf(controllerNames, { version: "1" }),
  [objects.osBuilder]: osBuilderControllers([], () => {
    throw new Error("no image is opened");
  }),
  [objects.daemon]: [
    daemonController({ host, nodeName, configs: clusterConfigs }),
    certificateController({ host, nodeName }),
    pinnedImagesController({ host, images: memoryPodImages({ registry: {} }), nodeName }),
  ],
};

/** What an account may in a namespace; `undefined`: everywhere. */
function rulesOf(account: string, where: string | undefined): readonly Rule[] {
  return [...operatorRights(), ...componentRights(), ...machineApiRights()]
    .filter(
      ({ kind, metadata }) =>
        (kind === "ClusterRole" || kind === "Role") && metadata.name === account && metadata.namespace === where,
    )
    .flatMap((each) => (each as KubeObject & { readonly rules: readonly Rule[] }).rules);
}

function may(account: string, verb: "list" | "watch", { resource, selection = {} }: Watch): boolean {
  const rules = [
    ...rulesOf(account, undefined),
    ...(selection.namespace === undefined ? [] : rulesOf(account, selection.namespace)),
  ];
  const [, name] = /^metadata\.name=([^,]+)$/.exec(selection.fieldSelector ?? "") ?? [];
  return rules.some(
    ({ apiGroups, resources, verbs, resourceNames }) =>
      apiGroups.includes(resource.group) &&
      resources.includes(resource.plural) &&
      verbs.includes(verb) &&
      (resourceNames === undefined || (name !== undefined && resourceNames.includes(name))),
  );
}

describe.for(Object.entries(processes))("%s", ([account, controllers]) => {
  test("its account may list and watch every kind that its controllers watch", () => {
    const refused = controllers.flatMap((controller) =>
      controller.watches.flatMap((watch) =>
        (["list", "watch"] as const)
          .filter((verb) => !may(account, verb, watch))
          .map(
            (verb) => `${controller.name}: ${verb} ${watch.resource.plural} ${JSON.stringify(watch.selection ?? {})}`,
          ),
      ),
    );
    expect(refused).toEqual([]);
  });
});

test("an account that may watch one object by name may not watch all of its kind", () => {
  const [watch] = processes[objects.daemon]?.[1]?.watches ?? [];
  if (watch === undefined) throw new Error("the daemon's controllers watch nothing");
  expect(may(objects.daemon, "watch", watch)).toBe(true);
  expect(may(objects.daemon, "watch", { resource: watch.resource })).toBe(false);
});

test("a daemon may read journals by name, and neither list nor watch them [operator-rights-1]", () => {
  const rules = [undefined, namespace].flatMap((where) => rulesOf(objects.daemon, where));
  const verbs = rules
    .filter(({ resources }) =>
      resources.some((resource) => resource === "*" || resource === MachineStateJournal.plural),
    )
    .flatMap((rule) => rule.verbs);
  expect(verbs.sort()).toEqual(["get", "patch"]);
});

test("no two controllers claim one field, in whichever processes they run", () => {
  const claims = Object.entries(processes).flatMap(([account, controllers]) =>
    controllers.flatMap(({ name, owns }) => owns.map((field) => ({ field, by: `${account}/${name}` }))),
  );
  const shared = [...Map.groupBy(claims, ({ field }) => field)]
    .filter(([, by]) => by.length > 1)
    .map(([field, by]) => `${field}: ${by.map((each) => each.by).join(", ")}`);
  expect(shared).toEqual([]);
});
