import { type Flag, type WordKind, flags } from "./flags.ts";

export interface CommandModule {
  /** @returns the exit code. Throws McoError `MCO_USAGE` for arguments that it does not understand. */
  run(args: readonly string[]): Promise<number>;
}

export interface Command {
  readonly kind: "people" | "process";
  readonly summary: string;
  /** One way to call it each, as after `mco NAME`. */
  readonly usage: readonly string[];
  /** Words among the arguments: verbs and placeholders. */
  readonly words?: readonly { readonly word: string; readonly text: string }[];
  /** What its words name, in order; the last one stands for all that follow. */
  readonly takes?: readonly WordKind[];
  /** Its verbs, each with what the words behind it name. */
  readonly verbs?: Readonly<Record<string, readonly WordKind[]>>;
  readonly flags?: readonly Flag[];
  readonly notes?: readonly string[];
  /** In the order in which a reader looks for them; 64 (usage) is implied. */
  readonly exitCodes?: readonly { readonly code: string; readonly means: string }[];
  /** Loaded when asked for: a daemon must not carry the API server in its memory. */
  load(): Promise<CommandModule>;
}

/** Every command, in the order in which help lists them. */
export const commands: Readonly<Record<string, Command>> = {
  up: {
    kind: "people",
    summary: "Start a complete cluster on this machine and keep it running",
    usage: ["[flags]"],
    flags: flags.up,
    load: () => import("./commands/up.ts"),
  },
  down: {
    kind: "people",
    summary: "Stop the cluster of a directory",
    usage: ["[flags]"],
    flags: flags.down,
    load: () => import("./commands/down.ts"),
  },
  status: {
    kind: "people",
    summary: "Show the state of pools and machines, what each one is doing, and why it waits",
    usage: ["[flags]"],
    flags: flags.status,
    load: () => import("./commands/status.ts"),
  },
  explain: {
    kind: "people",
    summary:
      "Explain the state of a pool, machine, MachineConfig or any other object of the suite: why, what comes next, and what to do",
    usage: ["pool/NAME | node/NAME | mc/NAME | KIND/NAME … [flags]"],
    takes: ["subject"],
    flags: flags.explain,
    notes: [
      "KIND is any kind that the suite installs, by the names that kubectl takes: machineosconfig, machineosbuild, controllerconfig, machineconfiguration, kubeletconfig, nodebinding and others; or one of OpenShift that the suite follows: a mirror set, an image policy, image/cluster, criocredentialproviderconfig, internalreleaseimage, featuregate, apiserver, nodes.config. Reads live objects only, so it works even while no controller runs.",
    ],
    exitCodes: [
      { code: "0", means: "explained" },
      { code: "1", means: "the object does not exist" },
    ],
    load: () => import("./commands/explain.ts"),
  },
  book: {
    kind: "people",
    summary:
      "Read the history of a node, pool, build or the cluster in chapters: each step, its duration, the result, the reason, and what to do",
    usage: ["[node/NAME | pool/NAME | build/NAME | cluster] [flags]"],
    takes: ["book"],
    flags: flags.book,
    notes: [
      "Without a name, lists the books. Chapters come from the book store; newer ones come from the components' journals, so recent history stays readable while 'mco state' does not run.",
    ],
    exitCodes: [
      { code: "0", means: "read" },
      { code: "1", means: "the book or chapter does not exist" },
    ],
    load: () => import("./commands/book.ts"),
  },
  timeline: {
    kind: "people",
    summary:
      "Draw how long things took: one row for each machine of a pool, or for each step of a machine's latest chapters",
    usage: ["pool/NAME | node/NAME | build/NAME | cluster [flags]"],
    takes: ["book"],
    flags: flags.timeline,
    exitCodes: [
      { code: "0", means: "drawn" },
      { code: "1", means: "the pool or book does not exist" },
    ],
    load: () => import("./commands/timeline.ts"),
  },
  plan: {
    kind: "people",
    summary: "Preview what a change does to every machine, without storing it",
    usage: ["-f FILE|FOLDER [-f …] [--delete NAME] [flags]", "--os-stream NAME [--pool POOL …] [flags]"],
    flags: flags.plan,
    exitCodes: [
      { code: "0", means: "nothing would change" },
      { code: "2", means: "something would change" },
      { code: "1", means: "the change cannot be applied" },
    ],
    load: () => import("./commands/plan.ts"),
  },
  render: {
    kind: "people",
    summary: "Render pools from manifests or from the cluster, with the same names as on the cluster",
    usage: ["[POOL …] [flags]"],
    takes: ["pool"],
    flags: flags.render,
    exitCodes: [
      { code: "0", means: "rendered" },
      { code: "1", means: "refused" },
    ],
    load: () => import("./commands/render.ts"),
  },
  diff: {
    kind: "people",
    summary: "Compare two configurations, two folders of manifests, or a folder and the cluster",
    usage: ["A B [flags]", "FOLDER [flags]"],
    takes: ["machineConfig"],
    words: [
      {
        word: "A, B",
        text: "names of MachineConfigs (also rendered ones), files, or folders of manifests whose pools are rendered",
      },
      { word: "FOLDER", text: "manifests, compared as if they were applied to the cluster" },
    ],
    flags: flags.diff,
    notes: [
      "File contents are decoded. Secrets are masked: password hashes, keys, tokens, and files that are not world-readable.",
    ],
    exitCodes: [
      { code: "0", means: "no difference" },
      { code: "2", means: "some" },
      { code: "1", means: "a side cannot be rendered" },
    ],
    load: () => import("./commands/diff.ts"),
  },
  validate: {
    kind: "people",
    summary: "Report every problem in manifests with file, field, reason and remedy; needs no cluster",
    usage: ["FILE|FOLDER … [flags]"],
    takes: ["file"],
    words: [{ word: "FILE", text: "manifests; '-' reads standard input" }],
    flags: flags.validate,
    exitCodes: [
      { code: "0", means: "no errors; there may be warnings" },
      { code: "1", means: "some" },
    ],
    load: () => import("./commands/validate.ts"),
  },
  blame: {
    kind: "people",
    summary: "Show which MachineConfig sets a file, unit, kernel argument, user or field, and what it overrides",
    usage: ["PATH [flags]", "--unit NAME | --karg ARGUMENT | --user NAME | --field NAME [flags]"],
    takes: ["path"],
    words: [{ word: "PATH", text: "path of a file, folder, link, unit file or drop-in on machines" }],
    flags: flags.blame,
    exitCodes: [
      { code: "0", means: "found" },
      { code: "1", means: "no MachineConfig sets it" },
    ],
    load: () => import("./commands/blame.ts"),
  },
  build: {
    kind: "people",
    summary: "Inspect and control on-cluster image builds: status, plan, retry, logs, rollback",
    usage: [
      "[status [POOL]] [flags]",
      "start POOL [--wait] [flags]",
      "retry POOL [flags]",
      "logs POOL|BUILD [--follow] [--step STEP] [--tail N] [flags]",
      "explain POOL [flags]",
      "plan POOL [flags]",
      "prune [--dry-run] [flags]",
      "rollback POOL [flags]",
    ],
    verbs: {
      status: ["pool"],
      start: ["pool"],
      retry: ["pool"],
      logs: ["build"],
      explain: ["pool"],
      plan: ["pool"],
      prune: [],
      rollback: ["pool"],
    },
    words: [
      { word: "status", text: "pools that boot images, each with its current build" },
      { word: "start POOL", text: "rebuild the image; --wait reports progress until the build ends" },
      { word: "retry POOL", text: "after the retry limit, reset the counter; after any other failure, build again" },
      {
        word: "logs NAME",
        text: "the log of a pool's build or of a MachineOSBuild",
      },
      {
        word: "explain POOL",
        text: "who asked for the image, key, strategy and reason, what runs or failed, what holds the roll-out, what to do",
      },
      {
        word: "plan POOL",
        text: "what a build would do: its key and inputs, strategy, and Containerfile",
      },
      {
        word: "prune",
        text: "show which builds and images are kept and why, and mark the others for deletion in 15 minutes",
      },
      { word: "rollback POOL", text: "go back to the image before the latest rebuild" },
    ],
    flags: flags.build,
    exitCodes: [
      { code: "0", means: "done" },
      { code: "1", means: "the object does not exist, or the command failed" },
      { code: "plan 0", means: "nothing would be built" },
      { code: "plan 2", means: "something would be built" },
      { code: "plan 1", means: "it cannot be built" },
    ],
    load: () => import("./commands/build.ts"),
  },
  host: {
    kind: "people",
    summary: "Add, reboot and break the machines of a one-machine cluster",
    usage: [
      "list [flags]",
      "add POOL [flags]",
      "fail NAME [flags]",
      "recover NAME [flags]",
      "reboot NAME [flags]",
      "power-cut NAME [flags]",
    ],
    verbs: { list: [], add: ["pool"], fail: ["node"], recover: ["node"], reboot: ["node"], "power-cut": ["node"] },
    flags: flags.host,
    load: () => import("./commands/host.ts"),
  },
  node: {
    kind: "people",
    summary: "Manage what nodes are bound to: the key that a name belongs to, and the addresses of its machine",
    usage: ["list [flags]", "release NAME … [flags]", "address NAME HOST … [flags]"],
    verbs: { list: [], release: ["boundName"], address: ["boundName"] },
    words: [
      { word: "list", text: "list the bound names with pool, expiry and addresses" },
      {
        word: "release NAME",
        text: "free names, so that another machine or a reinstalled one can join by them; a certificate that is still valid is not revoked, but not renewed either",
      },
      { word: "address NAME HOST", text: "let a node serve under further addresses and host names" },
    ],
    flags: flags.node,
    exitCodes: [
      { code: "0", means: "done" },
      { code: "1", means: "no such name is bound" },
    ],
    load: () => import("./commands/node.ts"),
  },
  token: {
    kind: "people",
    summary: "Manage provisioning tokens, which let machines fetch a pool's configuration and join",
    usage: ["create --pool POOL [flags]", "list [flags]", "revoke ID … [flags]"],
    verbs: { create: [], list: [], revoke: ["token"] },
    words: [
      { word: "create", text: "create a token and print it; it cannot be read again" },
      {
        word: "list",
        text: "list all tokens with pool, expiry and number of uses, but without the secret",
      },
      { word: "revoke ID", text: "revoke tokens" },
    ],
    flags: flags.token,
    exitCodes: [
      { code: "0", means: "done" },
      { code: "1", means: "the pool or token does not exist" },
    ],
    load: () => import("./commands/token.ts"),
  },
  completion: {
    kind: "people",
    summary: "Print a script with which a shell completes commands, flags, and names of the cluster",
    usage: ["bash|zsh|fish", "candidates -- WORD …"],
    verbs: { bash: [], zsh: [], fish: [] },
    words: [
      { word: "bash", text: "source <(mco completion bash)" },
      { word: "zsh", text: "source <(mco completion zsh), after compinit" },
      { word: "fish", text: "mco completion fish | source" },
      {
        word: "candidates",
        text: "what these scripts ask: what the last word may become, each with what it is; a cluster that does not answer within a second gives no names",
      },
    ],
    load: () => import("./commands/completion.ts"),
  },
  version: {
    kind: "people",
    summary: "Print the version and what it is tested with",
    usage: ["[--json]"],
    flags: flags.version,
    load: () => import("./commands/version.ts"),
  },
  operator: {
    kind: "process",
    summary:
      "Installs and maintains the other components; bootstrap: writes ControllerConfig and pools before the cluster exists",
    usage: ["start [flags]", "bootstrap --manifest-dir FOLDER --dest-dir FOLDER [flags]"],
    flags: flags.operator,
    exitCodes: [
      { code: "0", means: "made" },
      { code: "1", means: "refused" },
      { code: "64", means: "usage" },
    ],
    load: () => import("./commands/operator.ts"),
  },
  controller: {
    kind: "process",
    summary: "Renders pools, rolls out updates, drains nodes; bootstrap: renders before the cluster exists",
    usage: ["start [flags]", "bootstrap --manifest-dir FOLDER --dest-dir FOLDER [flags]"],
    flags: flags.controller,
    exitCodes: [
      { code: "0", means: "made" },
      { code: "1", means: "refused" },
      { code: "64", means: "usage" },
    ],
    load: () => import("./commands/controller.ts"),
  },
  state: {
    kind: "process",
    summary:
      "Keeps the books: the history of every node, pool and build, and the suite's health; bootstrap: before the cluster exists; hand-over: gives a cluster the journal of its bootstrap",
    usage: [
      "start [flags]",
      "bootstrap --journal-dir FOLDER --dest-dir FOLDER [--once]",
      "hand-over --journal-dir FOLDER [--kubeconfig FILE]",
    ],
    flags: flags.state,
    notes: ["No other component depends on this process: without it, only history is missing."],
    load: () => import("./commands/state.ts"),
  },
  server: {
    kind: "process",
    summary:
      "Serves joining machines the configuration of their pool; bootstrap: serves the first machines before the cluster exists",
    usage: ["start --apiserver-url URL [flags]", "bootstrap --server-basedir FOLDER [flags]"],
    flags: flags.server,
    notes: ["Serves /config/POOL, /healthz and /readyz on the same port."],
    load: () => import("./commands/server.ts"),
  },
  daemon: {
    kind: "process",
    summary: "Applies and maintains the configuration of one machine",
    usage: ["start [flags]", "firstboot-complete-machineconfig [flags]"],
    flags: flags.daemon,
    load: () => import("./commands/daemon.ts"),
  },
  settle: {
    kind: "process",
    summary: "Applies the configuration in the OS image to the machine at boot",
    usage: ["[--root-mount FOLDER]"],
    flags: flags.settle,
    load: () => import("./commands/settle.ts"),
  },
  "os-builder": {
    kind: "process",
    summary: "Builds OS images for pools that boot images built on the cluster, and reports the results",
    usage: ["start --image IMAGE [flags]"],
    flags: flags["os-builder"],
    notes: ["Runs while a pool boots images that are built on the cluster; the operator starts and stops it."],
    load: () => import("./commands/os-builder.ts"),
  },
  "build-image": {
    kind: "process",
    summary: "Builds one OS image from the input files of its pod, and pushes it",
    usage: ["--context FOLDER --part pull|steps|push"],
    flags: flags["build-image"],
    load: () => import("./commands/build-image.ts"),
  },
  apiserver: {
    kind: "process",
    summary: "The embedded Kubernetes-compatible API server",
    usage: ["--dir DIR"],
    flags: flags.apiserver,
    load: () => import("./commands/apiserver.ts"),
  },
  registry: {
    kind: "process",
    summary: "The registry of a one-machine cluster",
    usage: ["--dir DIR"],
    flags: flags.registry,
    load: () => import("./commands/registry.ts"),
  },
  "cluster-controllers": {
    kind: "process",
    summary: "Deployments, scheduling and garbage collection in a one-machine cluster",
    usage: ["--dir DIR"],
    flags: flags["cluster-controllers"],
    load: () => import("./commands/cluster-controllers.ts"),
  },
};
