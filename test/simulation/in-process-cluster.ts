import { memoryStore } from "../../src/standin/apiserver/storage/memory-store.ts";
import { type ApiServer, createApiServer } from "../../src/standin/apiserver/server.ts";
import { definedResources, kubernetes } from "../../src/api/index.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import type { Random } from "../../src/ports/random.ts";

export const administrator = { name: "admin", groups: ["system:masters"] } as const;

export interface InProcessCluster {
  readonly server: ApiServer;
  /** As an administrator, straight into the server, without a network. */
  readonly kube: KubeClient;
  readonly transport: HttpHandler;
  client(transport: HttpHandler, clock?: Clock): KubeClient;
}

/** An API server in memory with the suite's kinds installed. */
export async function inProcessCluster(
  ports: { readonly clock: Clock; readonly random: Random },
  store = memoryStore(),
): Promise<InProcessCluster> {
  const server = createApiServer({ store, ...ports, log: silentLogger });
  const transport = server.as(administrator);
  const client = (via: HttpHandler, clock = ports.clock) =>
    createKubeClient({ transport: via, clock, random: ports.random, userAgent: "test" });
  const kube = client(transport);
  for (const resource of definedResources) await kube.create(kubernetes.CustomResourceDefinition, resource.crd());
  return { server, kube, transport, client };
}
