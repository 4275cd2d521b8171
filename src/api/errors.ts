/**
 * Every failure of the suite: code → meaning and remedy. `docs/errors.md` is generated from this table. A code never
 * changes its meaning, and a retired code is never reused.
 */
export const errorCodes = {
  MCO_HOST_COMMAND_FAILED: {
    meaning: "An operation on the machine failed.",
    remedy: "Read the cause; the daemon retries with increasing delays.",
  },
  MCO_HOST_IMAGE_UNKNOWN: {
    meaning: "The machine cannot pull the operating system image of its configuration.",
    remedy: "Check the image reference in osImageURL and that the machine's registry has it.",
  },
  MCO_IGNITION_REFUSED: {
    meaning: "The first configuration of a machine cannot be applied.",
    remedy: "Read the reason, which names the part; correct its MachineConfig and add the machine again.",
  },
  MCO_IGNITION_FETCH_FAILED: {
    meaning: "A joining machine cannot fetch its configuration.",
    remedy:
      "Read the reason, and check the config server, its certificate and the token of the machine; the machine retries.",
  },
  MCO_FILE_TOO_LARGE: {
    meaning: "A text file is larger than this program reads.",
    remedy: "Check that the path names the file that was meant; split or shorten it.",
  },
  MCO_HOST_FILE_TOO_LARGE: {
    meaning: "A file of the machine is larger than the daemon reads.",
    remedy: "Look at the file; remove or shorten it if nothing needs it.",
  },
  MCO_HOST_NO_FILE: {
    meaning: "The machine has a pipe, a socket or a device at a path where a file or folder is expected.",
    remedy: "Remove it if nothing needs it.",
  },
  MCO_HOST_UNSAFE_PATH: {
    meaning:
      "On the way to a file of the machine is a link that a user other than root could place; or a folder that is to have another owner lies in a folder of a user, and is not that user's.",
    remedy:
      "Replace the link with the folder that it leads to. Give the folder its owner and mode by hand, if it is the right one.",
  },
  MCO_HOST_READ_ONLY: {
    meaning: "A path below /usr belongs to the OS image and cannot be written.",
    remedy: "Put the file below /etc or /var, or into the OS image.",
  },
  MCO_IMAGE_UNREACHABLE: {
    meaning: "A registry cannot be reached, or closed the connection.",
    remedy:
      "Check the registry, its name and its certificate (/etc/docker/certs.d); the next try continues with what has been downloaded.",
  },
  MCO_IMAGE_UNAUTHORIZED: {
    meaning: "A registry denies this machine access to the image.",
    remedy: "Check the entry for the registry in the pull secret.",
  },
  MCO_IMAGE_ABSENT: {
    meaning: "A registry does not have the image or a part of it.",
    remedy: "Check the image reference, and that the push of the image completed.",
  },
  MCO_IMAGE_DIGEST_MISMATCH: {
    meaning: "A registry delivered content that does not match its digest.",
    remedy: "Do not use that registry or mirror until the cause is known; push the image again.",
  },
  MCO_IMAGE_REFUSED: {
    meaning: "The machine's own policy (policy.json, registries.conf) forbids the image.",
    remedy: "Read the scope and the requirement; sign the image, or change the policy.",
  },
  MCO_IMAGE_INVALID: {
    meaning: "The contents of an image, or its reference, are invalid.",
    remedy: "Read the problem; build the image again, or correct its reference.",
  },
  MCO_IMAGE_NO_SPACE: {
    meaning: "Pinned images do not fit on the disk of a machine.",
    remedy: "Read the bytes that are needed and free; free or add space, or pin fewer images.",
  },
  MCO_BUILD_CONTEXT_INVALID: {
    meaning: "The input files of a build are incomplete.",
    remedy: "This is a bug, or the build's ConfigMaps were changed: request a rebuild.",
  },
  MCO_BUILD_INPUT_MISSING: {
    meaning: "An input of an image build is missing or cannot be read.",
    remedy: "Restore the named object; the build then continues on its own.",
  },
  MCO_BUILD_RUN_ENDING: {
    meaning: "An earlier run of the same build is still being stopped.",
    remedy: "Nothing: the build retries when that run has stopped.",
  },
  MCO_REGISTRY_USERS_INVALID: {
    meaning: "The file with the registry's users cannot be read.",
    remedy: "Remove it: `mco up` writes a new one.",
  },
  MCO_KUBE_REQUEST_FAILED: {
    meaning: "The API server refused a request or could not be reached.",
    remedy: "Read the reason and the message; the request is retried where that can help.",
  },
  MCO_KUBECONFIG_INVALID: {
    meaning: "The kubeconfig cannot be read, or refers to an entry that it does not contain.",
    remedy: "Check the path in KUBECONFIG or --kubeconfig and the context named there.",
  },
  MCO_POD_VOLUME: {
    meaning: "A volume of a pod cannot be created on its host.",
    remedy: "Create the object that the volume names, or mark it optional.",
  },
  MCO_POD_VOLUMES_TOO_LARGE: {
    meaning:
      "The volumes of a pod take more of the disk than its host writes, or name more than it reads: each mount of a volume is a copy, each file and folder takes at least a block, and a ConfigMap or Secret counts with all of its keys, also with those that are not mounted.",
    remedy: "Mount fewer or smaller ConfigMaps and Secrets, or each of them once.",
  },
  MCO_CHAPTER_CLOSED: {
    meaning: "A write would have changed a closed chapter of a book.",
    remedy:
      "Nothing: the state process reads the book again. If the error persists, check whether two state processes run.",
  },
  MCO_CLUSTER_RUNNING: {
    meaning: "A cluster already runs in this folder.",
    remedy: "Use it, stop it with `mco down`, or choose another folder with --dir.",
  },
  MCO_NAME_ABSENT: {
    meaning: "Nothing has a name that the command line gives: no object, machine, file or folder.",
    remedy: "Read the message, which says where the command looked; check the name, and the cluster that is asked.",
  },
  MCO_POOL_ABSENT: {
    meaning: "No pool of this name exists for a machine to join.",
    remedy: "Name an existing pool ('kubectl get mcp' lists them), or create the pool first.",
  },
  MCO_CLUSTER_ABSENT: {
    meaning: "No cluster runs in this folder.",
    remedy: "Start one with `mco up`, or name its folder with --dir.",
  },
  MCO_CLUSTER_FOLDER_FOREIGN: {
    meaning:
      "The folder of the cluster, or a part of it, belongs to another user, or other users may write there: they could put keys of their own there.",
    remedy:
      "Choose another folder with --dir; if the folder is yours and you know what is in it, change its owner with chown, or its mode with chmod go-w.",
  },
  MCO_CLUSTER_FOLDER_UNRECORDED: {
    meaning:
      "The folder has parts of a cluster, but no `mco up` of this user recorded that it made this folder: a repository or an archive may have brought it, an earlier release made it, or it was moved or restored.",
    remedy:
      "Choose another folder with --dir, or remove this one. If you know who made everything in it, `mco up --adopt` with the same --dir records it as yours; --kubeconfig with the path of its kubeconfig uses that file alone.",
  },
  MCO_CLUSTER_FOLDER_LINK: {
    meaning:
      "A symbolic link is where the folder of a cluster, or a part of it, has to be: a cluster would write where it leads.",
    remedy:
      "Name the folder itself with --dir if the folder is the link; otherwise find out who made the link, and remove it or choose another folder.",
  },
  MCO_CLUSTER_FOLDER_WORK_TREE: {
    meaning:
      "The folder of a cluster is in a work tree of version control. People who may commit there could replace the programs, keys and kubeconfig of the cluster: a pull overwrites files without a word if they are ignored.",
    remedy:
      "Choose a folder outside of the work tree with --dir. If you trust its authors with everything that you run, `mco up --adopt` with the same --dir records that; --kubeconfig with the path of the cluster's kubeconfig uses that file alone.",
  },
  MCO_CLUSTER_REGISTER: {
    meaning:
      "The record of the folders that `mco up` of this user made, in `mco` below $XDG_STATE_HOME or ~/.local/state, cannot be read or written, or other users may write there.",
    remedy:
      "Read the problem; set XDG_STATE_HOME to a folder of your own that you can write, the same for each command, or name a kubeconfig with --kubeconfig.",
  },
  MCO_CLUSTER_FILE_UNREADABLE: {
    meaning:
      "A file in the folder of a cluster is not what `mco up` writes there: a link, too large, or of other contents.",
    remedy:
      "Name the folder of your cluster with --dir, or a kubeconfig with --kubeconfig; remove a folder that is not yours.",
  },
  MCO_CLUSTER_API_SERVER: {
    meaning: "The cluster in this folder was created with another API server.",
    remedy:
      "Start it with the same --api-server, remove it with `mco down --purge`, or choose another folder with --dir.",
  },
  MCO_KUBERNETES_ABSENT: {
    meaning: "The programs of Kubernetes that `--api-server kubernetes` starts are not on this machine.",
    remedy: "Run `hack/kubernetes build`, or name a folder with them in MCO_KUBERNETES_BINARIES.",
  },
  MCO_CLUSTER_START_FAILED: {
    meaning: "A process of the cluster did not start.",
    remedy: "Read the log that is named; `mco down` stops what was started.",
  },
  MCO_TOUR_STUCK: {
    meaning: "The tour of images waited for a step that did not complete.",
    remedy: "`mco build status` and `mco explain pool/worker` show the state; the cluster is still up.",
  },
  MCO_MANIFEST_INVALID: {
    meaning: "A manifest cannot be read or is not a Kubernetes object.",
    remedy: "Correct the file and document that are named.",
  },
  MCO_USAGE: {
    meaning: "The command line is not understood.",
    remedy: "Run the command with --help.",
  },
  MCO_CONFIG_NOT_DELIVERED: {
    meaning: "The daemon could not get a configuration of its machine from the config server.",
    remedy:
      "Read the message: it names each server and its answer. Servers that cannot be reached: look at the pods of machine-config-server, and at firewalls for port 22623 of the control plane. NotYours: the controller has not given the machine this configuration.",
  },
  MCO_JOIN_CREDENTIAL: {
    meaning: "The API server gave the config server a token without an id for a machine that joins.",
    remedy:
      "Machines join clusters of Kubernetes 1.30 or newer: the API server has to name the token by which a certificate is requested. If the feature gate ServiceAccountTokenJTI is off, turn it on.",
  },
  MCO_LEDGER_NEWER: {
    meaning: "A newer version of the daemon wrote this machine's ledger.",
    remedy: "Run that version or a newer one on the machine; this version changes nothing.",
  },
  MCO_LEDGER_UNREADABLE: {
    meaning: "A document that the daemon keeps on its machine cannot be read.",
    remedy:
      "Look at the named file below /var/lib/machine-config-daemon; without ledger.json the daemon plans from what it observes, without previous.json it adopts the machine again.",
  },
  MCO_PACKAGES_MISSING: {
    meaning: "The machine lacks packages of an extension in its configuration.",
    remedy: "Check that the extensions image holds the packages; `rpm -q` on the machine shows what is installed.",
  },
  MCO_SETTLE_FAILED: {
    meaning: "The contents of a machine's image, or of its payload, could not be applied to the machine.",
    remedy:
      "Read the path and the cause; on the machine, the systemd journal of machine-config-settle shows every attempt.",
  },
  MCO_SERVICE_FAILED: {
    meaning: "A service failed after it was reloaded or restarted.",
    remedy:
      "Look at the unit on the machine (systemctl status, its journal); the daemon retries and leaves the files on disk as they are.",
  },
  MCO_OWNER_UNKNOWN: {
    meaning: "The owner of a file is a user or group that does not exist on the machine.",
    remedy: "Specify the owner by number, or create the account first.",
  },
  MCO_OWNERSHIP_CLASH: {
    meaning: "Two controllers of one process declare that they write the same field.",
    remedy: "This is a bug: report it with the message.",
  },
  MCO_STORE_NEWER: {
    meaning: "The API server's database was written by a newer release.",
    remedy: "Run the newer release, or start with another directory.",
  },
  MCO_STORE_LOCKED: {
    meaning: "Another process has the API server's database open.",
    remedy: "Stop that process first; one directory has one API server.",
  },
  MCO_STORE_UNUSABLE: {
    meaning: "The API server's database cannot be read or written.",
    remedy: "Check that the file is readable and that its disk has space.",
  },
  MCO_SERVER_CERTIFICATE: {
    meaning: "The config server's certificate, its key or the authority of its clients cannot be used.",
    remedy: "Check that the named files contain PEM and belong together.",
  },
  MCO_THREAD_ENDED: {
    meaning:
      "A thread of the controller's admission endpoint ended: it failed, used too much memory, or took too long.",
    remedy:
      "Nothing for a single one: the thread is started again, and changes are stored without a review meanwhile. If it repeats, read the cause, and look for a MachineConfig that is written at that time.",
  },
  MCO_PROGRAM_REPLACED: {
    meaning:
      "An upgrade replaced the program on disk while a process ran: it starts no threads of another version than its own.",
    remedy: "Restart the process: it then runs the new version.",
  },
  MCO_LISTEN_REFUSED: {
    meaning: "The API server refuses to listen on this address.",
    remedy: "Use an address of the loopback network (127.0.0.0/8 or ::1) and a free port.",
  },
} as const satisfies Record<string, { readonly meaning: string; readonly remedy: string }>;

export type ErrorCode = keyof typeof errorCodes;

/** Facts for people: `image: registry.example.com/app:1; problem: ENOTFOUND`. Whether a program may try again is not. */
function factsText(facts: Readonly<Record<string, unknown>>): readonly string[] {
  const told = Object.entries(facts).flatMap(([name, value]) =>
    value === undefined || name === "retryable"
      ? []
      : [`${name}: ${typeof value === "string" && !/\p{Cc}/u.test(value) ? value : JSON.stringify(value)}`],
  );
  return told.length === 0 ? [] : [told.join("; ")];
}

/** A failure: something that should have worked did not. Refusals (bad input, a paused pool) are values instead. */
export class McoError extends Error {
  override readonly name = "McoError";
  readonly code: ErrorCode;
  /** The facts needed to understand this case. Never a secret. */
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    facts: Readonly<Record<string, unknown>> = {},
    options?: { readonly cause?: unknown; readonly message?: string },
  ) {
    super(
      options?.message ?? [errorCodes[code].meaning, ...factsText(facts)].join(" "),
      options?.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.facts = facts;
  }
}

/** Stops on a bug: a state that the surrounding code rules out. */
export function assert(condition: unknown, message: string): asserts condition {
  if (condition !== true && !condition) throw new Error(`bug: ${message}`);
}
