import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { KubeObject } from "../../api/schema/object.ts";
import { memoryJournal } from "../../ports/journal.ts";
import { silentLogger } from "../../ports/logger.ts";
import { systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import type { Child, Exit, Processes } from "../../ports/process.ts";
import { deriveKey } from "../registry/node/derive-key.ts";
import { type ClusterRecord, layoutOf, readRecord } from "./layout.ts";
import { type UpOptions, runCluster } from "./up.ts";

/** Processes that do nothing: bootstrap commands end at once, as `exits` says, the others when they are told to. */
function fakeProcesses(
  exits: (words: readonly string[]) => number = () => 0,
): Processes & { readonly started: readonly string[]; readonly ended: readonly string[] } {
  const started: string[] = [];
  const ended: string[] = [];
  const spawn: Processes["spawn"] = (_command, args): Child => {
    const words = args.slice(1, 3).join(" ");
    started.push(words);
    const exited = Promise.withResolvers<Exit>();
    void exited.promise.then(() => ended.push(words));
    if (words === "operator bootstrap" || words === "controller bootstrap")
      exited.resolve({ code: exits(args), signal: undefined });
    return {
      pid: process.pid,
      exited: exited.promise,
      kill: () => exited.resolve({ code: undefined, signal: "SIGTERM" }),
    };
  };
  return { started, ended, spawn, run: () => Promise.reject(new Error("not used")) };
}

/** A cluster's folder, and runs of its supervisor one after the other. */
function clusterFolder() {
  const directory = mkdtempSync(join(tmpdir(), "mco-up-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const layout = layoutOf(directory);
  const handedOver: string[] = [];

  async function run(
    more: Partial<UpOptions>,
    during: (record: ClusterRecord) => Promise<void> | void,
  ): Promise<ReturnType<typeof fakeProcesses>> {
    const processes = fakeProcesses();
    const stop = new AbortController();
    const ready = Promise.withResolvers<ClusterRecord>();
    const whole = runCluster(
      {
        clock: systemClock,
        random: systemRandom,
        log: silentLogger,
        journal: memoryJournal(),
        layout,
        apiServer: { kind: "embedded" },
        controlPlane: 2,
        workers: 1,
        registry: false,
        bootstraps: true,
        files: systemFiles,
        processes,
        program: ["node", "mco.mjs"],
        environment: {},
        version: "1.0.0",
        pid: 0,
        portIsFree: () => Promise.resolve(true),
        serveControl: () => Promise.resolve(),
        afterRegistry: () => Promise.resolve(),
        deriveKey,
        afterApiServer: () => Promise.resolve([]),
        installed: () => [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "suite" } } as KubeObject],
        handOver: async (folder) => void handedOver.push(folder),
        forward: () => Promise.resolve({ port: 0 }),
        registerMachine: () => Promise.resolve(),
        issuePointer: () => Promise.resolve(undefined),
        onProgress: () => undefined,
        ...more,
      },
      stop.signal,
      (record) => ready.resolve(record),
    );
    try {
      await during(await Promise.race([ready.promise, whole.then(() => Promise.reject(new Error("it ended")))]));
    } finally {
      stop.abort(new Error("the test is over"));
      await whole;
    }
    return processes;
  }
  const install = (name: string) =>
    writeFileSync(join(layout.host(name), "installed.json"), JSON.stringify({ v: 1, installedBy: "test", at: "" }));
  const pointer = (name: string) => readFileSync(join(layout.host(name), "pointer.ign"), "utf8");
  const record = () => readRecord(systemFiles, layout);
  return { layout, run, install, pointer, record, handedOver };
}

const verbs = ["operator bootstrap", "controller bootstrap", "server bootstrap"];
const ofBootstrap = ({ started }: { readonly started: readonly string[] }) =>
  started.filter((words) => words.endsWith(" bootstrap"));

test("a new cluster is bootstrapped once: the control plane waits for its server, then the journal is handed over [cluster-up-1]", async () => {
  const { layout, run, install, pointer, record, handedOver } = clusterFolder();
  const processes = await run({}, async (found) => {
    expect(found.bootstrap).toBe("running");
    expect(found.processes.map(({ name }) => name)).toContain("bootstrap-server");
    const tokens = join(layout.bootstrap, "rendered", "provisioning-tokens");
    expect(readdirSync(tokens).sort()).toEqual(["master-0.json", "master-1.json"]);
    for (const name of ["master-0", "master-1"]) {
      const { metadata, spec } = JSON.parse(readFileSync(join(tokens, `${name}.json`), "utf8")) as {
        readonly metadata: { readonly name: string };
        readonly spec: object;
      };
      expect(spec).toMatchObject({ pool: "master", node: name, maxUses: 1 });
      expect(pointer(name)).toContain(`Bearer ${metadata.name}.`);
    }
    expect(() => pointer("worker-0")).toThrow("ENOENT");
    install("master-0");
    expect(handedOver).toEqual([]);
    install("master-1");
    await vi.waitFor(async () => expect(await record()).toMatchObject({ bootstrap: "done" }));
    expect(handedOver).toEqual([join(layout.bootstrap, "journal")]);
    expect((await record())?.processes.map(({ name }) => name)).not.toContain("bootstrap-server");
  });
  expect(ofBootstrap(processes)).toEqual(verbs);
  expect(processes.ended.indexOf("server bootstrap")).toBeLessThan(processes.ended.indexOf("host run"));

  const again = await run({}, () => undefined);
  expect(ofBootstrap(again)).toEqual([]);
  expect(handedOver).toHaveLength(1);
  expect(await record()).toMatchObject({ bootstrap: "done" });
});

test("a bootstrap that was interrupted is repeated by the next run, with new tokens for the machines that wait [cluster-up-2]", async () => {
  const { run, install, pointer, record, handedOver } = clusterFolder();
  let first = "";
  await run({}, () => {
    install("master-0");
    first = pointer("master-1");
  });
  expect(await record()).toMatchObject({ bootstrap: "running" });
  expect(handedOver).toEqual([]);
  const processes = await run({}, async () => {
    expect(pointer("master-1")).not.toBe(first);
    install("master-1");
    await vi.waitFor(async () => expect(await record()).toMatchObject({ bootstrap: "done" }));
  });
  expect(ofBootstrap(processes)).toEqual(verbs);
  expect(handedOver).toHaveLength(1);
});

test("a cluster without the operator, or that an earlier version started, is not bootstrapped [cluster-up-3]", async () => {
  const { layout, run, record } = clusterFolder();
  const without = await run({ bootstraps: false }, () => undefined);
  expect(ofBootstrap(without)).toEqual([]);
  expect((await record())?.hosts.some(({ bootstraps }) => bootstraps)).toBe(false);
  // Its record is as an earlier version writes it.
  expect(ofBootstrap(await run({}, () => undefined))).toEqual([]);
  expect(readdirSync(layout.directory)).not.toContain("bootstrap");
});

test("a bootstrap command that refuses ends the start, with its name and its log [cluster-up-4]", async () => {
  const { layout, run } = clusterFolder();
  const processes = fakeProcesses((words) => (words.includes("controller") ? 1 : 0));
  await expect(run({ processes }, () => undefined)).rejects.toMatchObject({
    code: "MCO_CLUSTER_START_FAILED",
    facts: { process: "controller bootstrap", exitCode: 1, log: join(layout.logs, "bootstrap.log") },
  });
  expect(processes.started).not.toContain("server bootstrap");
});

test("what an earlier release unpacked of images loses its set-user-ID bits once [cluster-up-set-id-1]", async () => {
  const { layout, run, record } = clusterFolder();
  const cleared: string[] = [];
  const clearSetId = (folder: string) => Promise.resolve(void cleared.push(folder.slice(layout.directory.length)));
  await run({ clearSetId }, () => undefined);
  // This release unpacks none.
  expect(cleared).toEqual([]);
  const { withoutSetId, ...earlier } = (await record()) as ClusterRecord;
  expect(withoutSetId).toBe(true);
  writeFileSync(layout.record, JSON.stringify(earlier));
  for (let turn = 0; turn < 2; turn += 1) await run({ clearSetId }, () => undefined);
  expect(cleared).toEqual([
    "/os",
    ...["master-0", "master-1", "worker-0"].map((name) => `/hosts/${name}/sysroot/deploy`),
  ]);
});

test("what a start put back of the user's changes is shown and recorded, until the next start [cluster-up-5]", async () => {
  const { layout, run, record } = clusterFolder();
  const shown: string[] = [];
  const start = (putBack: readonly string[], during: (found: ClusterRecord) => Promise<void> | void) =>
    run(
      {
        registry: true,
        bootstraps: false,
        afterApiServer: () => Promise.resolve(putBack),
        onProgress: (line) => void shown.push(line),
      },
      during,
    );
  await start([], ({ notices }) => expect(notices).toBeUndefined());
  const users = join(layout.registry, "users.json");
  writeFileSync(users, JSON.stringify({ users: [] }));
  const putBack = "a Secret was put back";
  await start([putBack], async ({ notices }) => {
    expect(notices).toEqual([
      expect.stringContaining(`user builder in ${users} was put back`),
      expect.stringContaining(`user puller in ${users} was put back`),
      putBack,
    ]);
    expect(shown).toEqual(expect.arrayContaining([...(notices ?? [])]));
    expect((await record())?.notices).toEqual(notices);
  });
  await start([], ({ notices }) => expect(notices).toBeUndefined());
});
