import { hostPaths, machineTokens } from "../api/names.ts";

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
  /** The name of its value among {@link ValuesOf}, where that is not the flag itself. */
  readonly name?: string;
  /** One letter that stands for it. */
  readonly short?: string;
  /** It can be given several times. */
  readonly repeats?: true;
  /** Its value if it is not given. */
  readonly default?: string;
  /** The suite's own processes give it each other: no help names it. */
  readonly isInternal?: true;
  /** Name of its value; absent for a switch. */
  readonly value?: string;
  /** What the value names; absent: its name says so (`FILE`, `FOLDER`, `DIR`, `POOL`), or nothing is offered. */
  readonly takes?: WordKind;
  readonly text: string;
}

const directory = { flag: "--dir", value: "DIR", text: "directory of the cluster (default .mco)" } as const;
const ownDirectory = { ...directory, default: ".mco" } as const;
const kubeconfig = {
  flag: "--kubeconfig",
  value: "FILE",
  text: "kubeconfig of the API server (default: $KUBECONFIG, then the cluster in .mco, then the pod's service account)",
} as const;

const json = { flag: "--json", text: "print one JSON object" } as const;
/** Of the commands whose output becomes a comment of a pull request. */
const commentFormat = {
  flag: "--format",
  value: "FORM",
  takes: ["text", "json", "markdown"],
  text: "text (default); json, as --json; markdown: a comment for a pull or merge request",
} as const;
const manifests = {
  flag: "-f",
  name: "filename",
  repeats: true,
  value: "FILE",
  text: "manifests to use instead of the cluster",
} as const;
const onlyPool = { flag: "--pool", repeats: true, value: "NAME", takes: "pool", text: "only this pool" } as const;
const releaseImage = { flag: "--release-image", value: "IMAGE", text: "with bootstrap: image of the release" } as const;
const metricsAddress = {
  flag: "--metrics-address",
  value: "ADDRESS",
  text: "listen address for metrics (default: the address of the pod or node)",
} as const;
const metricsTls = {
  flag: "--metrics-tls",
  value: "FOLDER",
  text: "folder with the certificate and key for metrics; required to serve metrics",
} as const;

/** Flags of `mco operator bootstrap` and `mco controller bootstrap`. */
const bootstrap = [
  { flag: "--manifest-dir", value: "D", text: "manifests to read: YAML and JSON files" },
  { flag: "--dest-dir", value: "E", text: "folder to write to; on any error, nothing is written" },
  {
    flag: "--journal-dir",
    value: "J",
    text: "folder for journal files, shared by all bootstrap commands (default E/journal); if given, errors are also recorded there",
  },
  { flag: "--json", text: "print the written files, or the errors, as JSON" },
] as const;

/** Every flag of every command: what help lists, shells complete, and a command reads. */
export const flags = {
  up: [
    { flag: "--quiet", text: "print only errors" },
    ownDirectory,
    { flag: "--workers", default: "3", value: "N", text: "machines in the pool worker (default 3)" },
    { flag: "--control-plane", default: "1", value: "N", text: "machines in the pool master (default 1)" },
    {
      flag: "--api-server",
      default: "embedded",
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
    { flag: "--detach", short: "d", text: "return when all pools are updated; 'mco down' stops the cluster" },
    {
      flag: "--adopt",
      text: "record a folder as one of this user that this user's 'mco up' did not make, that was moved, or that is in a work tree whose authors you trust, and go on with it; know first what is in it",
    },
    { flag: "--json", text: "print one JSON object when the cluster is ready, instead of the live view" },
  ],
  down: [
    ownDirectory,
    { flag: "--purge", text: "also delete the cluster in the directory, and the directory if nothing else is in it" },
  ],
  status: [json, { flag: "--watch", short: "w", text: "keep the view up to date" }, directory, kubeconfig],
  explain: [
    { flag: "--json", text: "print one JSON object: reason, sections, next steps, remedies" },
    directory,
    kubeconfig,
  ],
  book: [
    { flag: "--chapter", value: "N", text: "print one chapter with every line and detail" },
    { flag: "--follow", short: "f", text: "also print new lines as they are reported, until interrupted" },
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
  timeline: [
    {
      flag: "--since",
      value: "T",
      text: "skip what ended longer ago than 90m, 2h or 1d12h (default for a pool: its latest roll-out)",
    },
    { flag: "--json", text: "print rows and bars as JSON; times are in milliseconds since the epoch" },
    directory,
    kubeconfig,
  ],
  plan: [
    { flag: "--json", text: "print the forecast as JSON" },
    commentFormat,
    {
      flag: "-f",
      name: "filename",
      repeats: true,
      value: "FILE",
      text: "manifests to apply ('-' reads standard input)",
    },
    { flag: "--delete", repeats: true, value: "NAME", takes: "machineConfig", text: "a MachineConfig to delete" },
    {
      flag: "--os-stream",
      value: "NAME",
      takes: "osImageStream",
      text: "an OS image stream for the pools; says what would break and why",
    },
    { flag: "--pool", repeats: true, value: "POOL", text: "with --os-stream: one pool instead of all of them" },
    {
      flag: "--from",
      repeats: true,
      value: "FOLDER",
      text: "manifests to use instead of the cluster: pools, MachineConfigs, ControllerConfig, Nodes",
    },
    { flag: "--offline", text: "use no cluster, only the manifests" },
    directory,
    kubeconfig,
  ],
  render: [
    onlyPool,
    {
      flag: "-f",
      name: "filename",
      repeats: true,
      value: "FILE",
      text: "manifests to use instead of the cluster: MachineConfigs, MachineConfigPools, the ControllerConfig; if they contain no pools, the default pools master and worker",
    },
    {
      flag: "-o",
      name: "output",
      value: "FORM",
      takes: ["name", "yaml", "json"],
      text: "print the rendered MachineConfigs, including secrets",
    },
    { flag: "--json", text: "print names, members and warnings as JSON" },
    directory,
    kubeconfig,
  ],
  diff: [json, commentFormat, manifests, onlyPool, directory, kubeconfig],
  validate: [
    {
      flag: "-f",
      name: "filename",
      repeats: true,
      value: "FILE",
      text: "manifests, same as an argument without a flag",
    },
    {
      flag: "--format",
      value: "FORM",
      takes: ["text", "json", "github", "gitlab", "sarif", "junit"],
      text: "text (default); json, as --json; github: annotations of a workflow; gitlab: a report of code quality; sarif: SARIF 2.1.0; junit: one test for each document",
    },
    json,
  ],
  blame: [
    { flag: "--unit", value: "NAME", takes: "unit", text: "a systemd unit" },
    { flag: "--user", value: "NAME", takes: "user", text: "a user account" },
    json,
    { flag: "--karg", value: "A", takes: "kernelArgument", text: "a kernel argument, or its name, such as console" },
    {
      flag: "--field",
      value: "NAME",
      takes: ["osImageURL", "kernelType", "fips", "extensions"],
      text: "osImageURL, kernelType, fips, extensions, …",
    },
    onlyPool,
    manifests,
    directory,
    kubeconfig,
  ],
  build: [
    json,
    { flag: "--wait", text: "with start: report until the build ends" },
    { flag: "--follow", short: "f", text: "with logs: until the build ends" },
    { flag: "--step", value: "STEP", takes: ["build", "push"], text: "with logs: one step only, build or push" },
    { flag: "--tail", value: "N", text: "with logs: the last N lines" },
    { flag: "--dry-run", text: "with prune: only show what would be marked" },
    directory,
    kubeconfig,
  ],
  host: [
    ownDirectory,
    json,
    { flag: "--index", value: "N", isInternal: true, text: "with run: number of the machine" },
  ],
  node: [
    {
      flag: "--deleted",
      text: "release: also names without a record whose Node was deleted already",
    },
    json,
    directory,
    kubeconfig,
  ],
  token: [
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
      repeats: true,
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
  version: [json],
  operator: [
    kubeconfig,
    { flag: "--image", value: "IMAGE", text: "image of the suite for the installed components" },
    { flag: "--config-server-address", value: "ADDRESS", text: "address at which machines reach the config server" },
    releaseImage,
    {
      flag: "--builder-image",
      value: "I",
      text: "the suite's image with buildah (target os-builder of the Containerfile), for on-cluster builds; default: the suite's image, which adds files to a base image but runs no build steps",
    },
    ...bootstrap,
  ],
  controller: [
    kubeconfig,
    { flag: "--image", value: "IMAGE", text: "image of the suite" },
    { flag: "--admission-address", value: "ADDRESS", text: "listen address of the admission webhook" },
    { flag: "--admission-port", default: "9443", value: "PORT", text: "port of the admission webhook (default 9443)" },
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
      repeats: true,
      value: "NAME",
      text: "common name that this certificate must have; repeatable (default: any)",
    },
    { flag: "--lease-seconds", value: "N", text: "duration of a lease (default 15)" },
    { flag: "--renew-seconds", value: "N", text: "how long the leader tries to renew its lease (default 10)" },
    { flag: "--retry-seconds", value: "N", text: "pause between attempts to acquire the lease (default 2)" },
    releaseImage,
    ...bootstrap,
  ],
  state: [
    kubeconfig,
    metricsAddress,
    { flag: "--metrics-port", default: "9444", value: "PORT", text: "port for metrics (default 9444)" },
    metricsTls,
    { flag: "--journal-dir", value: "D", text: "folder of journal files, as written by bootstrap commands" },
    { flag: "--dest-dir", value: "E", text: "folder for the books" },
    { flag: "--once", text: "read the existing files and exit" },
  ],
  // Names and defaults are the reference's: openshift/machine-config-operator cmd/machine-config-server (main). Its plain
  // port serves configurations; this server has none, or one that only reports liveness.
  server: [
    kubeconfig,
    { flag: "--apiserver-url", value: "U", text: "URL of the API server for machines: https://HOST:PORT" },
    { flag: "--secure-port", default: "22623", value: "P", text: "listen port (default 22623)" },
    {
      flag: "--address",
      value: "A",
      text: "listen address (default: all; in a one-machine cluster, the address of the node)",
    },
    {
      flag: "--cert",
      default: "/etc/ssl/mcs/tls.crt",
      value: "F",
      text: "TLS certificate and key (default /etc/ssl/mcs/tls.crt, tls.key); reloaded without a restart",
    },
    {
      flag: "--key",
      default: "/etc/ssl/mcs/tls.key",
      value: "F",
      text: "TLS certificate and key (default /etc/ssl/mcs/tls.crt, tls.key); reloaded without a restart",
    },
    {
      flag: "--access",
      default: "required",
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
    { flag: "--metrics-port", default: "9447", value: "P", text: "where metrics are served; requires --metrics-tls" },
    { flag: "--metrics-tls", value: "FOLDER", text: "where metrics are served; requires --metrics-tls" },
    {
      flag: "--probe-address",
      default: "127.0.0.1",
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
      default: "/etc/mcs/bootstrap",
      value: "D",
      text: "folder written by 'mco controller bootstrap' (default /etc/mcs/bootstrap)",
    },
    {
      flag: "--bootstrap-kubeconfig",
      default: "/etc/kubernetes/kubeconfig",
      value: "F",
      text: "kubeconfig to hand to machines (default /etc/kubernetes/kubeconfig)",
    },
    {
      flag: "--bootstrap-certs",
      repeats: true,
      value: "H=F",
      text: "host of a registry and the file of its certificate authority below the folder; can be repeated",
    },
    { flag: "--journal-dir", value: "J", text: "folder for journal files, shared by all bootstrap commands" },
  ],
  daemon: [
    kubeconfig,
    { flag: "--node-name", value: "NAME", text: "node that the daemon manages (default: $NODE_NAME)" },
    {
      flag: "--root-mount",
      default: "/rootfs",
      value: "FOLDER",
      text: "mount point of the root file system of the machine (default /rootfs)",
    },
    { flag: "--metrics-url", value: "ADDRESS:PORT", text: "where metrics are served" },
    {
      flag: "--machine-token",
      default: `${machineTokens.folder}/${machineTokens.file}`,
      value: "FILE",
      text: "token with which the daemon proves to the config server which machine it runs on",
    },
    { flag: "--kubelet-healthz-enabled", value: "true|false", text: "whether to check the health of the kubelet" },
    {
      flag: "--kubelet-healthz-endpoint",
      default: "http://127.0.0.1:10248/healthz",
      value: "URL",
      text: "health URL of the kubelet (default http://127.0.0.1:10248/healthz)",
    },
    {
      flag: "--machineconfig-file",
      default: hostPaths.encapsulated,
      value: "FILE",
      text: "with firstboot-complete-machineconfig: the MachineConfig that Ignition wrote",
    },
    { flag: "--persist-nics", text: "accepted for compatibility; does nothing" },
  ],
  settle: [
    { flag: "--root-mount", default: "/", value: "FOLDER", text: "root file system of the machine (default /)" },
  ],
  "os-builder": [
    kubeconfig,
    { flag: "--status-port", default: "9445", value: "PORT", text: "port of /readyz (default 9445)" },
    metricsAddress,
    { flag: "--metrics-port", default: "9446", value: "PORT", text: "port for metrics (default 9446)" },
    metricsTls,
    { flag: "--image", value: "IMAGE", text: "image of build pods: the suite's image with buildah" },
    { flag: "--status-address", value: "A", text: "listen address of /readyz" },
    { flag: "--build-cache", value: "FOLDER", text: "folder on the node where builds cache layers for later builds" },
    {
      flag: "--builds-at-once",
      value: "N",
      text: "maximum number of concurrent builds (default 4; in a one-machine cluster 1)",
    },
  ],
  "build-image": [
    { flag: "--context", value: "FOLDER", text: "folder with the input of the build" },
    { flag: "--part", value: "PART", text: "what this container of the build does" },
  ],
  apiserver: [directory],
  registry: [directory],
  "cluster-controllers": [directory],
} as const satisfies Readonly<Record<string, readonly Flag[]>>;

type NameOf<F extends Flag> = F extends { readonly name: infer Name extends string }
  ? Name
  : F["flag"] extends `--${infer Name}`
    ? Name
    : never;

type ValueOf<F extends Flag> = F extends { readonly value: string }
  ? F extends { readonly repeats: true }
    ? readonly string[]
    : F extends { readonly default: string }
      ? string
      : string | undefined
  : boolean;

/** The values of flags by their names without dashes: a text, all texts of one that repeats, or whether a switch is given. */
export type ValuesOf<Flags extends readonly Flag[]> = {
  readonly [F in Flags[number] as NameOf<F>]: ValueOf<F>;
};

/** The name of a flag's value. */
export const valueNameOf = ({ flag, name }: Flag): string => name ?? flag.replace(/^-+/, "");
