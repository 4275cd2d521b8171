/**
 * Writes `src/core/kubelet/feature-gates.ts`: the feature gates of the kubelet whose judgement `hack/go-kubelet` builds.
 * `make kubelet-gates` runs it; it needs Go. `--check` needs none: it compares the release in the file with the one in
 * go.mod.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface Gate {
  readonly name: string;
  readonly default: boolean;
  readonly locked: boolean;
  readonly stage: string;
}

const root = join(import.meta.dirname, "..");
const output = join(root, "src/core/kubelet/feature-gates.ts");
const release = /k8s\.io\/kubernetes (v[\d.]+)/.exec(readFileSync(join(root, "hack/go-kubelet/go.mod"), "utf8"))?.[1];
if (release === undefined) throw new Error("hack/go-kubelet/go.mod names no release of Kubernetes");

if (process.argv.includes("--check")) {
  if (!readFileSync(output, "utf8").includes(`Kubernetes ${release};`)) {
    console.error(`${output} is not of Kubernetes ${release}: run 'make kubelet-gates'`);
    process.exitCode = 1;
  }
} else {
  const program = execFileSync(join(root, "hack/go-kubelet/build"), { encoding: "utf8" }).trim();
  const gates = execFileSync(program, ["gates"], { encoding: "utf8" })
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Gate);
  const list = (wanted: (gate: Gate) => boolean) =>
    JSON.stringify(gates.filter(wanted).map(({ name }) => name)).replaceAll(",", ", ");
  writeFileSync(
    output,
    `/**
 * The feature gates that a kubelet knows, from Kubernetes ${release}; \`make kubelet-gates\` writes this file. A gate that is in
 * no list of a stage is generally available or deprecated.
 */
export const featureGates = {
  /** On where nothing sets them. */
  on: ${list((gate) => gate.default)},
  off: ${list((gate) => !gate.default)},
  /** They have their default for ever. */
  locked: ${list((gate) => gate.locked)},
  /** What \`AllAlpha\` sets. */
  alpha: ${list((gate) => gate.stage === "ALPHA")},
  /** What \`AllBeta\` sets. */
  beta: ${list((gate) => gate.stage === "BETA")},
} as const;
`,
  );
  execFileSync(join(root, "node_modules/.formatter/node_modules/.bin/oxfmt"), [output]);
}
