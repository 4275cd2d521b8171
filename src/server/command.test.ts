import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { serveApiServer } from "../standin/apiserver/node/serve.ts";
import { MachineStateJournal } from "../api/books/machine-state-journal.ts";
import { kubeconfigText } from "../standin/cluster/credentials.ts";
import { connectTo } from "../cli/connect.ts";
import { readKubeconfig } from "../kube/kubeconfig.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemFiles, systemRandom } from "../ports/node/index.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { ServerHarness, ignition, send } from "../../test/support/server-harness.ts";

const main = join(import.meta.dirname, "../cli/main.ts");

test("mco server start serves a cluster over TLS, and reports it in its journal", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-server-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const authority = await testAuthority();
  const at = (name: string) => join(folder, name);
  const stopping = new AbortController();
  onTestFinished(() => stopping.abort());
  const { url } = await serveApiServer({
    file: at("store.db"),
    host: "127.0.0.1",
    port: 0,
    tls: await authority.server("127.0.0.1"),
    clusterCA: authority.certificate,
    tokenKey: await authority.signingKey(),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    signal: stopping.signal,
  });
  writeFileSync(
    at("kubeconfig"),
    kubeconfigText({
      server: url,
      ca: authority.certificate,
      user: "admin",
      pair: await authority.client("admin", ["system:masters"]),
    }),
  );
  const { kube, close } = connectTo(await readKubeconfig(systemFiles, at("kubeconfig")), { component: "test" });
  onTestFinished(close);
  const harness = await ServerHarness.over(kube, authority);
  await kube.create(MachineStateJournal, {
    apiVersion: MachineStateJournal.apiVersion,
    kind: MachineStateJournal.kind,
    metadata: { name: "server" },
    spec: { lines: [], last: [] },
  });
  const shown = await authority.server("127.0.0.1");
  writeFileSync(at("tls.crt"), shown.certificate);
  writeFileSync(at("tls.key"), shown.key);

  const child = spawn(
    process.execPath,
    [
      main,
      "server",
      "start",
      "--kubeconfig",
      at("kubeconfig"),
      "--apiserver-url",
      url,
      "--cert",
      at("tls.crt"),
      "--key",
      at("tls.key"),
      "--secure-port",
      "0",
      "--address",
      "127.0.0.1",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let log = "";
  const port = await new Promise<number>((resolve, reject) => {
    child.once("exit", () => reject(new Error(log)));
    child.stderr.on("data", (chunk: Buffer) => {
      log += chunk.toString();
      const [, found] =
        /"port":(\d+)[^\n]*"serving configurations"|"serving configurations"[^\n]*"port":(\d+)/.exec(log) ?? [];
      if (found !== undefined) resolve(Number(found));
    });
  });
  const ask = (more: object = {}) =>
    send(port, authority.certificate, { headers: { accept: ignition("3.4.0") }, ...more });
  while ((await ask({ path: "/readyz" })).status !== 200);
  const token = await harness.token("cmd", "c", { maxUses: 1 });
  expect((await ask()).status).toBe(401);
  expect((await ask({ token })).status).toBe(200);
  expect(await harness.uses(token)).toBe(1);
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  const journal = await kube.get(MachineStateJournal, { name: "server" });
  expect(journal?.spec.lines.map(({ reason }) => reason)).toEqual(
    expect.arrayContaining(["Started", "Served", "ServeRefused", "Stopped"]),
  );
  expect(JSON.stringify(journal) + log).not.toContain("c".repeat(32));
});

test.for([{ args: [] }, { args: ["--apiserver-url", "nowhere"] }])(
  "mco server start $args says that it has to know where machines reach the API server",
  async ({ args }) => {
    const child = spawn(process.execPath, [main, "server", "start", ...args], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(64);
    expect(said).toContain("--apiserver-url is required");
  },
);
