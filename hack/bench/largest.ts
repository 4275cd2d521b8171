import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";

export interface LargestMetrics {
  readonly rows: readonly LargestRow[];
}

/** One config, validated, rendered and planned in a process of its own. */
export interface LargestRow {
  readonly config: string;
  readonly bytes: number;
  /** What became of it: `rendered` or `refused`, and what the plan of a running machine says. */
  readonly outcome: string;
  readonly milliseconds: number;
  /** Most memory that the process ever had, MiB. */
  readonly peak: number;
}

const dataUrl = (bytes: Uint8Array) => `data:;base64,${Buffer.from(bytes).toString("base64")}`;
const mebibyte = 2 ** 20;

function config(files: readonly object[]): string {
  const value: MachineConfig = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name: "50-large", labels: { "machineconfiguration.openshift.io/role": "worker" } },
    spec: { config: { ignition: { version: "3.4.0" }, storage: { files } } },
  };
  return JSON.stringify(value);
}
const file = (path: string, contents: object) => ({ path, mode: 0o644, contents });

/** What etcd would still take, in the shapes that cost most, beside one small config as the baseline. */
function configs(): readonly (readonly [string, string])[] {
  return [
    ["one file of 6 bytes (baseline)", config([file("/etc/a", { source: "data:,server" })])],
    [
      "one file of 1.1 MiB, base64",
      config([file("/etc/a", { source: dataUrl(Buffer.alloc(1.1 * mebibyte, "setting = value\n")) })]),
    ],
    [
      "12,000 files",
      config(
        Array.from({ length: 12_000 }, (_, i) => file(`/etc/example/${i}.conf`, { source: `data:,value%20${i}` })),
      ),
    ],
    [
      "gzip of 16 MiB, the most that is decompressed",
      config([file("/etc/a", { compression: "gzip", source: dataUrl(gzipSync(Buffer.alloc(16 * mebibyte))) })]),
    ],
    [
      "gzip of 1 GiB",
      config([
        file("/etc/a", { compression: "gzip", source: dataUrl(gzipSync(Buffer.alloc(1024 * mebibyte), { level: 9 })) }),
      ]),
    ],
    [
      "100 files, each a gzip of 8 MiB",
      config(
        Array.from({ length: 100 }, (_, i) =>
          file(`/etc/${i}`, { compression: "gzip", source: dataUrl(gzipSync(Buffer.alloc(8 * mebibyte, `${i}`))) }),
        ),
      ),
    ],
  ];
}

export function measureLargest(): LargestMetrics {
  return {
    rows: configs().map(([name, text]) => {
      const answer = execFileSync(process.execPath, [join(import.meta.dirname, "decide-one.ts")], {
        input: text,
        encoding: "utf8",
        stdio: ["pipe", "pipe", "inherit"],
      });
      return {
        config: name,
        bytes: Buffer.byteLength(text),
        ...(JSON.parse(answer) as Pick<LargestRow, "outcome" | "milliseconds" | "peak">),
      };
    }),
  };
}
