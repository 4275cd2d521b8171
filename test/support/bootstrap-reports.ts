import type { JournalEntry } from "../../src/api/books/report-table.ts";
import { namespace, objects } from "../../src/api/names.ts";
import {
  type BootstrapInput,
  type Bootstrapped,
  bootstrapController,
  bootstrapOperator,
} from "../../src/core/operator/bootstrap.ts";
import { bootstrapLines, handOverLine, serverUpLine } from "../../src/core/operator/bootstrap-journal.ts";
import { createReport } from "../../src/kube/report.ts";
import { builtInPools } from "../../src/operator/manifests.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock } from "../../src/ports/node/index.ts";
import { RequestReports } from "../../src/server/request-reports.ts";

const version = "1.0.0";
const options = { version, generatorVersion: version, image: "suite", builtInPools: builtInPools() };
const map = (name: string, data: Readonly<Record<string, string>>): BootstrapInput => ({
  place: `${name}.yaml`,
  object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data } as BootstrapInput["object"],
});
const inputs = [
  map(objects.osImageConfigMap, { releaseVersion: version, baseOSContainerImage: `os@sha256:${"0".repeat(64)}` }),
  map("kube-root-ca.crt", { "ca.crt": "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n" }),
];

/** Lines of a bootstrap by the programs that write them. */
export interface BootstrapReports {
  readonly operator: readonly JournalEntry[];
  readonly controller: readonly JournalEntry[];
  readonly server: readonly JournalEntry[];
  /** The last of them. */
  readonly handOver: readonly JournalEntry[];
}

/** What a bootstrap reports, by the functions of its programs: one machine of the control plane is served. */
export function bootstrapReports(): BootstrapReports {
  const ofCluster = (lines: readonly object[]) => lines.map((line) => ({ book: "cluster", ...line }) as JournalEntry);
  const asked = bootstrapOperator(inputs, options);
  const rendered = bootstrapController(
    filesOf(asked).map(({ path: place, object }) => ({ place, object })),
    options,
  );
  const pool = filesOf(rendered).find(({ path }) => path === "machine-pools/master.yaml")?.object as
    | { readonly spec?: { readonly configuration?: { readonly name?: string } } }
    | undefined;
  return {
    operator: ofCluster(bootstrapLines("operator", asked)),
    controller: ofCluster(bootstrapLines("controller", rendered)),
    server: [
      ...ofCluster([serverUpLine(22_623, "required")]),
      ...servedMasters(["master-0"], pool?.spec?.configuration?.name ?? ""),
    ],
    handOver: ofCluster([handOverLine([])]),
  };
}

/** What the bootstrap server reports of the machines that it gave a configuration. */
export function servedMasters(
  nodes: readonly string[],
  config: string,
  clock: Clock = systemClock,
): readonly JournalEntry[] {
  const journal = memoryJournal();
  const reports = new RequestReports({
    clock,
    report: createReport({ journal, log: silentLogger }),
    log: silentLogger,
    run: "server-1",
    chapter: "Bootstrap",
    isPool: () => true,
  });
  for (const node of nodes)
    reports.report({
      is: "served",
      status: 200,
      reason: "Served",
      requester: "192.0.2.10",
      pool: "master",
      config,
      version: "3.5.0",
      sizeBytes: 42_000,
      durationMs: 12,
      by: "token",
      node,
    });
  return journal.lines;
}

function filesOf(made: Bootstrapped): Extract<Bootstrapped, { verdict: "made" }>["files"] {
  if (made.verdict === "refused") throw new Error(made.problems.map(({ reason }) => reason).join("; "));
  return made.files;
}
