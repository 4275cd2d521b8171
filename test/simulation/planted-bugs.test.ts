import { describe, expect, test } from "vitest";
import { MachineConfigPool, type Node, kubernetes, names } from "../../src/api/index.ts";
import { choiceOf } from "../support/how-much.ts";
import type { invariants } from "./invariants.ts";
import { type Plant, type Simulation, simulate } from "./simulation.ts";

const { annotations, labels } = names;

/** Repeats an action at an interval of virtual time. */
function every(simulation: Simulation, ms: number, work: () => Promise<void>): void {
  const again = () => {
    simulation.kernel.schedule(
      ms,
      "rogue",
      () =>
        void work()
          .catch(() => undefined)
          .then(again),
    );
  };
  again();
}

const withBody =
  (change: (body: string) => string): NonNullable<Plant["transport"]> =>
  (transport, life) =>
  (request, signal) =>
    life.name.startsWith("daemon/") && typeof request.body === "string"
      ? transport({ ...request, body: change(request.body) }, signal)
      : transport(request, signal);

/** What a process reads, with text replaced. */
function misread(who: RegExp, path: string, change: (text: string) => string): NonNullable<Plant["transport"]> {
  return (transport, life) => async (request, signal) => {
    const response = await transport(request, signal);
    if (!who.test(life.name) || request.method !== "GET" || !request.target.startsWith(path)) return response;
    const { body } = response;
    const textOf = (chunk: string | Uint8Array) =>
      typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk);
    if (typeof body === "string" || body instanceof Uint8Array) return { ...response, body: change(textOf(body)) };
    return {
      ...response,
      body: (async function* changed() {
        for await (const chunk of body) yield change(textOf(chunk));
      })(),
    };
  };
}

const pools = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools";

/** One bug for each invariant, as a careless change could cause it. */
const bugs: readonly {
  readonly invariant: keyof typeof invariants;
  readonly bug: string;
  readonly controlPlane?: number;
  readonly faults?: boolean;
  readonly plant: Plant;
}[] = [
  {
    invariant: 1,
    bug: "somebody gives every worker the target at once",
    plant: {
      rogue: (simulation) =>
        every(simulation, 30_000, async () => {
          for (const node of simulation.keeper.nodes.objects.values()) {
            const target = simulation.keeper.poolOf(node)?.spec.configuration?.name;
            if (
              node.metadata.labels?.[labels.workerRole] !== undefined &&
              target !== undefined &&
              node.metadata.annotations?.[annotations.desiredConfig] !== target
            )
              await simulation.kube.patch(kubernetes.Node, node.metadata, {
                type: "merge",
                body: { metadata: { annotations: { [annotations.desiredConfig]: target } } },
              });
          }
        }),
    },
  },
  {
    invariant: 2,
    bug: "two control-plane machines are taken at once",
    controlPlane: 3,
    plant: {
      rogue: (simulation) =>
        every(simulation, 20_000, async () => {
          for (const node of simulation.keeper.nodes.objects.values()) {
            const target = simulation.keeper.poolOf(node)?.spec.configuration?.name;
            if (
              node.metadata.labels?.[labels.controlPlaneRole] !== undefined &&
              target !== undefined &&
              node.metadata.annotations?.[annotations.desiredConfig] !== target
            )
              await simulation.kube.patch(kubernetes.Node, node.metadata, {
                type: "merge",
                body: { metadata: { annotations: { [annotations.desiredConfig]: target } } },
              });
          }
        }),
    },
  },
  {
    invariant: 3,
    bug: "a drain deletes pods in place of evicting them",
    plant: {
      transport: (transport, life) => (request, signal) => {
        const pod = /^(\/api\/v1\/namespaces\/[^/]+\/pods\/[^/]+)\/eviction/.exec(request.target)?.[1];
        return life.name.startsWith("controller/") && pod !== undefined
          ? transport({ method: "DELETE", target: pod, headers: request.headers }, signal)
          : transport(request, signal);
      },
      // With the budget always used up, every removal is one too many.
      rogue: (simulation) =>
        every(simulation, 3000, async () => {
          for (const pod of simulation.keeper.pods.objects.values()) {
            if (pod.metadata.annotations?.["test/min-available"] !== "2")
              await simulation.kube.patch(
                kubernetes.Pod,
                { name: pod.metadata.name, namespace: "default" },
                { type: "merge", body: { metadata: { annotations: { "test/min-available": "2" } } } },
              );
          }
        }),
    },
  },
  {
    invariant: 4,
    bug: "a file goes missing after the update was declared done",
    plant: {
      rogue: (simulation) =>
        every(simulation, 60_000, async () => {
          const machine = simulation.machines.get("worker-0");
          // Behind the daemon's back, and without an event: the memory host does not report what another instance of it
          // removed.
          await machine?.host.files.remove("/etc/test/base", new AbortController().signal);
        }),
    },
  },
  {
    invariant: 5,
    bug: "the daemon claims the target when it begins",
    plant: {
      transport: withBody((body) =>
        body.includes('"Working"')
          ? body.replace(
              /"machineconfiguration\.openshift\.io\/state":"Working"/,
              `"${annotations.state}":"Working","${annotations.currentConfig}":"rendered-claimed-too-early"`,
            )
          : body,
      ),
    },
  },
  {
    invariant: 6,
    bug: "the daemon believes that a drain is done before it is",
    plant: {
      transport: (transport, life) => async (request, signal) => {
        const response = await transport(request, signal);
        if (!life.name.startsWith("daemon/") || !request.target.startsWith("/api/v1/nodes")) return response;
        const believesNode = (node: Node) => {
          const has = node.metadata.annotations;
          const drain = has?.[annotations.desiredDrain];
          if (has === undefined || node.kind !== "Node" || drain?.startsWith("drain-") !== true) return;
          has[annotations.lastAppliedDrain] = drain;
          node.spec = { ...node.spec, unschedulable: true };
        };
        const source = response.body;
        if (typeof source === "string" || source instanceof Uint8Array) {
          if (request.method !== "GET" || response.status !== 200 || !request.target.startsWith("/api/v1/nodes/"))
            return response;
          const node = JSON.parse(typeof source === "string" ? source : new TextDecoder().decode(source)) as Node;
          believesNode(node);
          return { ...response, body: JSON.stringify(node) };
        }
        const believes = (line: string) => {
          if (line.trim() === "") return line;
          const event = JSON.parse(line) as { type: string; object: Node };
          believesNode(event.object);
          return `${JSON.stringify(event)}\n`;
        };
        return {
          ...response,
          body: (async function* lying() {
            for await (const chunk of source)
              yield believes(typeof chunk === "string" ? chunk : new TextDecoder().decode(chunk));
          })(),
        };
      },
    },
  },
  {
    invariant: 9,
    bug: "the controller does not read what is in quarantine",
    plant: {
      transport: misread(/^controller\//, pools, (text) =>
        text.replaceAll(annotations.quarantined, "example.com/unknown"),
      ),
      rogue: (simulation) =>
        every(simulation, 2000, async () => {
          const pool = simulation.keeper.pools.objects.get("worker");
          const quarantined = JSON.stringify([{ config: pool?.spec.configuration?.name }]);
          if (
            pool !== undefined &&
            simulation.kernel.now < 900_000 &&
            pool.metadata.annotations?.[annotations.quarantined] !== quarantined
          )
            await simulation.kube.patch(MachineConfigPool, pool.metadata, {
              type: "merge",
              body: { metadata: { annotations: { [annotations.quarantined]: quarantined } } },
            });
        }),
    },
  },
  {
    invariant: 15,
    bug: "the status counts no machine as ready",
    plant: {
      transport: (transport, life) => (request, signal) =>
        transport(
          life.name.startsWith("controller/") && request.target.startsWith(pools) && typeof request.body === "string"
            ? { ...request, body: request.body.replace(/"readyMachineCount":\d+/, '"readyMachineCount":0') }
            : request,
          signal,
        ),
    },
  },
  {
    invariant: 15,
    bug: "a daemon says that it works when it starts",
    plant: {
      transport: (transport, life) => {
        let said = false;
        return async (request, signal) => {
          if (life.name.startsWith("daemon/") && !said) {
            said = true;
            await transport(
              {
                method: "PATCH",
                target: `/api/v1/nodes/${life.name.slice("daemon/".length)}`,
                headers: { "content-type": "application/merge-patch+json" },
                body: JSON.stringify({ metadata: { annotations: { [annotations.state]: "Working" } } }),
              },
              signal,
            );
            await life.ports.clock.sleep(3000, signal);
          }
          return transport(request, signal);
        };
      },
    },
  },
  {
    invariant: 16,
    bug: "the controller does not read that a pool is paused",
    plant: { transport: misread(/^controller\//, pools, (text) => text.replaceAll('"paused":true', '"paused":false')) },
  },
  {
    invariant: 19,
    bug: "a machine that is out of service gets no target",
    plant: {
      transport: (transport, life, simulation) => (request, signal) => {
        const name = /^\/api\/v1\/nodes\/([^/?]+)/.exec(request.target)?.[1] ?? "";
        const isTarget =
          life.name.startsWith("controller/") &&
          typeof request.body === "string" &&
          request.body.includes(annotations.desiredConfig);
        return isTarget && simulation.keeper.nodes.objects.get(name)?.spec?.unschedulable === true
          ? transport({ ...request, target: request.target.replace(name, "nobody") }, signal)
          : transport(request, signal);
      },
    },
  },
  {
    invariant: 21,
    bug: "a daemon does not read what its journal has, and tells everything again",
    faults: true,
    plant: {
      transport: (transport, life) => async (request, signal) => {
        const response = await transport(request, signal);
        if (
          !life.name.startsWith("daemon/") ||
          request.method !== "GET" ||
          !request.target.includes("/machinestatejournals/") ||
          typeof response.body !== "string"
        )
          return response;
        return {
          ...response,
          body: JSON.stringify({ ...(JSON.parse(response.body) as object), spec: { lines: [], last: [] } }),
        };
      },
    },
  },
  {
    invariant: 21,
    bug: "a daemon sends what it has not written down",
    plant: {
      host: (host) => ({
        ...host,
        books: {
          ...host.books,
          append: (boot, lines, how, signal) =>
            host.books.append(
              boot,
              lines.map((line) => line.replace('"mark":"end"', '"mark":"note"')),
              how,
              signal,
            ),
        },
      }),
    },
  },
  {
    invariant: 22,
    bug: "the end of an update gets lost on its way",
    plant: {
      transport: withBody((body) =>
        body.includes('"path":"Updated"')
          ? JSON.stringify(
              (JSON.parse(body) as { value?: { path?: string } }[]).filter(({ value }) => value?.path !== "Updated"),
            )
          : body,
      ),
    },
  },
  {
    invariant: 23,
    bug: "a daemon that comes back does not know what was told",
    faults: true,
    plant: {
      host: (host) => ({
        ...host,
        books: {
          ...host.books,
          read: async (signal) =>
            (await host.books.read(signal)).map(({ boot, lines }) => ({
              boot,
              lines: lines.map((line) => line.replace('"chapter":"Update"', '"chapter":"PoolMove"')),
            })),
        },
      }),
    },
  },
  {
    invariant: 25,
    bug: "what others wrote to a MachineConfigNode meanwhile is overwritten",
    faults: true,
    plant: {
      transport: (transport) => (request, signal) =>
        transport(
          request.target.includes("/machineconfignodes/") &&
            request.target.includes("/status") &&
            typeof request.body === "string"
            ? {
                ...request,
                body: request.body.replace(
                  /\{"op":"replace","path":"\/metadata\/resourceVersion","value":"\d+"\},?/,
                  "",
                ),
              }
            : request,
          signal,
        ),
    },
  },
  {
    invariant: 25,
    bug: "a daemon writes a phase and not what it is part of",
    plant: {
      transport: withBody((body) => {
        if (!body.startsWith("[") || !body.includes('"/status/conditions/')) return body;
        return JSON.stringify(
          (JSON.parse(body) as { value?: { type?: string } }[]).map((operation) =>
            operation.value?.type === "UpdateExecuted"
              ? { ...operation, value: { ...operation.value, status: "False" } }
              : operation,
          ),
        );
      }),
    },
  },
  {
    invariant: 26,
    bug: "a service is not reloaded, and the book says that it was",
    plant: { host: (host) => ({ ...host, units: { ...host.units, reload: () => Promise.resolve() } }) },
  },
  {
    invariant: 26,
    bug: "a daemon writes a file that none of its lines speaks of",
    plant: {
      host: (host) => ({
        ...host,
        os: {
          ...host.os,
          reboot: async (because, signal) => {
            const contents = new TextEncoder().encode("late");
            const entry = { kind: "file", contents, mode: 0o644, uid: 0, gid: 0 } as const;
            await host.files.write([{ path: "/etc/test/late", entry }], signal);
            await host.os.reboot(because, signal);
          },
        },
      }),
    },
  },
  {
    invariant: 26,
    bug: "machines are drained, and no line tells it",
    plant: {
      transport: (transport, life) => (request, signal) =>
        life.name.startsWith("controller/") &&
        request.target.includes("/machinestatejournals/") &&
        typeof request.body === "string"
          ? transport({ ...request, body: request.body.replaceAll("Executed/Drained", "Executed/Cordoned") }, signal)
          : transport(request, signal),
    },
  },
  {
    invariant: 18,
    bug: "a machine never hears of its target",
    plant: {
      transport: (transport, life) => (request, signal) =>
        life.name === "daemon/worker-1" &&
        request.target.startsWith("/apis/machineconfiguration.openshift.io/v1/machineconfigs/") &&
        life.kernel.now > 600_000
          ? new Promise(() => undefined)
          : transport(request, signal),
    },
  },
];

describe("a planted bug is found", () => {
  test.for(choiceOf(bugs, 2))(
    "invariant $invariant: $bug [simulation-planted-bugs-1]",
    { timeout: 900_000 },
    async ({ invariant, controlPlane = 1, faults = false, plant }) => {
      const found: number[] = [];
      // The rarest shows in one of about ten seeds.
      for (let seed = 1; seed <= 30 && found.length === 0; seed += 1) {
        const { simulation } = await simulate({ seed, controlPlane, workers: 3, stormMs: 15 * 60_000, faults, plant });
        if (simulation.keeper.violations.some((violation) => violation.invariant === invariant)) found.push(seed);
      }
      expect(found).toHaveLength(1);
    },
  );
});
