/**
 * The other process of the config server's measurement: serves one pool over TLS from the folder that is named, answers
 * `{"ask":"usage"}` on its channel, ends with it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { tlsOfFlags } from "../../src/core/certificates/tls-profile.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { configListen, systemClock, systemFiles, systemRandom } from "../../src/ports/node/index.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import type { ConfigSource, PoolLookup } from "../../src/server/config-source.ts";
import { runServer } from "../../src/server/run-server.ts";

const [folder = "", keeping = "keeps"] = process.argv.slice(2);
const machineConfig = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as MachineConfig;
const controllerConfig = {
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "ControllerConfig",
  metadata: { name: "machine-config-controller" },
  spec: { kubeAPIServerServingCAData: btoa("x".repeat(4000)), cloudProviderCAData: null },
} as unknown as ControllerConfig;
const look: PoolLookup = {
  verdict: "snapshot",
  snapshot: {
    config: machineConfig.metadata.name,
    because: "it is the only one",
    version: "1",
    inputs: {
      machineConfig,
      controllerConfig,
      image: undefined,
      kubeconfig: "kind: Config\n".repeat(100),
      registryCertificates: new Map(),
      mode: "cluster",
    },
  },
};
const source: ConfigSource = {
  mode: "cluster",
  missing: () => [],
  pools: () => ["worker"],
  pool: (name) => (name === "worker" ? look : { verdict: "absent" }),
  onChange: () => () => undefined,
};

const decided = tlsOfFlags(undefined, undefined);
if (decided.verdict === "refused") throw new Error(decided.reason);
const stopping = new AbortController();
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpuMs: (user + system) / 1000, rssBytes: process.memoryUsage.rss() });
});
process.once("disconnect", () => process.exit(0));
await runServer(
  {
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    journal: memoryJournal(),
    identity: "bench",
    version: "bench",
    source,
    runSource: () => Promise.resolve(),
    tokens: undefined,
    places: undefined,
    access: "insecure",
    files: systemFiles,
    listen: configListen,
    host: "127.0.0.1",
    port: 0,
    tls: { paths: { certificate: join(folder, "tls.crt"), key: join(folder, "tls.key") }, settings: decided.settings },
    // All clients of a measurement have one address, and ask again before the answer before is known to have arrived.
    limits: { burst: 1e9, perSecond: 1e9, answers: 1e9 },
    connections: { idleMs: 60_000, headersMs: 60_000 },
    keeps: keeping !== "renders",
    onListening: ({ port }) => process.send?.({ port }),
  },
  stopping.signal,
);
