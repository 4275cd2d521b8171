import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { type ApiServer, createApiServer } from "../../src/standin/apiserver/server.ts";
import {
  MachineConfig,
  MachineConfigNode,
  MachineConfiguration,
  MachineStateJournal,
  kubernetes,
} from "../../src/api/index.ts";
import { mergePolicies } from "../../src/core/config/disruption-policy.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { clockFrom } from "../../src/ports/clock.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { administrator } from "../simulation/in-process-cluster.ts";
import { Kernel, seededRandom } from "../simulation/kernel.ts";
import { machineConfigOf } from "./contents.ts";
import type { Scenario } from "./crash-harness.ts";

/** How many runs share one server before a new one starts: the objects that they leave must not pile up. */
const runsOfOneServer = 100;

/**
 * The API server that thousands of short runs use one after the other, each with its own node: starting a server costs
 * as much as a run. It follows the virtual time of the current run.
 */
class MachineFixture {
  #server:
    | {
        readonly api: ApiServer;
        readonly configs: Map<Scenario, ReadonlyMap<string, MachineConfig>>;
        policiesOf: Scenario | undefined;
        runs: number;
      }
    | undefined;
  #time = new Kernel(1);
  #serial = 0;

  readonly #clock: Clock = clockFrom({
    now: () => this.#time.clock.now(),
    monotonic: () => this.#time.clock.monotonic(),
    after: (delay, run) => this.#time.clock.after(delay, run),
  });

  /**
   * For one run of a scenario: the server with its configurations (by full name) and policies, and a number that no
   * other run has.
   */
  async enter(
    kernel: Kernel,
    scenario: Scenario,
  ): Promise<{
    readonly server: ApiServer;
    readonly configs: ReadonlyMap<string, MachineConfig>;
    readonly serial: number;
  }> {
    this.#time = kernel;
    if (this.#server === undefined || this.#server.runs >= runsOfOneServer) {
      this.#server?.api.close();
      const api = createApiServer({
        store: memoryStore(),
        clock: this.#clock,
        random: seededRandom(1),
        log: silentLogger,
      });
      const kube = this.#client(api);
      for (const resource of [MachineConfig, MachineConfigNode, MachineConfiguration, MachineStateJournal])
        await kube.apply(kubernetes.CustomResourceDefinition, resource.crd(), { owner: "fixture" });
      await kube.create(MachineConfiguration, {
        apiVersion: MachineConfiguration.apiVersion,
        kind: "MachineConfiguration",
        metadata: { name: "cluster" },
        spec: {},
      } as MachineConfiguration);
      this.#server = { api, configs: new Map(), policiesOf: undefined, runs: 0 };
    }
    const server = this.#server;
    server.runs += 1;
    const kube = this.#client(server.api);
    let configs = server.configs.get(scenario);
    if (configs === undefined) {
      const made = new Map<string, MachineConfig>();
      for (const [name, content] of Object.entries(scenario.contents))
        made.set(
          fullName(scenario, name),
          await kube.create(MachineConfig, machineConfigOf(fullName(scenario, name), content)),
        );
      configs = made;
      server.configs.set(scenario, made);
    }
    if (server.policiesOf !== scenario) {
      await kube.patch(
        MachineConfiguration,
        { name: "cluster" },
        {
          type: "merge",
          body: {
            status: {
              observedGeneration: 1,
              nodeDisruptionPolicyStatus: { clusterPolicies: mergePolicies(scenario.policies) },
            },
          },
        },
        { subresource: "status" },
      );
      server.policiesOf = scenario;
    }
    return { server: server.api, configs, serial: (this.#serial += 1) };
  }

  #client(api: ApiServer): KubeClient {
    return createKubeClient({
      transport: api.as(administrator),
      clock: this.#clock,
      random: seededRandom(2),
      userAgent: "crash",
    });
  }
}

const numbers = new Map<Scenario, number>();

/** The name of a rendered configuration: no two scenarios share one. */
export function fullName(scenario: Scenario, name: string): string {
  const number = numbers.get(scenario) ?? numbers.size + 1;
  numbers.set(scenario, number);
  return `rendered-${name}-${number}`;
}

export const machineFixture = new MachineFixture();
