export interface CommandModule {
  /** @returns the exit code. Throws McoError `MCO_USAGE` for arguments that it does not understand. */
  run(args: readonly string[]): Promise<number>;
}

export interface Command {
  readonly kind: "people" | "process";
  /** Arguments, as after `mco NAME`. */
  readonly usage: string;
  readonly summary: string;
  readonly details?: string;
  /** Loaded when asked for: a daemon must not carry the API server in its memory. */
  load(): Promise<CommandModule>;
}

const directory = "--dir DIR      folder of the cluster (default .mco)";
const kube = "--kubeconfig F  how to reach the API server (default: $KUBECONFIG, else the cluster in .mco, else the pod's own)";

/** Every command, in the order in which help lists them. */
export const commands: Readonly<Record<string, Command>> = {
  up: {
    kind: "people",
    usage: "[--dir DIR] [--workers N] [--control-plane N] [--apply FOLDER] [--detach] [--json]",
    summary: "Start a whole cluster on this machine, and keep it running",
    details: `${directory}\n--workers N    machines in the pool worker (default 3)\n--control-plane N  machines in the pool master (default 1)\n--apply FOLDER  manifests to apply once the cluster is up\n--detach       come back when everything is updated; 'mco down' ends the cluster\n--json         one JSON object when it is ready, no drawing`,
    load: () => import("./commands/up.ts"),
  },
  down: { kind: "people", usage: "[--dir DIR] [--purge]", summary: "End the cluster of a folder", details: `${directory}\n--purge        remove the folder as well`, load: () => import("./commands/down.ts") },
  status: {
    kind: "people",
    usage: "[--watch] [--json] [--dir DIR | --kubeconfig F]",
    summary: "Show pools and machines: where each is, what it does, why it waits",
    details: `--watch        draw it live\n${directory}\n${kube}`,
    load: () => import("./commands/status.ts"),
  },
  plan: {
    kind: "people",
    usage: "-f FILE|FOLDER [-f …] [--delete NAME] [--json] [--dir DIR | --kubeconfig F]",
    summary: "Say what a change would do to every machine; nothing is stored",
    details: `-f FILE        manifests to be applied ('-' reads standard input)\n--delete NAME  a MachineConfig to be deleted\n${directory}\n${kube}\n\nexit code: 0 nothing would change, 2 something would, 1 it cannot be applied`,
    load: () => import("./commands/plan.ts"),
  },
  host: {
    kind: "people",
    usage: "list | add POOL | fail NAME | recover NAME | reboot NAME | power-cut NAME  [--dir DIR] [--json]",
    summary: "Play with the machines of a one-machine cluster",
    load: () => import("./commands/host.ts"),
  },
  version: { kind: "people", usage: "[--json]", summary: "Say which version this is, and what it is proven on", load: () => import("./commands/version.ts") },
  operator: { kind: "process", usage: "start [--kubeconfig F] [--image IMAGE]", summary: "Installs and keeps everything else", load: () => import("./commands/operator.ts") },
  controller: { kind: "process", usage: "start [--kubeconfig F]", summary: "Renders pools, rolls out, drains", load: () => import("./commands/controller.ts") },
  daemon: { kind: "process", usage: "start [--node-name NAME] [--root-mount /rootfs] [--kubeconfig F]", summary: "Keeps one machine on its configuration", load: () => import("./commands/daemon.ts") },
  apiserver: { kind: "process", usage: "--dir DIR", summary: "The embedded Kubernetes-compatible API server", load: () => import("./commands/apiserver.ts") },
  "cluster-controllers": { kind: "process", usage: "--dir DIR", summary: "Deployments, scheduling, garbage collection of a one-machine cluster", load: () => import("./commands/cluster-controllers.ts") },
};
