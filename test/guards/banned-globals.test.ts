import { expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/** Where code reaches outside the process: drivers, and the composition root. */
const drivers = [
  "src/ports/node/",
  "src/host/directory/",
  "src/host/rpm-ostree/",
  "src/kube/node/",
  "src/registry/node/",
  "src/standin/apiserver/node/",
  "src/standin/registry/node/",
  "src/cli/",
];

/** Files with one exception each, and why. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  // Private keys must come from the machine's own generator; a simulation does not need them.
  "src/kube/certificates.ts": ["crypto randomness"],
};

const bans: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    "the clock",
    /\bDate\.now\b|\bnew Date\(\s*\)|\bDate\(\s*\)|\bperformance\b\s*\.|\bprocess\.hrtime\b|\bTemporal\.Now\b/,
  ],
  [
    "timers",
    /\bset(Timeout|Interval|Immediate)\b|\bclear(Timeout|Interval|Immediate)\b|\bqueueMicrotask\b|\bAbortSignal\.timeout\b|\bprocess\.nextTick\b/,
  ],
  ["the network", /\bfetch\s*\(|\bnew WebSocket\b|\bXMLHttpRequest\b/],
  ["chance", /\bMath\.random\b/],
  ["crypto randomness", /\brandomUUID\b|\bgetRandomValues\b|\brandomBytes\b|\bgenerateKey\b/],
  ["the environment", /\bprocess\.(env|argv|cwd|exit|kill|on|pid|stdout|stderr|stdin)\b/],
];

const bannedModules =
  /^node:(fs|fs\/promises|net|tls|http|https|http2|dgram|dns|child_process|worker_threads|os|timers|timers\/promises|sqlite|process|perf_hooks|crypto)$/;

test("outside drivers, nothing reads a clock, sets a timer, opens a file or a socket, or draws random numbers", () => {
  const offences = sourceFiles()
    .filter(({ path }) => !drivers.some((folder) => path.startsWith(folder)))
    .flatMap((file) => [
      ...bans
        .filter(([name, pattern]) => pattern.test(file.code) && exceptions[file.path]?.includes(name) !== true)
        .map(([name]) => `${file.path} uses ${name}`),
      ...file.imports
        .filter(({ specifier }) => bannedModules.test(specifier))
        .map(({ specifier }) => `${file.path} imports ${specifier}`),
    ]);
  expect(offences).toEqual([]);
});

test("the guard finds what it bans", () => {
  const planted = "const a = Date.now(); setTimeout(f, 1); Math.random(); fetch(x); process.env.A; randomUUID();";
  expect(bans.filter(([, pattern]) => pattern.test(planted)).map(([name]) => name)).toEqual(bans.map(([name]) => name));
  expect(bannedModules.test("node:fs/promises")).toBe(true);
});
