import type { ApiServer } from "../../src/standin/apiserver/server.ts";
import { runClusterControllers } from "../../src/standin/cluster/controllers/run-cluster-controllers.ts";
import { certificateAuthority } from "../../src/kube/certificates.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";
import { memoryJournal } from "../../src/ports/journal.ts";

/**
 * Runs the project's cluster controllers with an embedded server, as kube-controller-manager runs with the real one.
 * Returns a function that stops them.
 */
export function runControllersBeside(server: ApiServer, rootCa: string): () => Promise<void> {
  const ports = { clock: systemClock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
  const kube = createKubeClient({
    transport: server.as({ name: "system:kube-controller-manager", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "cluster-controllers",
  });
  const ending = new AbortController();
  const events = createEventRecorder({ ...ports, kube, component: "cluster-controllers" });
  const running = certificateAuthority({ name: "test-ca", ...ports }).then((authority) =>
    runClusterControllers({ ...ports, kube, events, rootCa, authority, nodeMonitorGraceSeconds: 1e6 }, ending.signal),
  );
  return async () => {
    ending.abort();
    await running;
  };
}
