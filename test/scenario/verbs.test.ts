import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { filesSpec } from "../support/command-line.ts";
import { endScenario } from "../support/end-scenario.ts";
import { TestCluster, hasApiServer } from "../support/test-cluster.ts";

/** A command line as a user types it, `FOLDER` being one with manifests, and its exit code. */
type Row = readonly [line: string, code: number];

/** Without a cluster. */
const offline: readonly Row[] = [
  ["", 0],
  ["help", 0],
  ["help output", 0],
  ["help MCO_USAGE", 0],
  ["help outptu", 64],
  ["statsu", 64],
  ["version", 0],
  ["version --json", 0],
  ["version --jsno", 64],
  ["completion bash", 0],
  ["completion zsh", 0],
  ["completion fish", 0],
  ["completion candidates -- pl", 0],
  ["completion tcsh", 64],
  ["completion", 64],
  ["validate FOLDER/good.yaml", 0],
  ["validate FOLDER/bad.yaml", 1],
  ["validate FOLDER/absent.yaml", 1],
  ["validate", 64],
  ["validate FOLDER/good.yaml --format yaml", 64],
  ["render worker -f FOLDER/good.yaml", 0],
  ["render worker -f FOLDER/bad.yaml", 1],
  ["render worker -f", 64],
  ["diff FOLDER/good.yaml FOLDER/good.yaml", 0],
  ["diff FOLDER/good.yaml FOLDER/other.yaml", 2],
  ["diff FOLDER/good.yaml FOLDER/absent.yaml -f FOLDER/good.yaml", 1],
  ["diff", 64],
  ["blame /etc/good -f FOLDER/good.yaml", 0],
  ["blame /etc/absent -f FOLDER/good.yaml", 1],
  ["blame", 64],
  ["plan --offline -f FOLDER/good.yaml", 2],
  ["plan --offline -f FOLDER/bad.yaml", 1],
  ["plan --offline", 64],
  ["down --dir FOLDER/none", 0],
  ["down --dir", 64],
  ["up --workers -1", 64],
  ["up --workers=many", 64],
  ["up --dir FOLDER/link", 1],
  ["status --kubeconfig FOLDER/absent", 1],
  ["host list --dir FOLDER/none", 1],
];

/** With a cluster of one machine in each pool, in this order. */
const live: readonly Row[] = [
  ["status", 0],
  ["status --json", 0],
  ["status worker", 64],
  ["explain pool/worker", 0],
  ["explain node/worker-0 pool/master --json", 0],
  ["explain node/absent", 1],
  ["explain node", 64],
  ["explain", 64],
  ["book", 0],
  ["book node/worker-0", 0],
  ["book node/absent", 1],
  ["book --chapter", 64],
  ["timeline pool/worker", 0],
  ["timeline pool/absent", 1],
  ["timeline", 64],
  ["plan -f FOLDER/good.yaml", 2],
  ["plan -f FOLDER/good.yaml --json", 2],
  ["plan -f FOLDER/of-no-pool.yaml", 0],
  ["plan --delete absent", 1],
  ["plan -f FOLDER/bad.yaml", 1],
  ["plan", 64],
  ["render worker", 0],
  ["render absent", 1],
  ["diff FOLDER", 1],
  ["blame /etc/kubernetes/kubelet.conf", 0],
  ["blame /etc/absent", 1],
  ["build", 0],
  ["build status", 0],
  ["build status absent", 1],
  ["build plan absent", 1],
  ["build logs worker", 1],
  ["build prune --dry-run", 0],
  ["build ponder", 64],
  ["build retry", 64],
  ["node list", 0],
  ["node list --json", 0],
  ["node release absent", 1],
  ["node release", 64],
  ["node rename a b", 64],
  ["token list", 0],
  ["token create --pool absent", 1],
  ["token revoke absent", 1],
  ["token create", 64],
  ["token", 64],
  ["host list", 0],
  ["host fail absent", 1],
  ["host fail", 64],
  ["host explode worker-0", 64],
  ["up", 1],
];

const verbOf = (line: string): string => line.split(" ")[0] ?? "";
/** Codes that no line here shows: the cluster of this file is up, and a build is planned in [cli-build-commands-5]. */
const elsewhere = ["up 0", "build 2"];
const manifest = (name: string, spec: unknown, role = "worker") =>
  stringify({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name, labels: { "machineconfiguration.openshift.io/role": role } },
    spec,
  });

test("each command that people type has a line for each of its exit codes [scenario-verbs-1]", () => {
  const missing = Object.entries(commands).flatMap(([verb, { kind, exitCodes = [], flags, verbs }]) => {
    if (kind !== "people") return [];
    const codes = new Set(["0", ...exitCodes.map(({ code }) => code.split(" ").at(-1) ?? "")]);
    if (flags !== undefined || verbs !== undefined) codes.add("64");
    const shown = [...offline, ...live].filter(([line]) => verbOf(line) === verb).map(([, code]) => String(code));
    return [...codes].filter((code) => !shown.includes(code)).map((code) => `${verb} ${code}`);
  });
  expect(missing).toEqual(elsewhere);
});

describe.skipIf(!hasApiServer)("exit codes", () => {
  let cluster: TestCluster;
  let folder: string;

  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
    folder = join(cluster.directory, "manifests");
    mkdirSync(folder);
    writeFileSync(join(folder, "good.yaml"), manifest("50-good", filesSpec({ "/etc/good": "a" })));
    writeFileSync(join(folder, "other.yaml"), manifest("50-good", filesSpec({ "/etc/good": "b" })));
    writeFileSync(join(folder, "of-no-pool.yaml"), manifest("50-none", filesSpec({ "/etc/good": "b" }), "none"));
    symlinkSync("/etc", join(folder, "link"));
    writeFileSync(join(folder, "bad.yaml"), manifest("50-bad", { config: { ignition: { version: "1.0.0" } } }));
  });
  afterAll(() => endScenario(cluster));

  const played = async (rows: readonly Row[], play: (words: readonly string[]) => ReturnType<TestCluster["mco"]>) => {
    const wrong: string[] = [];
    for (const [line, code] of rows) {
      const words = line.replaceAll("FOLDER", folder).split(" ");
      const result = await play(line === "" ? [] : words);
      if (result.code !== code)
        wrong.push(
          `mco ${line}: ${result.code}, not ${code}\n${result.stdout.slice(-600)}${result.stderr.slice(-600)}`,
        );
    }
    return wrong;
  };

  test("are those of the documentation without a cluster [scenario-verbs-2]", async () => {
    expect(await played(offline, (words) => cluster.offline(...words))).toEqual([]);
  });

  test("are those of the documentation beside a cluster [scenario-verbs-3]", async () => {
    expect(await played(live, (words) => cluster.mco(words))).toEqual([]);
  });
});
