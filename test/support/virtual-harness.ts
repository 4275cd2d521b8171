import type { KubeClient } from "../../src/kube/kube-client.ts";
import type { InProcessCluster } from "../simulation/in-process-cluster.ts";
import type { Kernel } from "../simulation/kernel.ts";

/** More than any request or pass takes, in virtual time. */
const workPatienceMs = 60_000;

/** What the harnesses of one process share: an API server in memory, and time that passes when a test says so. */
export class VirtualHarness {
  readonly kernel: Kernel;
  readonly cluster: InProcessCluster;

  protected constructor(kernel: Kernel, cluster: InProcessCluster) {
    this.kernel = kernel;
    this.cluster = cluster;
  }

  get kube(): KubeClient {
    return this.cluster.kube;
  }

  /** Lets time pass until `work` has ended. */
  act<T>(work: () => Promise<T>): Promise<T> {
    return this.kernel.complete(work(), workPatienceMs);
  }

  /** Runs everything that is due in the next `ms`. */
  async pass(ms: number): Promise<void> {
    await this.kernel.run({ until: () => false, maxMs: ms });
  }
}
