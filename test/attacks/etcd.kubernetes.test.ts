import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request as plain } from "node:http";
import { request as secure } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kubernetesFolder } from "../../src/cli/kubernetes-binaries.ts";
import { clusterCredentials } from "../../src/standin/cluster/credentials.ts";
import { kubernetesProcesses } from "../../src/standin/cluster/kubernetes-processes.ts";
import { addressesOf, layoutOf, networkFor } from "../../src/standin/cluster/layout.ts";
import { systemClock, systemFiles, systemRandom } from "../../src/ports/node/index.ts";
import { hasKubernetes } from "../support/kubernetes/control-plane.ts";
import { untilSeen } from "../support/until-seen.ts";

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** Sends a request; `undefined`: it was not answered. */
function answerOf(
  url: string,
  {
    body,
    tls = {},
    ...more
  }: { method?: string; headers?: Record<string, string>; body?: Buffer | string; tls?: object } = {},
): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const outgoing = (url.startsWith("https:") ? secure : plain)(url, { ...more, ...tls, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.once("error", () => resolve(undefined));
      incoming.once("end", () =>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks) }),
      );
    });
    outgoing.once("error", () => resolve(undefined));
    outgoing.end(body);
  });
}

/** Fields of a protobuf message: numbers, and bytes. */
function message(fields: readonly (readonly [number: number, value: bigint | Buffer])[]): Buffer {
  const varint = (value: bigint): Buffer => {
    const bytes: number[] = [];
    let left = value;
    for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
    return Buffer.from([...bytes, Number(left)]);
  };
  return Buffer.concat(
    fields.flatMap(([number, value]) =>
      typeof value === "bigint"
        ? [varint(BigInt(number) << 3n), varint(value)]
        : [varint((BigInt(number) << 3n) | 2n), varint(BigInt(value.length)), value],
    ),
  );
}

/**
 * An entry for the log of etcd that writes a key, as a leader sends it to a follower.
 * Source of the fields: etcd-io/raft raftpb/raft.proto, etcd-io/etcd api/etcdserverpb/{raft_internal,rpc}.proto (main).
 */
function forged(to: bigint, after: { readonly index: bigint; readonly term: bigint }, key: string): Buffer {
  const put = message([
    [1, Buffer.from(key)],
    [2, Buffer.from("forged")],
  ]);
  const term = 1000n;
  const entry = message([
    [1, 0n],
    [2, term],
    [3, after.index + 1n],
    [
      4,
      message([
        [1, 7n],
        [4, put],
      ]),
    ],
  ]);
  return message([
    [1, 3n],
    [2, to],
    [3, 0xbadn],
    [4, term],
    [5, after.term],
    [6, after.index],
    [7, entry],
    [8, after.index + 1n],
  ]);
}

/** The store of a one-machine cluster that runs Kubernetes' own programs. */
describe.skipIf(!hasKubernetes)("etcd, and another user of the machine", () => {
  const directory = mkdtempSync(join(tmpdir(), "mco-etcd-"));
  const layout = layoutOf(directory);
  const address = addressesOf(networkFor(directory, 0)).apiServer;
  let etcd: ChildProcess;
  let credentials: { ca: string; cert: string; key: string };

  const rangeOf = async (key: string) => {
    const body = JSON.stringify({ key: btoa(key) });
    const answer = await answerOf(`https://${address}:2379/v3/kv/range`, { method: "POST", body, tls: credentials });
    return answer?.status === 200
      ? (JSON.parse(answer.body.toString()) as { kvs?: { value: string }[]; header: { raft_term: string } })
      : undefined;
  };

  beforeAll(async () => {
    mkdirSync(layout.logs, { recursive: true });
    const addresses = addressesOf(networkFor(directory, 0));
    const given = { files: systemFiles, clock: systemClock, random: systemRandom, layout, addresses };
    const parts = await kubernetesProcesses({
      ...given,
      credentials: await clusterCredentials(given),
      binaries: kubernetesFolder(process.env),
    });
    const own = parts.find(({ name }) => name === "etcd");
    etcd = spawn("setpriv", ["--pdeathsig", "TERM", "--", own?.program ?? "", ...(own?.args ?? [])], {
      stdio: "ignore",
    });
    const pki = (name: string) => readFileSync(join(layout.pki, name), "utf8");
    credentials = { ca: pki("etcd-ca.crt"), cert: pki("etcd-client.crt"), key: pki("etcd-client.key") };
    await untilSeen(
      "etcd answers",
      () => rangeOf("a"),
      (answer) => answer !== undefined,
    );
  });
  afterAll(async () => {
    const exit = once(etcd, "exit");
    etcd.kill("SIGTERM");
    await exit;
    rmSync(directory, { recursive: true, force: true });
  });

  test.for(["http", "https"])(
    "nobody without a certificate is taken for a peer, who writes what it likes into the log: %s [attack-etcd-1]",
    async (scheme) => {
      const peer = `${scheme}://${address}:2380`;
      const tls = { rejectUnauthorized: false };
      const members = await answerOf(`${peer}/members`, { tls });
      const cluster = String(members?.headers["x-etcd-cluster-id"] ?? "0");
      const [, id = "0"] = /"id":(\d+)/.exec(members?.body.toString() ?? "") ?? [];
      const headers = {
        "x-etcd-cluster-id": cluster,
        "x-server-from": "bad",
        "x-server-version": "3.6.0",
        "x-min-cluster-version": "3.0.0",
        "content-type": "application/protobuf",
      };
      // Where the log ends is a guess of a few hundred.
      const key = `/registry/forged-${scheme}`;
      const term = BigInt((await rangeOf("a"))?.header.raft_term ?? 2);
      for (let index = 1n; index < 40n; index += 1n)
        await answerOf(`${peer}/raft`, {
          method: "POST",
          headers,
          body: forged(BigInt(id), { index, term }, key),
          tls,
        });
      const after = await untilSeen(
        "etcd answers again",
        () => rangeOf(key),
        (answer) => answer !== undefined,
      );
      expect(after?.kvs ?? []).toEqual([]);
      expect(members?.status ?? 400).toBe(400);
    },
  );
});
