export interface CommandModule {
  /** @returns the exit code. Throws McoError `MCO_USAGE` for arguments that it does not understand. */
  run(args: readonly string[]): Promise<number>;
}

/** What a word on the command line names: what a shell offers in its place. */
export type WordKind =
  | "pool"
  | "node"
  | "machineConfig"
  | "build"
  | "token"
  | "boundName"
  | "osImageStream"
  /** `pool/worker`, `node/worker-0`, `mc/00-worker` */
  | "subject"
  | "book"
  /** What a configuration holds. */
  | "path"
  | "unit"
  | "kernelArgument"
  | "user"
  | "file"
  | "folder"
  /** One of these words. */
  | readonly string[];

export interface Flag {
  /** `--dir`, or `-f`. */
  readonly flag: string;
  /** Name of its value; absent for a switch. */
  readonly value?: string;
  /** What the value names; absent: its name says so (`FILE`, `FOLDER`, `DIR`, `POOL`), or nothing is offered. */
  readonly takes?: WordKind;
  readonly text: string;
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

const directory: Flag = { flag: "--dir", value: "DIR", text: "directory of the cluster (default .mco)" };
const kubeconfig: Flag = {
  flag: "--kubeconfig",
  value: "FILE",
  text: "kubeconfig of the API server (default: $KUBECONFIG, then the cluster in .mco, then the pod's service account)",
};

/** Every command, in the order in which help lists them. */
export const commands: Readonly<Record<string, Command>> = {
  up: {
    kind: "people",
    summary: "Start a complete cluster on this machine and keep it running",
    usage: ["[flags]"],
    flags: [
      { flag: "--quiet", text: "print only errors" },
      directory,
      { flag: "--workers", value: "N", text: "machines in the pool worker (default 3)" },
      { flag: "--control-plane", value: "N", text: "machines in the pool master (default 1)" },
      {
        flag: "--api-server",
        value: "K",
        takes: ["embedded", "kubernetes"],
        text: "API server to run: embedded (default), or kubernetes for the released etcd, kube-apiserver, kube-controller-manager and kube-scheduler, built by 'hack/kubernetes build'",
      },
      { flag: "--apply", value: "FOLDER", text: "manifests to apply once the cluster is up" },
      {
        flag: "--without-operator",
        text: "start the machines only; install the operator with 'kubectl apply -k install/'",
      },
      {
        flag: "--image-mode",
        text: "start a registry and run a tour of on-cluster image builds: opting in, a failing build, a rebuild, opting out; --detach and --json skip the tour",
      },
      { flag: "--detach", text: "return when all pools are updated; 'mco down' stops the cluster" },
      { flag: "--json", text: "print one JSON object when the cluster is ready, instead of the live view" },
    ],
    load: () => import("./commands/up.ts"),
  },
  down: {
    kind: "people",
    summary: "Stop the cluster of a directory",
    usage: ["[flags]"],
    flags: [directory, { flag: "--purge", text: "also delete the directory" }],
    load: () => import("./commands/down.ts"),
  },
  status: {
    kind: "people",
    summary: "Show the state of pools and machines, what each one is doing, and why it waits",
    usage: ["[flags]"],
    flags: [
      { flag: "--json", text: "print one JSON object" },
      { flag: "--watch", text: "keep the view up to date" },
      directory,
      kubeconfig,
    ],
    load: () => import("./commands/status.ts"),
  },
  explain: {
    kind: "people",
    summary:
      "Explain the state of a pool, machine, MachineConfig or any other object of the suite: why, what comes next, and what to do",
    usage: ["pool/NAME | node/NAME | mc/NAME | KIND/NAME … [flags]"],
    takes: ["subject"],
    flags: [
      { flag: "--json", text: "print one JSON object: reason, sections, next steps, remedies" },
      directory,
      kubeconfig,
    ],
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
    flags: [
      { flag: "--chapter", value: "N", text: "print one chapter with every line and detail" },
      { flag: "--follow", text: "also print new lines as they are reported, until interrupted" },
      {
        flag: "--json",
        text: "print the stored chapters as JSON; with --follow, also one line of JSON for each new line",
      },
      {
        flag: "--from",
        value: "FOLDER",
        text: "read journal files (*.jsonl) instead of a cluster, such as a machine's /var/lib/machine-config-daemon/books",
      },
      directory,
      kubeconfig,
    ],
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
    flags: [
      {
        flag: "--since",
        value: "T",
        text: "skip what ended longer ago than 90m, 2h or 1d12h (default for a pool: its latest roll-out)",
      },
      { flag: "--json", text: "print rows and bars as JSON; times are in milliseconds since the epoch" },
      directory,
      kubeconfig,
    ],
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
    flags: [
      { flag: "--json", text: "print the forecast as JSON" },
      { flag: "-f", value: "FILE", text: "manifests to apply ('-' reads standard input)" },
      { flag: "--delete", value: "NAME", takes: "machineConfig", text: "a MachineConfig to delete" },
      {
        flag: "--os-stream",
        value: "NAME",
        takes: "osImageStream",
        text: "an OS image stream for the pools; says what would break and why",
      },
      { flag: "--pool", value: "POOL", text: "with --os-stream: one pool instead of all of them" },
      {
        flag: "--from",
        value: "FOLDER",
        text: "manifests to use instead of the cluster: pools, MachineConfigs, ControllerConfig, Nodes",
      },
      { flag: "--offline", text: "use no cluster, only the manifests" },
      directory,
      kubeconfig,
    ],
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
    flags: [
      { flag: "--pool", value: "NAME", takes: "pool", text: "only this pool" },
      {
        flag: "-f",
        value: "FILE",
        text: "manifests to use instead of the cluster: MachineConfigs, MachineConfigPools, the ControllerConfig; if they contain no pools, the default pools master and worker",
      },
      {
        flag: "-o",
        value: "FORM",
        takes: ["name", "yaml", "json"],
        text: "print the rendered MachineConfigs, including secrets",
      },
      { flag: "--json", text: "print names, members and warnings as JSON" },
      directory,
      kubeconfig,
    ],
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
    flags: [
      { flag: "--json", text: "print one JSON object" },
      { flag: "-f", value: "FILE", text: "manifests to use instead of the cluster" },
      { flag: "--pool", value: "NAME", takes: "pool", text: "only this pool" },
      directory,
      kubeconfig,
    ],
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
    flags: [
      { flag: "-f", value: "FILE", text: "manifests, same as an argument without a flag" },
      {
        flag: "--format",
        value: "FORM",
        takes: ["text", "json", "github", "gitlab", "sarif", "junit"],
        text: "text (default); json, as --json; github: annotations of a workflow; gitlab: a report of code quality; sarif: SARIF 2.1.0; junit: one test for each document",
      },
      { flag: "--json", text: "print one JSON object" },
    ],
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
    flags: [
      { flag: "--unit", value: "NAME", takes: "unit", text: "a systemd unit" },
      { flag: "--user", value: "NAME", takes: "user", text: "a user account" },
      { flag: "--json", text: "print one JSON object" },
      { flag: "--karg", value: "A", takes: "kernelArgument", text: "a kernel argument, or its name, such as console" },
      {
        flag: "--field",
        value: "NAME",
        takes: ["osImageURL", "kernelType", "fips", "extensions"],
        text: "osImageURL, kernelType, fips, extensions, …",
      },
      { flag: "--pool", value: "NAME", takes: "pool", text: "only this pool" },
      { flag: "-f", value: "FILE", text: "manifests to use instead of the cluster" },
      directory,
      kubeconfig,
    ],
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
    flags: [
      { flag: "--json", text: "print one JSON object" },
      { flag: "--wait", text: "with start: report until the build ends" },
      { flag: "--follow", text: "with logs: until the build ends" },
      { flag: "--step", value: "STEP", takes: ["build", "push"], text: "with logs: one step only, build or push" },
      { flag: "--tail", value: "N", text: "with logs: the last N lines" },
      { flag: "--dry-run", text: "with prune: only show what would be marked" },
      directory,
      kubeconfig,
    ],
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
    flags: [directory, { flag: "--json", text: "print one JSON object" }],
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
    flags: [{ flag: "--json", text: "print one JSON object" }, directory, kubeconfig],
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
    flags: [
      { flag: "--pool", value: "POOL", text: "pool whose configuration the token gives access to" },
      { flag: "--ttl", value: "T", text: "lifetime, such as 90m, 2h or 1d12h (default 24h)" },
      { flag: "--uses", value: "N", text: "number of machines that can use the token (default 1)" },
      {
        flag: "--node",
        value: "NAME",
        text: "name of the machine: only a node of this name can join by the token, and no other pool's machine can take the name",
      },
      {
        flag: "--address",
        value: "IP",
        text: "address of that machine that it may serve logs under, beside the one that it fetches its configuration from; repeatable",
      },
      {
        flag: "--pointer",
        text: "print the Ignition pointer config for a new machine instead of the token alone",
      },
      { flag: "--server", value: "H", text: "address of the config server for machines (default: from the cluster)" },
      { flag: "--json", text: "print JSON: the token as .token and, with --pointer, the config as .pointer" },
      directory,
      kubeconfig,
    ],
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
    flags: [{ flag: "--json", text: "print one JSON object" }],
    load: () => import("./commands/version.ts"),
  },
  operator: {
    kind: "process",
    summary:
      "Installs and maintains the other components; bootstrap: writes ControllerConfig and pools before the cluster exists",
    usage: ["start [flags]", "bootstrap --manifest-dir FOLDER --dest-dir FOLDER [flags]"],
    flags: [
      kubeconfig,
      { flag: "--image", value: "IMAGE", text: "image of the suite for the installed components" },
      { flag: "--config-server-address", value: "ADDRESS", text: "address at which machines reach the config server" },
      { flag: "--release-image", value: "IMAGE", text: "with bootstrap: image of the release" },
      {
        flag: "--builder-image",
        value: "I",
        text: "the suite's image with buildah (target os-builder of the Containerfile), for on-cluster builds; default: the suite's image, which adds files to a base image but runs no build steps",
      },
      { flag: "--manifest-dir", value: "D", text: "manifests to read: YAML and JSON files" },
      { flag: "--dest-dir", value: "E", text: "folder to write to; on any error, nothing is written" },
      {
        flag: "--journal-dir",
        value: "J",
        text: "folder for journal files, shared by all bootstrap commands (default E/journal); if given, errors are also recorded there",
      },
      { flag: "--json", text: "print the written files, or the errors, as JSON" },
    ],
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
    flags: [
      kubeconfig,
      { flag: "--image", value: "IMAGE", text: "image of the suite" },
      { flag: "--admission-address", value: "ADDRESS", text: "listen address of the admission webhook" },
      { flag: "--admission-port", value: "PORT", text: "port of the admission webhook (default 9443)" },
      {
        flag: "--admission-tls",
        value: "FOLDER",
        text: "folder with the certificate and key of the admission webhook and of metrics; required for both",
      },
      {
        flag: "--admission-client-ca",
        value: "FILE",
        text: "authority of the API server's client certificate; with it the admission webhook answers no other caller, without it callers from the network get verdicts and no plan",
      },
      {
        flag: "--admission-client-name",
        value: "NAME",
        text: "common name that this certificate must have; repeatable (default: any)",
      },
      { flag: "--lease-seconds", value: "N", text: "duration of a lease (default 15)" },
      { flag: "--renew-seconds", value: "N", text: "how long the leader tries to renew its lease (default 10)" },
      { flag: "--retry-seconds", value: "N", text: "pause between attempts to acquire the lease (default 2)" },
      { flag: "--release-image", value: "IMAGE", text: "with bootstrap: image of the release" },
      { flag: "--manifest-dir", value: "D", text: "manifests to read: YAML and JSON files" },
      { flag: "--dest-dir", value: "E", text: "folder to write to; on any error, nothing is written" },
      {
        flag: "--journal-dir",
        value: "J",
        text: "folder for journal files, shared by all bootstrap commands (default E/journal); if given, errors are also recorded there",
      },
      { flag: "--json", text: "print the written files, or the errors, as JSON" },
    ],
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
    flags: [
      kubeconfig,
      {
        flag: "--metrics-address",
        value: "ADDRESS",
        text: "listen address for metrics (default: the address of the pod or node)",
      },
      { flag: "--metrics-port", value: "PORT", text: "port for metrics (default 9444)" },
      {
        flag: "--metrics-tls",
        value: "FOLDER",
        text: "folder with the certificate and key for metrics; required to serve metrics",
      },
      { flag: "--journal-dir", value: "D", text: "folder of journal files, as written by bootstrap commands" },
      { flag: "--dest-dir", value: "E", text: "folder for the books" },
      { flag: "--once", text: "read the existing files and exit" },
    ],
    notes: ["No other component depends on this process: without it, only history is missing."],
    load: () => import("./commands/state.ts"),
  },
  server: {
    kind: "process",
    summary:
      "Serves joining machines the configuration of their pool; bootstrap: serves the first machines before the cluster exists",
    usage: ["start --apiserver-url URL [flags]", "bootstrap --server-basedir FOLDER [flags]"],
    flags: [
      kubeconfig,
      { flag: "--apiserver-url", value: "U", text: "URL of the API server for machines: https://HOST:PORT" },
      { flag: "--secure-port", value: "P", text: "listen port (default 22623)" },
      {
        flag: "--address",
        value: "A",
        text: "listen address (default: all; in a one-machine cluster, the address of the node)",
      },
      {
        flag: "--cert",
        value: "F",
        text: "TLS certificate and key (default /etc/ssl/mcs/tls.crt, tls.key); reloaded without a restart",
      },
      {
        flag: "--key",
        value: "F",
        text: "TLS certificate and key (default /etc/ssl/mcs/tls.crt, tls.key); reloaded without a restart",
      },
      {
        flag: "--access",
        value: "M",
        text: "required (default): clients need a provisioning token or a client certificate; insecure: every client is served, including secrets, for machines provisioned before tokens existed",
      },
      {
        flag: "--client-ca",
        value: "F",
        text: "certificate authority of clients; a certificate with the organization machineconfiguration.openshift.io:pool:POOL gives access to that pool",
      },
      { flag: "--tls-min-version", value: "V", text: "VersionTLS12 (default) or VersionTLS13" },
      {
        flag: "--tls-cipher-suites",
        value: "L",
        text: "comma-separated IANA names (default: those of the profile Intermediate)",
      },
      {
        flag: "--insecure-port",
        value: "P",
        text: "port without TLS that serves only /healthz (default: none)",
      },
      { flag: "--metrics-address", value: "A", text: "where metrics are served; requires --metrics-tls" },
      { flag: "--metrics-port", value: "P", text: "where metrics are served; requires --metrics-tls" },
      { flag: "--metrics-tls", value: "FOLDER", text: "where metrics are served; requires --metrics-tls" },
      {
        flag: "--probe-address",
        value: "A",
        text: "loopback address of the port for probes (default 127.0.0.1)",
      },
      {
        flag: "--probe-port",
        value: "P",
        text: "port without TLS that serves only /healthz and /readyz (default: none)",
      },
      {
        flag: "--server-basedir",
        value: "D",
        text: "folder written by 'mco controller bootstrap' (default /etc/mcs/bootstrap)",
      },
      {
        flag: "--bootstrap-kubeconfig",
        value: "F",
        text: "kubeconfig to hand to machines (default /etc/kubernetes/kubeconfig)",
      },
      {
        flag: "--bootstrap-certs",
        value: "H=F",
        text: "host of a registry and the file of its certificate authority below the folder; can be repeated",
      },
      { flag: "--journal-dir", value: "J", text: "folder for journal files, shared by all bootstrap commands" },
    ],
    notes: ["Serves /config/POOL, /healthz and /readyz on the same port."],
    load: () => import("./commands/server.ts"),
  },
  daemon: {
    kind: "process",
    summary: "Applies and maintains the configuration of one machine",
    usage: ["start [flags]", "firstboot-complete-machineconfig [flags]"],
    flags: [
      kubeconfig,
      { flag: "--node-name", value: "NAME", text: "node that the daemon manages (default: $NODE_NAME)" },
      {
        flag: "--root-mount",
        value: "FOLDER",
        text: "mount point of the root file system of the machine (default /rootfs)",
      },
      { flag: "--metrics-url", value: "ADDRESS:PORT", text: "where metrics are served" },
      {
        flag: "--machine-token",
        value: "FILE",
        text: "token with which the daemon proves to the config server which machine it runs on",
      },
      { flag: "--kubelet-healthz-enabled", value: "true|false", text: "whether to check the health of the kubelet" },
      {
        flag: "--kubelet-healthz-endpoint",
        value: "URL",
        text: "health URL of the kubelet (default http://127.0.0.1:10248/healthz)",
      },
      {
        flag: "--machineconfig-file",
        value: "FILE",
        text: "with firstboot-complete-machineconfig: the MachineConfig that Ignition wrote",
      },
      { flag: "--persist-nics", text: "accepted for compatibility; does nothing" },
    ],
    load: () => import("./commands/daemon.ts"),
  },
  settle: {
    kind: "process",
    summary: "Applies the configuration in the OS image to the machine at boot",
    usage: ["[--root-mount FOLDER]"],
    flags: [{ flag: "--root-mount", value: "FOLDER", text: "root file system of the machine (default /)" }],
    load: () => import("./commands/settle.ts"),
  },
  "os-builder": {
    kind: "process",
    summary: "Builds OS images for pools that boot images built on the cluster, and reports the results",
    usage: ["start --image IMAGE [flags]"],
    flags: [
      kubeconfig,
      { flag: "--status-port", value: "PORT", text: "port of /readyz (default 9445)" },
      {
        flag: "--metrics-address",
        value: "ADDRESS",
        text: "listen address for metrics (default: the address of the pod or node)",
      },
      { flag: "--metrics-port", value: "PORT", text: "port for metrics (default 9446)" },
      {
        flag: "--metrics-tls",
        value: "FOLDER",
        text: "folder with the certificate and key for metrics; required to serve metrics",
      },
      { flag: "--image", value: "IMAGE", text: "image of build pods: the suite's image with buildah" },
      { flag: "--status-address", value: "A", text: "listen address of /readyz" },
      { flag: "--build-cache", value: "FOLDER", text: "folder on the node where builds cache layers for later builds" },
      {
        flag: "--builds-at-once",
        value: "N",
        text: "maximum number of concurrent builds (default 4; in a one-machine cluster 1)",
      },
    ],
    notes: ["Runs while a pool boots images that are built on the cluster; the operator starts and stops it."],
    load: () => import("./commands/os-builder.ts"),
  },
  "build-image": {
    kind: "process",
    summary: "Builds one OS image from the input files of its pod, and pushes it",
    usage: ["--context FOLDER --part pull|steps|push"],
    flags: [
      { flag: "--context", value: "FOLDER", text: "folder with the input of the build" },
      { flag: "--part", value: "PART", text: "what this container of the build does" },
    ],
    load: () => import("./commands/build-image.ts"),
  },
  apiserver: {
    kind: "process",
    summary: "The embedded Kubernetes-compatible API server",
    usage: ["--dir DIR"],
    flags: [directory],
    load: () => import("./commands/apiserver.ts"),
  },
  registry: {
    kind: "process",
    summary: "The registry of a one-machine cluster",
    usage: ["--dir DIR"],
    flags: [directory],
    load: () => import("./commands/registry.ts"),
  },
  "cluster-controllers": {
    kind: "process",
    summary: "Deployments, scheduling and garbage collection in a one-machine cluster",
    usage: ["--dir DIR"],
    flags: [directory],
    load: () => import("./commands/cluster-controllers.ts"),
  },
};
