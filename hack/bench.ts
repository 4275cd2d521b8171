/**
 * Measures what docs/benchmarks.md shows. `--quick` is a fast pass, `--only
 * up,rollOuts,decisions,largest,settings,machines,apiServer,books,builds,server,joins,estimates,controlPlane` a part of it (`scale` only
 * when it is named), `--sizes 100,1000` how many machines the control plane gets, `--profile FOLDER` where its
 * processes leave processor profiles, `--date YYYY-MM-DD` what the page is dated with, `--beside TEXT` what else the
 * machine did meanwhile. A quick pass prints and writes nothing; a full one writes the page and its JSON, where
 * sections that were not measured keep what they have.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureApiServer } from "./bench/api-server.ts";
import { measureBooks } from "./bench/books.ts";
import { measureBuilds } from "./bench/builds.ts";
import { measureRollOuts, measureUp } from "./bench/cluster.ts";
import { measureControlPlane } from "./bench/control-plane/roll-out.ts";
import { measureDecisions } from "./bench/decisions.ts";
import { measureEstimates } from "./bench/estimates.ts";
import { measureJoins } from "./bench/joins.ts";
import { measureLargest } from "./bench/largest.ts";
import { measureMachines } from "./bench/machines.ts";
import { measureSettings } from "./bench/settings.ts";
import { measureServer } from "./bench/server.ts";
import { useOwnState } from "./tests-state.ts";
import { type Environment, type Report, type Section, page } from "./bench/page.ts";

useOwnState();

const sections = [
  "up",
  "rollOuts",
  "decisions",
  "largest",
  "settings",
  "machines",
  "apiServer",
  "books",
  "builds",
  "server",
  "joins",
  "estimates",
  "controlPlane",
  "scale",
] as const;
const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", default: sections.filter((name) => name !== "scale").join(",") },
    sizes: { type: "string", default: "100,1000" },
    profile: { type: "string" },
    date: { type: "string" },
    beside: { type: "string" },
  },
});
const wanted = values.only.split(",");
const unknown = wanted.filter((name) => !sections.some((section) => section === name));
if (unknown.length > 0) throw new Error(`--only knows ${sections.join(", ")}; not ${unknown.join(", ")}`);
const { quick } = values;

const docs = join(import.meta.dirname, "../docs");
const began = performance.now();
const tell = (line: string) =>
  process.stdout.write(`${((performance.now() - began) / 1000).toFixed(1).padStart(7)} s  ${line}\n`);

const environment: Environment = {
  cpus: cpus().length,
  cpuModel: cpus()[0]?.model.trim() ?? "unknown",
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  os: `${type()} ${release().replace(/-.*/, "")}`,
  date: values.date ?? new Date().toISOString().slice(0, 10),
  ...(values.beside === undefined ? {} : { beside: values.beside }),
};

const podsPerMachine = 10;

type Name = (typeof sections)[number];

async function section<Metrics, Key extends Name>(
  name: Key,
  measure: () => Promise<Metrics> | Metrics,
): Promise<{ readonly [K in Key]?: Section<Metrics> }> {
  if (!wanted.includes(name)) return {};
  tell(`measuring: ${name}`);
  const [loadAverage = 0] = loadavg();
  return {
    [name]: {
      environment: { ...environment, loadAverage: Math.round(loadAverage * 10) / 10 },
      metrics: await measure(),
    },
  } as { readonly [K in Key]: Section<Metrics> };
}

const measured = {
  ...(await section("decisions", () => measureDecisions(quick ? 0.5 : 5))),
  ...(await section("largest", () => measureLargest())),
  ...(await section("settings", () => measureSettings())),
  ...(await section("machines", () =>
    measureMachines(
      quick
        ? { runs: 1, looks: 10, seconds: 0.5, mebibytes: 10, idleSeconds: 5 }
        : { runs: 5, looks: 200, seconds: 3, mebibytes: 100, idleSeconds: 60 },
      tell,
    ),
  )),
  ...(await section("apiServer", () =>
    measureApiServer(
      quick
        ? { creates: 500, nodes: 200, lists: 3, watchers: 20, watchedWrites: 20 }
        : { creates: 5000, nodes: 5000, lists: 20, watchers: 1000, watchedWrites: 50 },
      tell,
    ),
  )),
  ...(await section("books", () =>
    measureBooks(
      quick
        ? { nodes: 50, reads: 10, seconds: 0.3, idleSeconds: 20 }
        : { nodes: 500, reads: 100, seconds: 3, idleSeconds: 300 },
      tell,
    ),
  )),
  ...(await section("builds", async () => (await measureBuilds({ files: quick ? 2 : 5 }, tell)) ?? "absent")),
  ...(await section("server", () =>
    measureServer(quick ? { seconds: 1, clients: [1, 32] } : { seconds: 10, clients: [1, 32, 1000] }, tell),
  )),
  ...(await section("joins", () => measureJoins(quick ? 50 : 1000, tell))),
  ...(await section("estimates", () => measureEstimates(quick ? 2 : 20, tell))),
  ...(await section("up", () => measureUp(quick ? 1 : 3, tell))),
  ...(await section("rollOuts", () =>
    measureRollOuts(
      quick ? { writes: 3, idleSeconds: 20, idleSteps: 2 } : { writes: 10, idleSeconds: 180, idleSteps: 6 },
      tell,
    ),
  )),
  ...(await section("controlPlane", () =>
    measureControlPlane(quick ? [20] : values.sizes.split(",").map(Number), podsPerMachine, tell, values.profile),
  )),
  ...(await section("scale", () => measureControlPlane(quick ? [100] : [5000], podsPerMachine, tell, values.profile))),
};

const kept =
  quick || !existsSync(join(docs, "benchmarks.json"))
    ? {}
    : (JSON.parse(readFileSync(join(docs, "benchmarks.json"), "utf8")) as Report);
const report: Report = { ...kept, ...measured, apiVersion: "bench.mco/v1" };
if (!quick) {
  writeFileSync(join(docs, "benchmarks.json"), `${JSON.stringify(report, undefined, 2)}\n`);
  writeFileSync(join(docs, "benchmarks.md"), page(report));
}
process.stdout.write(`\n${page(report)}`);
process.exit(0);
