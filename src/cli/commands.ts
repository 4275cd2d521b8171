export interface CommandModule {
  /** @returns the exit code. Throws McoError `MCO_USAGE` for arguments that it does not understand. */
  run(args: readonly string[]): Promise<number>;
}

export interface Flag {
  /** `--dir`, or `-f`. */
  readonly flag: string;
  /** Name of its value; absent for a switch. */
  readonly value?: string;
  readonly text: string;
}

export interface Command {
  readonly kind: "people" | "process";
  readonly summary: string;
  /** One way to call it each, as after `mco NAME`. */
  readonly usage: readonly string[];
  /** Words among the arguments: verbs, and what stands for what. */
  readonly words?: readonly { readonly word: string; readonly text: string }[];
  readonly flags?: readonly Flag[];
  readonly notes?: readonly string[];
  /** In the order in which a reader looks for them; 64 (usage) is implied. */
  readonly exitCodes?: readonly { readonly code: string; readonly means: string }[];
  /** Loaded when asked for: a daemon must not carry the API server in its memory. */
  load(): Promise<CommandModule>;
}

const directory: Flag = { flag: "--dir", value: "DIR", text: "folder of the cluster (default .mco)" };
const kubeconfig: Flag = {
  flag: "--kubeconfig",
  value: "FILE",
  text: "how to reach the API server (default: $KUBECONFIG, else the cluster in .mco, else the pod's own)",
};

/** Every command, in the order in which help lists them. */
export const commands: Readonly<Record<string, Command>> = {
  up: {
    kind: "people",
    summary: "Start a whole cluster on this machine, and keep it running",
    usage: ["[flags]"],
    flags: [
      { flag: "--quiet", text: "print nothing but errors" },
      directory,
      { flag: "--workers", value: "N", text: "machines in the pool worker (default 3)" },
      { flag: "--control-plane", value: "N", text: "machines in the pool master (default 1)" },
      {
        flag: "--api-server",
        value: "K",
        text: "what serves the API: embedded (default), or kubernetes: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as released, which 'hack/kubernetes build' builds",
      },
      { flag: "--apply", value: "FOLDER", text: "manifests to apply once the cluster is up" },
      { flag: "--without-operator", text: "machines only: 'kubectl apply -k install/' brings the operator" },
      {
        flag: "--image-mode",
        text: "with a registry, and a tour of images that are built on the cluster: opting in, a build that fails, a rebuild, opting out; with --detach or --json without the tour",
      },
      { flag: "--detach", text: "come back when everything is updated; 'mco down' ends the cluster" },
      { flag: "--json", text: "one JSON object when it is ready, no drawing" },
    ],
    load: () => import("./commands/up.ts"),
  },
  down: {
    kind: "people",
    summary: "End the cluster of a folder",
    usage: ["[flags]"],
    flags: [directory, { flag: "--purge", text: "remove the folder as well" }],
    load: () => import("./commands/down.ts"),
  },
  status: {
    kind: "people",
    summary: "Show pools and machines: where each is, what it does, why it waits",
    usage: ["[flags]"],
    flags: [
      { flag: "--json", text: "for programs: one JSON object" },
      { flag: "--watch", text: "draw it live" },
      directory,
      kubeconfig,
    ],
    load: () => import("./commands/status.ts"),
  },
  explain: {
    kind: "people",
    summary:
      "Say what goes on with a pool, a machine, a MachineConfig or the operator, why, what comes next, and what to do",
    usage: ["pool/NAME | node/NAME | mc/NAME | clusteroperator/NAME … [flags]"],
    flags: [
      { flag: "--json", text: "for programs: reason, sections, what comes next, what to do" },
      directory,
      kubeconfig,
    ],
    notes: ["Everything is read from live objects, so that it also answers while no controller runs."],
    exitCodes: [
      { code: "0", means: "explained" },
      { code: "1", means: "there is no such object" },
    ],
    load: () => import("./commands/explain.ts"),
  },
  book: {
    kind: "people",
    summary: "Read a life story in chapters: what happened, how long each step took, how it ended, why, and what to do",
    usage: ["[node/NAME | pool/NAME | build/NAME | cluster] [flags]"],
    flags: [
      { flag: "--chapter", value: "N", text: "one chapter, with every line and detail" },
      { flag: "--follow", text: "print what is told from now on as well, until interrupted" },
      { flag: "--json", text: "the chapters as they are kept; with --follow then a line of JSON for each line" },
      {
        flag: "--from",
        value: "FOLDER",
        text: "files of story lines (*.jsonl) in place of a cluster: /var/lib/machine-config-daemon/books of a machine",
      },
      directory,
      kubeconfig,
    ],
    notes: [
      "Without a name: the books that there are. Chapters come from where they are kept and, beyond that, from the journals of who wrote them, so that the recent past can be read while nobody keeps books.",
    ],
    exitCodes: [
      { code: "0", means: "read" },
      { code: "1", means: "there is no such book or chapter" },
    ],
    load: () => import("./commands/book.ts"),
  },
  timeline: {
    kind: "people",
    summary: "Draw what took how long: a row for each machine of a pool, or for each step of a machine's last chapters",
    usage: ["pool/NAME | node/NAME | build/NAME | cluster [flags]"],
    flags: [
      {
        flag: "--since",
        value: "T",
        text: "nothing that ended longer ago: 90m, 2h, 1d12h; of a pool the newest roll-out when absent",
      },
      { flag: "--json", text: "rows and bars, times in milliseconds since the epoch" },
      directory,
      kubeconfig,
    ],
    exitCodes: [
      { code: "0", means: "drawn" },
      { code: "1", means: "there is no such pool or book" },
    ],
    load: () => import("./commands/timeline.ts"),
  },
  plan: {
    kind: "people",
    summary: "Say what a change would do to every machine; nothing is stored",
    usage: ["-f FILE|FOLDER [-f …] [--delete NAME] [flags]"],
    flags: [
      { flag: "--json", text: "the forecast, for programs" },
      { flag: "-f", value: "FILE", text: "manifests to be applied ('-' reads standard input)" },
      { flag: "--delete", value: "NAME", text: "a MachineConfig to be deleted" },
      {
        flag: "--from",
        value: "FOLDER",
        text: "manifests that stand for the cluster: pools, MachineConfigs, ControllerConfig, Nodes",
      },
      { flag: "--offline", text: "no cluster: the manifests are all there is" },
      directory,
      kubeconfig,
    ],
    exitCodes: [
      { code: "0", means: "nothing would change" },
      { code: "2", means: "something would" },
      { code: "1", means: "it cannot be applied" },
    ],
    load: () => import("./commands/plan.ts"),
  },
  render: {
    kind: "people",
    summary: "Render pools from manifests or from the cluster, with the names that the cluster gives",
    usage: ["[POOL …] [flags]"],
    flags: [
      { flag: "--pool", value: "NAME", text: "only this pool" },
      {
        flag: "-f",
        value: "FILE",
        text: "manifests in place of the cluster: MachineConfigs, MachineConfigPools, the ControllerConfig; without pools, master and worker as every cluster has them",
      },
      { flag: "-o", value: "FORM", text: "the rendered MachineConfigs themselves, secrets included" },
      { flag: "--json", text: "names, members and warnings" },
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
    summary: "Compare what machines would hold: two configurations, two folders, or a folder and the cluster",
    usage: ["A B [flags]", "FOLDER [flags]"],
    words: [
      {
        word: "A, B",
        text: "MachineConfigs by name (rendered ones too), files, or folders of manifests, whose pools are rendered",
      },
      { word: "FOLDER", text: "manifests as they would be once applied to the cluster" },
    ],
    flags: [
      { flag: "--json", text: "for programs: one JSON object" },
      { flag: "-f", value: "FILE", text: "manifests in place of the cluster" },
      { flag: "--pool", value: "NAME", text: "only this pool" },
      directory,
      kubeconfig,
    ],
    notes: [
      "Contents are decoded; secrets are masked: password hashes, keys, tokens, and files that not everybody may read.",
    ],
    exitCodes: [
      { code: "0", means: "no difference" },
      { code: "2", means: "some" },
      { code: "1", means: "one side cannot be rendered" },
    ],
    load: () => import("./commands/diff.ts"),
  },
  validate: {
    kind: "people",
    summary: "Say everything that is wrong with manifests, with file, field, reason and remedy; needs no cluster",
    usage: ["FILE|FOLDER … [--json]"],
    words: [{ word: "FILE", text: "manifests; '-' reads standard input" }],
    flags: [
      { flag: "-f", value: "FILE", text: "manifests, as an argument without a flag" },
      { flag: "--json", text: "for programs: one JSON object" },
    ],
    exitCodes: [
      { code: "0", means: "no error (warnings may be there)" },
      { code: "1", means: "some" },
    ],
    load: () => import("./commands/validate.ts"),
  },
  blame: {
    kind: "people",
    summary: "Say which MachineConfig brought a file, unit, kernel argument, user or field, and what it overrode",
    usage: ["PATH [flags]", "--unit NAME | --karg ARGUMENT | --user NAME | --field NAME [flags]"],
    words: [{ word: "PATH", text: "of a file, folder, link, unit file or drop-in on machines" }],
    flags: [
      { flag: "--unit", value: "NAME", text: "a systemd unit" },
      { flag: "--user", value: "NAME", text: "an account" },
      { flag: "--json", text: "for programs: one JSON object" },
      { flag: "--karg", value: "A", text: "a kernel argument, or the name of one: console" },
      { flag: "--field", value: "NAME", text: "osImageURL, kernelType, fips, extensions, …" },
      { flag: "--pool", value: "NAME", text: "only this pool" },
      { flag: "-f", value: "FILE", text: "manifests in place of the cluster" },
      directory,
      kubeconfig,
    ],
    exitCodes: [
      { code: "0", means: "found" },
      { code: "1", means: "no configuration says anything of it" },
    ],
    load: () => import("./commands/blame.ts"),
  },
  build: {
    kind: "people",
    summary:
      "OS images built on the cluster: where they stand and why, what would be built, ask again, read the log, go back",
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
    words: [
      { word: "status", text: "pools that boot images, each with the build that matters now" },
      { word: "start POOL", text: "ask for the image to be built again; --wait tells how it goes until it has ended" },
      { word: "retry POOL", text: "after the limit of retries: count anew; after another failure: build again" },
      {
        word: "logs NAME",
        text: "the log of a pool's build, or of a MachineOSBuild; --follow until it ends, --step push only one step",
      },
      {
        word: "explain POOL",
        text: "asked for by whom, key, strategy and why, what runs or failed, what holds the roll-out, what to do",
      },
      {
        word: "plan POOL",
        text: "the same without a build: key and what it is made from, strategy, the Containerfile",
      },
      {
        word: "prune",
        text: "which builds and images are kept and why; marks the others, which go a quarter of an hour later",
      },
      { word: "rollback POOL", text: "the image before the last rebuild" },
    ],
    flags: [
      { flag: "--json", text: "for programs: one JSON object" },
      { flag: "--wait", text: "with start: report until the build has ended" },
      { flag: "--follow", text: "with logs: until the build ends" },
      { flag: "--step", value: "STEP", text: "with logs: one step only, build or push" },
      { flag: "--tail", value: "N", text: "with logs: the last N lines" },
      { flag: "--dry-run", text: "with prune: mark nothing" },
      directory,
      kubeconfig,
    ],
    exitCodes: [
      { code: "0", means: "done" },
      { code: "1", means: "there is no such thing or it failed" },
      { code: "plan 0", means: "nothing would be built" },
      { code: "plan 2", means: "something would be built" },
      { code: "plan 1", means: "it cannot be built" },
    ],
    load: () => import("./commands/build.ts"),
  },
  host: {
    kind: "people",
    summary: "Play with the machines of a one-machine cluster",
    usage: [
      "list [flags]",
      "add POOL [flags]",
      "fail NAME [flags]",
      "recover NAME [flags]",
      "reboot NAME [flags]",
      "power-cut NAME [flags]",
    ],
    flags: [directory, { flag: "--json", text: "for programs: one JSON object" }],
    load: () => import("./commands/host.ts"),
  },
  token: {
    kind: "people",
    summary: "Let machines join: tokens that the config server gives a pool's configuration for",
    usage: ["create --pool POOL [flags]", "list [flags]", "revoke ID … [flags]"],
    words: [
      { word: "create", text: "make a token and print it; that is the only time it can be read" },
      {
        word: "list",
        text: "all tokens: pool, how long they last, how often they were used; nothing that could be used",
      },
      { word: "revoke ID", text: "take tokens back" },
    ],
    flags: [
      { flag: "--pool", value: "POOL", text: "whose configuration the token gives" },
      { flag: "--ttl", value: "T", text: "how long it lasts: 90m, 2h, 1d12h (default 24h)" },
      { flag: "--uses", value: "N", text: "how many machines it lets in (default 1)" },
      {
        flag: "--pointer",
        text: "print the Ignition config that a machine is started with in place of the token alone",
      },
      { flag: "--server", value: "H", text: "where machines reach the config server; else what the cluster says" },
      { flag: "--json", text: "the token as .token; with --pointer the config as .pointer too" },
      directory,
      kubeconfig,
    ],
    exitCodes: [
      { code: "0", means: "done" },
      { code: "1", means: "there is no such pool or token" },
    ],
    load: () => import("./commands/token.ts"),
  },
  version: {
    kind: "people",
    summary: "Say which version this is, and what it is proven on",
    usage: ["[--json]"],
    flags: [{ flag: "--json", text: "for programs: one JSON object" }],
    load: () => import("./commands/version.ts"),
  },
  operator: {
    kind: "process",
    summary:
      "Installs and keeps everything else; bootstrap: writes ControllerConfig and pools before there is a cluster",
    usage: ["start [flags]", "bootstrap --manifest-dir FOLDER --dest-dir FOLDER [flags]"],
    flags: [
      kubeconfig,
      { flag: "--image", value: "IMAGE", text: "image of the suite for the components that it installs" },
      { flag: "--config-server-address", value: "ADDRESS", text: "address at which machines reach the config server" },
      { flag: "--release-image", value: "IMAGE", text: "with bootstrap: image of the release" },
      {
        flag: "--builder-image",
        value: "I",
        text: "the suite's image with buildah (target os-builder of the Containerfile), for pools that boot images built on the cluster; the suite's image when absent, which lays files on a base image and runs no steps",
      },
      { flag: "--manifest-dir", value: "D", text: "manifests to read: YAML and JSON files" },
      { flag: "--dest-dir", value: "E", text: "folder to write to; nothing is written when anything is wrong" },
      {
        flag: "--journal-dir",
        value: "J",
        text: "folder of story lines, one for all runs of a bootstrap (E/journal); named, it also hears of what was wrong",
      },
      { flag: "--json", text: "files that were written, or what is wrong" },
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
    summary: "Renders pools, rolls out, drains; bootstrap: renders before there is a cluster",
    usage: ["start [flags]", "bootstrap --manifest-dir FOLDER --dest-dir FOLDER [flags]"],
    flags: [
      kubeconfig,
      { flag: "--image", value: "IMAGE", text: "image of the suite" },
      { flag: "--admission-address", value: "ADDRESS", text: "where the admission webhook listens" },
      { flag: "--admission-port", value: "PORT", text: "port of the admission webhook (default 9443)" },
      {
        flag: "--admission-tls",
        value: "FOLDER",
        text: "certificate and key of the admission webhook and of metrics; neither without it",
      },
      { flag: "--lease-seconds", value: "N", text: "how long a lease lasts (default 15)" },
      { flag: "--renew-seconds", value: "N", text: "how long the leader tries to renew its lease (default 10)" },
      { flag: "--retry-seconds", value: "N", text: "pause between tries to get the lease (default 2)" },
      { flag: "--release-image", value: "IMAGE", text: "with bootstrap: image of the release" },
      { flag: "--manifest-dir", value: "D", text: "manifests to read: YAML and JSON files" },
      { flag: "--dest-dir", value: "E", text: "folder to write to; nothing is written when anything is wrong" },
      {
        flag: "--journal-dir",
        value: "J",
        text: "folder of story lines, one for all runs of a bootstrap (E/journal); named, it also hears of what was wrong",
      },
      { flag: "--json", text: "files that were written, or what is wrong" },
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
      "Keeps the books: what happened to every node, pool and build, and how the suite is; bootstrap: before there is a cluster",
    usage: ["start [flags]", "bootstrap --journal-dir FOLDER --dest-dir FOLDER [--once]"],
    flags: [
      kubeconfig,
      {
        flag: "--metrics-address",
        value: "ADDRESS",
        text: "where metrics are served (the pod's or node's own address)",
      },
      { flag: "--metrics-port", value: "PORT", text: "port for metrics (default 9444)" },
      {
        flag: "--metrics-tls",
        value: "FOLDER",
        text: "certificate and key of the metrics port; no metrics without it",
      },
      { flag: "--journal-dir", value: "D", text: "files of story lines, as bootstrap runs write them" },
      { flag: "--dest-dir", value: "E", text: "folder to keep the books in" },
      { flag: "--once", text: "read what is there and end" },
    ],
    notes: ["Nothing waits for this process: without it history is not kept, and everything else goes on."],
    load: () => import("./commands/state.ts"),
  },
  server: {
    kind: "process",
    summary:
      "Gives machines that join the configuration of their pool; bootstrap: the first ones, before there is a cluster",
    usage: ["start --apiserver-url URL [flags]", "bootstrap --server-basedir FOLDER [flags]"],
    flags: [
      kubeconfig,
      { flag: "--apiserver-url", value: "U", text: "where machines reach the API server: https://HOST:PORT" },
      { flag: "--secure-port", value: "P", text: "port (22623)" },
      {
        flag: "--address",
        value: "A",
        text: "address to listen on; absent: all of them, on one machine that of its node",
      },
      {
        flag: "--cert",
        value: "F",
        text: "certificate and key (/etc/ssl/mcs/tls.crt, tls.key); new ones are shown without a restart",
      },
      {
        flag: "--key",
        value: "F",
        text: "certificate and key (/etc/ssl/mcs/tls.crt, tls.key); new ones are shown without a restart",
      },
      {
        flag: "--access",
        value: "M",
        text: "required: a provisioning token or a client certificate (default); insecure: everybody is served, secrets included, for machines that were made before there were tokens",
      },
      {
        flag: "--client-ca",
        value: "F",
        text: "authority of client certificates, whose organization machineconfiguration.openshift.io:pool:POOL opens that pool",
      },
      { flag: "--tls-min-version", value: "V", text: "VersionTLS12 (default) or VersionTLS13" },
      {
        flag: "--tls-cipher-suites",
        value: "L",
        text: "IANA names, parted by commas; those of the profile Intermediate when absent",
      },
      {
        flag: "--insecure-port",
        value: "P",
        text: "a port without TLS that answers /healthz and nothing else; none when absent",
      },
      { flag: "--metrics-address", value: "A", text: "where figures are shown; nowhere without --metrics-tls" },
      { flag: "--metrics-port", value: "P", text: "where figures are shown; nowhere without --metrics-tls" },
      { flag: "--metrics-tls", value: "FOLDER", text: "where figures are shown; nowhere without --metrics-tls" },
      { flag: "--server-basedir", value: "D", text: "as 'mco controller bootstrap' writes it (/etc/mcs/bootstrap)" },
      {
        flag: "--bootstrap-kubeconfig",
        value: "F",
        text: "what machines are given as their kubeconfig (/etc/kubernetes/kubeconfig)",
      },
      {
        flag: "--bootstrap-certs",
        value: "H=F",
        text: "a registry's host and the file of its authority, below the folder; more than once",
      },
      { flag: "--journal-dir", value: "J", text: "folder of story lines, one for all runs of a bootstrap" },
    ],
    notes: ["It answers /config/POOL, and /healthz and /readyz on the same port."],
    load: () => import("./commands/server.ts"),
  },
  daemon: {
    kind: "process",
    summary: "Keeps one machine on its configuration",
    usage: ["start [flags]", "firstboot-complete-machineconfig [flags]"],
    flags: [
      kubeconfig,
      { flag: "--node-name", value: "NAME", text: "the node that the daemon keeps (default: $NODE_NAME)" },
      { flag: "--root-mount", value: "FOLDER", text: "where the root of the machine is mounted (default /rootfs)" },
      { flag: "--metrics-url", value: "ADDRESS:PORT", text: "where metrics are served" },
      { flag: "--kubelet-healthz-enabled", value: "true|false", text: "whether the kubelet is asked for its health" },
      {
        flag: "--kubelet-healthz-endpoint",
        value: "URL",
        text: "where the kubelet answers (default http://127.0.0.1:10248/healthz)",
      },
      {
        flag: "--machineconfig-file",
        value: "FILE",
        text: "with firstboot-complete-machineconfig: the MachineConfig that Ignition left",
      },
      { flag: "--persist-nics", text: "accepted for compatibility; does nothing" },
    ],
    load: () => import("./commands/daemon.ts"),
  },
  settle: {
    kind: "process",
    summary: "Makes a machine equal to what its image holds of its configuration, at boot",
    usage: ["[--root-mount FOLDER]"],
    flags: [{ flag: "--root-mount", value: "FOLDER", text: "root of the machine (default /)" }],
    load: () => import("./commands/settle.ts"),
  },
  "os-builder": {
    kind: "process",
    summary: "Has images built for pools that boot them, and says what came of it",
    usage: ["start --image IMAGE [flags]"],
    flags: [
      kubeconfig,
      { flag: "--status-port", value: "PORT", text: "port of /readyz (default 9445)" },
      {
        flag: "--metrics-address",
        value: "ADDRESS",
        text: "where metrics are served (the pod's or node's own address)",
      },
      { flag: "--metrics-port", value: "PORT", text: "port for metrics (default 9446)" },
      {
        flag: "--metrics-tls",
        value: "FOLDER",
        text: "certificate and key of the metrics port; no metrics without it",
      },
      { flag: "--image", value: "IMAGE", text: "what the pods of builds run: the suite's image, with buildah" },
      { flag: "--status-address", value: "A", text: "where it answers on /readyz whether it is ready" },
      { flag: "--build-cache", value: "FOLDER", text: "of a node, where builds keep layers that later ones can use" },
      { flag: "--builds-at-once", value: "N", text: "builds that run at the same time: 1 on one machine, else 4" },
    ],
    notes: ["It runs while some pool boots images that are built on the cluster; the operator starts and ends it."],
    load: () => import("./commands/os-builder.ts"),
  },
  "build-image": {
    kind: "process",
    summary: "Makes one OS image as the files of its pod say, and pushes it",
    usage: ["--context FOLDER"],
    flags: [{ flag: "--context", value: "FOLDER", text: "what the pod of a build was given" }],
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
    summary: "Deployments, scheduling, garbage collection of a one-machine cluster",
    usage: ["--dir DIR"],
    flags: [directory],
    load: () => import("./commands/cluster-controllers.ts"),
  },
};
