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
const kube =
  "--kubeconfig F  how to reach the API server (default: $KUBECONFIG, else the cluster in .mco, else the pod's own)";

/** Every command, in the order in which help lists them. */
export const commands: Readonly<Record<string, Command>> = {
  up: {
    kind: "people",
    usage:
      "[--dir DIR] [--workers N] [--control-plane N] [--api-server embedded|kubernetes] [--apply FOLDER] [--without-operator] [--image-mode] [--detach] [--json]",
    summary: "Start a whole cluster on this machine, and keep it running",
    details: `${directory}\n--workers N    machines in the pool worker (default 3)\n--control-plane N  machines in the pool master (default 1)\n--api-server K  what serves the API: embedded (default), or kubernetes: etcd, kube-apiserver, kube-controller-manager and\n               kube-scheduler as released, which 'hack/kubernetes build' builds\n--apply FOLDER  manifests to apply once the cluster is up\n--without-operator  machines only: 'kubectl apply -k install/' brings the operator\n--image-mode   with a registry, and a tour of images that are built on the cluster: opting in, a build that fails, a\n               rebuild, opting out; with --detach or --json without the tour\n--detach       come back when everything is updated; 'mco down' ends the cluster\n--json         one JSON object when it is ready, no drawing`,
    load: () => import("./commands/up.ts"),
  },
  down: {
    kind: "people",
    usage: "[--dir DIR] [--purge]",
    summary: "End the cluster of a folder",
    details: `${directory}\n--purge        remove the folder as well`,
    load: () => import("./commands/down.ts"),
  },
  status: {
    kind: "people",
    usage: "[--watch] [--json] [--dir DIR | --kubeconfig F]",
    summary: "Show pools and machines: where each is, what it does, why it waits",
    details: `--watch        draw it live\n${directory}\n${kube}`,
    load: () => import("./commands/status.ts"),
  },
  explain: {
    kind: "people",
    usage: "pool/NAME | node/NAME | mc/NAME | clusteroperator/NAME …  [--json] [--dir DIR | --kubeconfig F]",
    summary:
      "Say what goes on with a pool, a machine, a MachineConfig or the operator, why, what comes next, and what to do",
    details: `--json         for programs: reason, sections, what comes next, what to do\n${directory}\n${kube}\n\nEverything is read from live objects, so that it also answers while no controller runs.\nexit code: 0 explained, 1 there is no such object`,
    load: () => import("./commands/explain.ts"),
  },
  book: {
    kind: "people",
    usage:
      "[node/NAME | pool/NAME | build/NAME | cluster]  [--chapter N] [--follow] [--json] [--dir DIR | --kubeconfig F | --from FOLDER]",
    summary: "Read a life story in chapters: what happened, how long each step took, how it ended, why, and what to do",
    details: `--chapter N    one chapter, with every line and detail\n--follow       print what is told from now on as well, until interrupted\n--json         the chapters as they are kept; with --follow then a line of JSON for each line\n--from FOLDER  files of story lines (*.jsonl) in place of a cluster: /var/lib/machine-config-daemon/books of a machine\n${directory}\n${kube}\n\nWithout a name: the books that there are. Chapters come from where they are kept and, beyond that, from the journals of\nwho wrote them, so that the recent past can be read while nobody keeps books.\nexit code: 0 read, 1 there is no such book or chapter`,
    load: () => import("./commands/book.ts"),
  },
  timeline: {
    kind: "people",
    usage: "pool/NAME | node/NAME | build/NAME | cluster  [--since 2h] [--json] [--dir DIR | --kubeconfig F]",
    summary: "Draw what took how long: a row for each machine of a pool, or for each step of a machine's last chapters",
    details: `--since T      nothing that ended longer ago: 90m, 2h, 1d12h; of a pool the newest roll-out when absent\n--json         rows and bars, times in milliseconds since the epoch\n${directory}\n${kube}\n\nexit code: 0 drawn, 1 there is no such pool or book`,
    load: () => import("./commands/timeline.ts"),
  },
  plan: {
    kind: "people",
    usage: "-f FILE|FOLDER [-f …] [--delete NAME] [--json] [--dir DIR | --kubeconfig F | --from FOLDER | --offline]",
    summary: "Say what a change would do to every machine; nothing is stored",
    details: `-f FILE        manifests to be applied ('-' reads standard input)\n--delete NAME  a MachineConfig to be deleted\n--from FOLDER  manifests that stand for the cluster: pools, MachineConfigs, ControllerConfig, Nodes\n--offline      no cluster: the manifests are all there is\n${directory}\n${kube}\n\nexit code: 0 nothing would change, 2 something would, 1 it cannot be applied`,
    load: () => import("./commands/plan.ts"),
  },
  render: {
    kind: "people",
    usage: "[POOL …] [-f FILE|FOLDER …] [-o yaml|json|name] [--json] [--dir DIR | --kubeconfig F]",
    summary: "Render pools from manifests or from the cluster, with the names that the cluster gives",
    details: `-f FILE        manifests in place of the cluster: MachineConfigs, MachineConfigPools, the ControllerConfig;\n               without pools, master and worker as every cluster has them\n-o FORM        the rendered MachineConfigs themselves, secrets included\n--json         names, members and warnings\n${directory}\n${kube}\n\nexit code: 0 rendered, 1 refused`,
    load: () => import("./commands/render.ts"),
  },
  diff: {
    kind: "people",
    usage: "A B | FOLDER  [--pool NAME …] [-f FILE|FOLDER …] [--json] [--dir DIR | --kubeconfig F]",
    summary: "Compare what machines would hold: two configurations, two folders, or a folder and the cluster",
    details: `A, B           MachineConfigs by name (rendered ones too), files, or folders of manifests, whose pools are rendered\nFOLDER         manifests as they would be once applied to the cluster\n-f FILE        manifests in place of the cluster\n--pool NAME    only this pool\n${directory}\n${kube}\n\nContents are decoded; secrets are masked: password hashes, keys, tokens, and files that not everybody may read.\nexit code: 0 no difference, 2 some, 1 one side cannot be rendered`,
    load: () => import("./commands/diff.ts"),
  },
  validate: {
    kind: "people",
    usage: "FILE|FOLDER … [--json]",
    summary: "Say everything that is wrong with manifests, with file, field, reason and remedy; needs no cluster",
    details:
      "FILE           manifests; '-' reads standard input\n\nexit code: 0 no error (warnings may be there), 1 some",
    load: () => import("./commands/validate.ts"),
  },
  blame: {
    kind: "people",
    usage:
      "PATH | --unit NAME | --karg ARGUMENT | --user NAME | --field NAME  [--pool NAME …] [-f FILE|FOLDER …] [--json]",
    summary: "Say which MachineConfig brought a file, unit, kernel argument, user or field, and what it overrode",
    details: `PATH           of a file, folder, link, unit file or drop-in on machines\n--karg A       a kernel argument, or the name of one: console\n--field NAME   osImageURL, kernelType, fips, extensions, …\n--pool NAME    only this pool\n-f FILE        manifests in place of the cluster\n${directory}\n${kube}\n\nexit code: 0 found, 1 no configuration says anything of it`,
    load: () => import("./commands/blame.ts"),
  },
  build: {
    kind: "people",
    usage:
      "[status [POOL] | start POOL [--wait] | retry POOL | logs POOL|BUILD [--follow] [--step S] [--tail N] | explain POOL | plan POOL | prune [--dry-run] | rollback POOL]  [--json] [--dir DIR | --kubeconfig F]",
    summary:
      "OS images built on the cluster: where they stand and why, what would be built, ask again, read the log, go back",
    details: `status         pools that boot images, each with the build that matters now\nstart POOL     ask for the image to be built again; --wait tells how it goes until it has ended\nretry POOL     after the limit of retries: count anew; after another failure: build again\nlogs NAME      the log of a pool's build, or of a MachineOSBuild; --follow until it ends, --step push only one step\nexplain POOL   asked for by whom, key, strategy and why, what runs or failed, what holds the roll-out, what to do\nplan POOL      the same without a build: key and what it is made from, strategy, the Containerfile\nprune          which builds and images are kept and why; marks the others, which go a quarter of an hour later\nrollback POOL  the image before the last rebuild\n${directory}\n${kube}\n\nexit code: 0 done, 1 there is no such thing or it failed; plan: 0 nothing would be built, 2 something would, 1 it cannot be`,
    load: () => import("./commands/build.ts"),
  },
  host: {
    kind: "people",
    usage: "list | add POOL | fail NAME | recover NAME | reboot NAME | power-cut NAME  [--dir DIR] [--json]",
    summary: "Play with the machines of a one-machine cluster",
    load: () => import("./commands/host.ts"),
  },
  token: {
    kind: "people",
    usage:
      "create --pool POOL [--ttl 24h] [--uses N] [--pointer [--server HOST[:PORT]]] | list | revoke ID …  [--json] [--dir DIR | --kubeconfig F]",
    summary: "Let machines join: tokens that the config server gives a pool's configuration for",
    details: `create         make a token and print it; that is the only time it can be read\nlist           all tokens: pool, how long they last, how often they were used; nothing that could be used\nrevoke ID      take tokens back\n--pool POOL    whose configuration the token gives\n--ttl T        how long it lasts: 90m, 2h, 1d12h (default 24h)\n--uses N       how many machines it lets in (default 1)\n--pointer      print the Ignition config that a machine is started with in place of the token alone\n--server H     where machines reach the config server; else what the cluster says\n--json         the token as .token; with --pointer the config as .pointer too\n${directory}\n${kube}\n\nexit code: 0 done, 1 there is no such pool or token`,
    load: () => import("./commands/token.ts"),
  },
  version: {
    kind: "people",
    usage: "[--json]",
    summary: "Say which version this is, and what it is proven on",
    load: () => import("./commands/version.ts"),
  },
  operator: {
    kind: "process",
    usage:
      "start [--kubeconfig F] [--image IMAGE] [--builder-image IMAGE] | bootstrap --manifest-dir D --dest-dir E [--journal-dir J] [--image IMAGE] [--release-image IMAGE] [--json]",
    summary:
      "Installs and keeps everything else; bootstrap: writes ControllerConfig and pools before there is a cluster",
    details: `--builder-image I  the suite's image with buildah (target os-builder of the Containerfile), for pools that boot images built\n               on the cluster; the suite's image when absent, which lays files on a base image and runs no steps\n--manifest-dir D  manifests to read: YAML and JSON files\n--dest-dir E   folder to write to; nothing is written when anything is wrong\n--journal-dir J  folder of story lines, one for all runs of a bootstrap (E/journal); named, it also hears of what was wrong\n--json         files that were written, or what is wrong\n\nexit code: 0 made, 1 refused, 64 usage`,
    load: () => import("./commands/operator.ts"),
  },
  controller: {
    kind: "process",
    usage: "start [--kubeconfig F] | bootstrap --manifest-dir D --dest-dir E [--journal-dir J] [--json]",
    summary: "Renders pools, rolls out, drains; bootstrap: renders before there is a cluster",
    details: `--manifest-dir D  manifests to read: YAML and JSON files\n--dest-dir E   folder to write to; nothing is written when anything is wrong\n--journal-dir J  folder of story lines, one for all runs of a bootstrap (E/journal); named, it also hears of what was wrong\n--json         files that were written, or what is wrong\n\nexit code: 0 made, 1 refused, 64 usage`,
    load: () => import("./commands/controller.ts"),
  },
  state: {
    kind: "process",
    usage: "start [--kubeconfig F] | bootstrap --journal-dir D --dest-dir E [--once]",
    summary:
      "Keeps the books: what happened to every node, pool and build, and how the suite is; bootstrap: before there is a cluster",
    details: `--journal-dir D  files of story lines, as bootstrap runs write them\n--dest-dir E   folder to keep the books in\n--once         read what is there and end\n\nNothing waits for this process: without it history is not kept, and everything else goes on.`,
    load: () => import("./commands/state.ts"),
  },
  server: {
    kind: "process",
    usage:
      "start --apiserver-url URL [--cert F --key F] [--access required|insecure] [--client-ca F] [--secure-port P] [--kubeconfig F] | bootstrap --server-basedir D [--bootstrap-kubeconfig F] [--bootstrap-certs HOST=FILE …] [--journal-dir J]",
    summary:
      "Gives machines that join the configuration of their pool; bootstrap: the first ones, before there is a cluster",
    details: `--apiserver-url U  where machines reach the API server: https://HOST:PORT\n--secure-port P  port (22623)\n--address A    address to listen on; absent: all of them, on one machine that of its node\n--cert F, --key F  certificate and key (/etc/ssl/mcs/tls.crt, tls.key); new ones are shown without a restart\n--access M     required: a provisioning token or a client certificate (default); insecure: everybody is served, secrets\n               included, for machines that were made before there were tokens\n--client-ca F  authority of client certificates, whose organization ${"machineconfiguration.openshift.io:pool:POOL"} opens that pool\n--tls-min-version V  VersionTLS12 (default) or VersionTLS13\n--tls-cipher-suites L  IANA names, parted by commas; those of the profile Intermediate when absent\n--insecure-port P  a port without TLS that answers /healthz and nothing else; none when absent\n--metrics-address A, --metrics-port P, --metrics-tls FOLDER  where figures are shown; nowhere without --metrics-tls\n--server-basedir D  as 'mco controller bootstrap' writes it (/etc/mcs/bootstrap)\n--bootstrap-kubeconfig F  what machines are given as their kubeconfig (/etc/kubernetes/kubeconfig)\n--bootstrap-certs H=F  a registry's host and the file of its authority, below the folder; more than once\n--journal-dir J  folder of story lines, one for all runs of a bootstrap\n\nIt answers /config/POOL, and /healthz and /readyz on the same port.`,
    load: () => import("./commands/server.ts"),
  },
  daemon: {
    kind: "process",
    usage: "start [--node-name NAME] [--root-mount /rootfs] [--kubeconfig F]",
    summary: "Keeps one machine on its configuration",
    load: () => import("./commands/daemon.ts"),
  },
  settle: {
    kind: "process",
    usage: "[--root-mount /]",
    summary: "Makes a machine equal to what its image holds of its configuration, at boot",
    load: () => import("./commands/settle.ts"),
  },
  "os-builder": {
    kind: "process",
    usage:
      "start --image IMAGE [--kubeconfig F] [--status-address A] [--status-port P] [--build-cache FOLDER] [--builds-at-once N]",
    summary: "Has images built for pools that boot them, and says what came of it",
    details: `--image IMAGE  what the pods of builds run: the suite's image, with buildah\n--status-address A  where it answers on /readyz whether it is ready\n--build-cache FOLDER  of a node, where builds keep layers that later ones can use\n--builds-at-once N  builds that run at the same time: 1 on one machine, else 4\n\nIt runs while some pool boots images that are built on the cluster; the operator starts and ends it.`,
    load: () => import("./commands/os-builder.ts"),
  },
  "build-image": {
    kind: "process",
    usage: "--context /run/mco-build/context",
    summary: "Makes one OS image as the files of its pod say, and pushes it",
    load: () => import("./commands/build-image.ts"),
  },
  apiserver: {
    kind: "process",
    usage: "--dir DIR",
    summary: "The embedded Kubernetes-compatible API server",
    load: () => import("./commands/apiserver.ts"),
  },
  registry: {
    kind: "process",
    usage: "--dir DIR",
    summary: "The registry of a one-machine cluster",
    details: directory,
    load: () => import("./commands/registry.ts"),
  },
  "cluster-controllers": {
    kind: "process",
    usage: "--dir DIR",
    summary: "Deployments, scheduling, garbage collection of a one-machine cluster",
    load: () => import("./commands/cluster-controllers.ts"),
  },
};
