import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import type { Summary } from "./statistics.ts";

/** One load on the config server. */
export interface ServerLoadMetrics {
  readonly clients: number;
  readonly encoding: "identity" | "gzip";
  readonly answerBytes: number;
  readonly answersPerSecond: number;
  readonly ms: { readonly median: number; readonly p99: number };
  /** Processor time of the server's process for one answer. */
  readonly cpuMs: number;
  /** Resident memory of the server's process at the end, MiB. */
  readonly resident: number;
}

export interface ServerMetrics {
  readonly configBytes: number;
  readonly seconds: number;
  readonly loads: readonly ServerLoadMetrics[];
  /** The same, with every answer made when it is asked for. */
  readonly baseline: ServerLoadMetrics;
}

/**
 * Text as configuration files have it: comments and settings, of which many files have the same, so that gzip makes a
 * small part of it.
 */
function text(bytes: number, seed: number): string {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  const next = (most: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
  const words =
    "enabled disabled server listen timeout option path /etc/kubernetes kubelet crio unit after requires wants metric default limit cgroup systemd interface route".split(
      " ",
    );
  const word = (index: number) => words[index % words.length] ?? "";
  let made = "";
  while (made.length < bytes) {
    const line = next(300);
    made +=
      line % 3 === 0
        ? `# The ${word(line)} of the ${word(line + 5)} is for the ${word(line * 7)} alone, and nothing else reads it.\n`
        : `${word(line)}.${word(line * 3)} = ${word(line * 5)} ${next(4) === 0 ? next(1000) : line}\n`;
  }
  return made.slice(0, bytes);
}

/** 250 files and 60 units, 1.2 MiB as JSON. */
function config(): MachineConfig {
  const files = Array.from({ length: 250 }, (_, index) => ({
    path: `/etc/bench/${index}.conf`,
    mode: 0o644,
    overwrite: true,
    contents: { source: encodeDataUrl(text(3050, index)) },
  }));
  const units = Array.from({ length: 60 }, (_, index) => ({
    name: `bench-${index}.service`,
    enabled: true,
    contents: `[Service]\nExecStart=/bin/true\n# ${text(1500, 1000 + index).replaceAll("\n", "\n# ")}\n[Install]\nWantedBy=multi-user.target\n`,
  }));
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: `rendered-worker-${"0".repeat(32)}` },
    spec: { osImageURL: "", config: { ignition: { version: "3.5.0" }, storage: { files }, systemd: { units } } },
  } as unknown as MachineConfig;
}

const heard = <T>(child: ChildProcess): Promise<T> =>
  new Promise((resolve, reject) => {
    const ended = () => reject(new Error(`a process of the measurement ended with ${child.exitCode}`));
    if (child.exitCode !== null) return ended();
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message as T);
    });
    return undefined;
  });

interface Usage {
  readonly cpuMs: number;
  readonly rssBytes: number;
}
interface Done {
  readonly answers: number;
  readonly answersPerSecond: number;
  readonly milliseconds: Summary;
  readonly p99: number;
  readonly bytes: number;
}

async function usageOf(server: ChildProcess): Promise<Usage> {
  const usage = heard<Usage>(server);
  server.send({ ask: "usage" });
  return usage;
}

const rounded = (value: number) => Number(value.toPrecision(3));

/** The config server in one process, clients in another, over TLS on loopback: they share the processors. */
export async function measureServer(
  { seconds, clients }: { readonly seconds: number; readonly clients: readonly number[] },
  tell: (line: string) => void,
): Promise<ServerMetrics> {
  const folder = mkdtempSync(join(tmpdir(), "mco-bench-"));
  try {
    const authority = await testAuthority();
    const shown = await authority.server("127.0.0.1");
    const machineConfig = JSON.stringify(config());
    writeFileSync(join(folder, "tls.crt"), shown.certificate);
    writeFileSync(join(folder, "tls.key"), shown.key);
    writeFileSync(join(folder, "config.json"), machineConfig);

    const measured = async (
      server: ChildProcess,
      port: number,
      count: number,
      encoding: ServerLoadMetrics["encoding"],
    ): Promise<ServerLoadMetrics> => {
      const load = fork(join(import.meta.dirname, "load-configs.ts"), { stdio: ["pipe", "inherit", "inherit", "ipc"] });
      const exited = new Promise((resolve) => load.once("exit", resolve));
      const warm = heard(load);
      load.stdin?.end(
        JSON.stringify({
          port,
          ca: authority.certificate,
          clients: count,
          gzip: encoding === "gzip",
          milliseconds: seconds * 1000,
        }),
      );
      await warm;
      const before = await usageOf(server);
      const done = heard<Done>(load);
      load.send({ is: "go" });
      const { answers, answersPerSecond, milliseconds, p99, bytes } = await done;
      const after = await usageOf(server);
      await exited;
      tell(
        `${encoding}, ${count} clients: ${Math.round(answersPerSecond)} answers a second, ${rounded((after.cpuMs - before.cpuMs) / answers)} ms of processor time each`,
      );
      return {
        clients: count,
        encoding,
        answerBytes: bytes,
        answersPerSecond: rounded(answersPerSecond),
        ms: { median: milliseconds.median, p99: rounded(p99) },
        cpuMs: rounded((after.cpuMs - before.cpuMs) / answers),
        resident: Math.round(after.rssBytes / 2 ** 20),
      };
    };
    const during = async <T>(
      how: "keeps" | "renders",
      work: (server: ChildProcess, port: number) => Promise<T>,
    ): Promise<T> => {
      const server = fork(join(import.meta.dirname, "serve-configs.ts"), [folder, how], {
        stdio: ["ignore", "inherit", "inherit", "ipc"],
      });
      try {
        const { port } = await heard<{ readonly port: number }>(server);
        return await work(server, port);
      } finally {
        server.disconnect();
      }
    };
    tell("every answer made when it is asked for");
    const baseline = await during("renders", (server, port) => measured(server, port, 1, "identity"));
    const loads = await during("keeps", async (server, port) => {
      const all: ServerLoadMetrics[] = [];
      for (const encoding of ["identity", "gzip"] as const)
        for (const count of clients) all.push(await measured(server, port, count, encoding));
      return all;
    });
    return { configBytes: machineConfig.length, seconds, loads, baseline };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
