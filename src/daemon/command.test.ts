import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { kubeconfigText } from "../standin/cluster/credentials.ts";
import { testAuthority } from "../../test/support/test-pki.ts";

const main = join(import.meta.dirname, "../cli/main.ts");

test("a daemon runs although another program of the machine has its metrics port [attack-endpoints-2]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mco-daemon-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const authority = await testAuthority();
  mkdirSync(join(folder, "rootfs"));
  writeFileSync(join(folder, "state.json"), "{}");
  const pair = await authority.client("admin", ["system:masters"]);
  const server = "https://127.0.0.1:1";
  writeFileSync(join(folder, "kubeconfig"), kubeconfigText({ server, ca: authority.certificate, user: "admin", pair }));
  const other = createServer();
  onTestFinished(() => void other.close());
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  const args = ["--node-name", "w1", "--root-mount", join(folder, "rootfs"), "--kubelet-healthz-enabled", "false"];
  const flags = [...args, "--kubeconfig", join(folder, "kubeconfig"), "--metrics-url", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, [main, "daemon", "start", ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  const seen = new Promise<string>((resolve) => {
    child.stderr.on("data", (bytes: Buffer) => {
      log += bytes.toString();
      if (log.includes("cannot listen, trying again")) resolve("tries again");
    });
    child.once("exit", (code) => resolve(`ended with ${code}: ${log}`));
  });
  expect(await seen).toBe("tries again");
});
