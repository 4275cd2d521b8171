/**
 * Every failure of the suite: code → meaning and remedy. `docs/errors.md` is generated from this table. A code never
 * changes its meaning, and a retired code is never reused.
 */
export const errorCodes = {
  MCO_HOST_COMMAND_FAILED: {
    meaning: "Something that the machine was asked to do did not work.",
    remedy: "Read the cause; the daemon tries again with growing delays.",
  },
  MCO_HOST_IMAGE_UNKNOWN: {
    meaning: "The machine cannot get the operating system image that it should have.",
    remedy: "Check the image reference in osImageURL and that the machine's registry has it.",
  },
  MCO_IGNITION_REFUSED: {
    meaning: "A machine cannot be made what its first configuration says.",
    remedy: "Read the reason: it names the part; mend the MachineConfig that brings it and add the machine again.",
  },
  MCO_IGNITION_FETCH_FAILED: {
    meaning: "The configuration of a machine that joins cannot be fetched.",
    remedy:
      "Read the reason: the config server, its certificate, or the token that the machine shows; the machine tries again.",
  },
  MCO_HOST_READ_ONLY: {
    meaning: "A path below /usr belongs to the OS image and cannot be written.",
    remedy: "Put the file below /etc or /var, or into the OS image.",
  },
  MCO_IMAGE_UNREACHABLE: {
    meaning: "A registry cannot be reached, or broke off.",
    remedy:
      "Check the registry, its name and its certificate (/etc/docker/certs.d); what was fetched so far is kept for the next try.",
  },
  MCO_IMAGE_UNAUTHORIZED: {
    meaning: "A registry does not give the image to this machine.",
    remedy: "Check the entry for the registry in the pull secret.",
  },
  MCO_IMAGE_ABSENT: {
    meaning: "A registry does not have the image or a part of it.",
    remedy: "Check the image reference, and that the image was pushed whole.",
  },
  MCO_IMAGE_DIGEST_MISMATCH: {
    meaning: "A registry gave other bytes than the digest asks for.",
    remedy: "Do not use that registry or mirror until it is known why; push the image again.",
  },
  MCO_IMAGE_REFUSED: {
    meaning: "The machine's own policy (policy.json, registries.conf) forbids the image.",
    remedy: "Read the scope and the requirement that are named; sign the image, or change the policy.",
  },
  MCO_IMAGE_INVALID: {
    meaning: "What an image is made of, or called by, cannot be used.",
    remedy: "Read the problem that is named; build the image again, or correct its reference.",
  },
  MCO_BUILD_CONTEXT_INVALID: {
    meaning: "The files that tell a build what to make are not whole.",
    remedy: "This is a bug, or somebody changed the build's ConfigMaps: ask for a rebuild.",
  },
  MCO_BUILD_INPUT_MISSING: {
    meaning: "Something that an image is to be built with is not there, or cannot be read.",
    remedy: "Bring back the object that is named; the build goes on by itself.",
  },
  MCO_BUILD_RUN_ENDING: {
    meaning: "A run of the same build is still being ended.",
    remedy: "Nothing: it is tried again as soon as that is over.",
  },
  MCO_REGISTRY_USERS_INVALID: {
    meaning: "The file with the registry's users cannot be read.",
    remedy: "Remove it: `mco up` makes another, with new passwords.",
  },
  MCO_KUBE_REQUEST_FAILED: {
    meaning: "The API server refused a request or could not be reached.",
    remedy: "Read the reason and the message that come with it; the request is tried again where that can help.",
  },
  MCO_KUBECONFIG_INVALID: {
    meaning: "The kubeconfig cannot be read or names something that it does not hold.",
    remedy: "Check the path in KUBECONFIG or --kubeconfig and the context named there.",
  },
  MCO_POD_VOLUME: {
    meaning: "A volume of a pod cannot be made on its host.",
    remedy: "Create the object that the volume names, or mark it optional.",
  },
  MCO_CHAPTER_CLOSED: {
    meaning: "A chapter of a book that is closed was to be changed.",
    remedy:
      "Nothing: the state process reads the book again. If it comes again and again, see whether two of them run.",
  },
  MCO_CLUSTER_RUNNING: {
    meaning: "A cluster already runs in this folder.",
    remedy: "Use it, end it with `mco down`, or choose another folder with --dir.",
  },
  MCO_POOL_ABSENT: {
    meaning: "There is no pool of this name for a machine to join.",
    remedy: "Name one that is there ('kubectl get mcp' lists them), or make it first.",
  },
  MCO_CLUSTER_ABSENT: {
    meaning: "No cluster runs in this folder.",
    remedy: "Start one with `mco up`, or name its folder with --dir.",
  },
  MCO_CLUSTER_API_SERVER: {
    meaning: "The cluster in this folder was made with another API server.",
    remedy:
      "Start it with the --api-server it was made with, remove it with `mco down --purge`, or choose another folder with --dir.",
  },
  MCO_KUBERNETES_ABSENT: {
    meaning: "The programs of Kubernetes that `--api-server kubernetes` starts are not on this machine.",
    remedy: "Run `hack/kubernetes build`, or name a folder with them in MCO_KUBERNETES_BINARIES.",
  },
  MCO_CLUSTER_START_FAILED: {
    meaning: "A process of the cluster did not come up.",
    remedy: "Read the log that is named; `mco down` ends what was started.",
  },
  MCO_TOUR_STUCK: {
    meaning: "What the tour of images waited for did not come.",
    remedy: "`mco build status` and `mco explain pool/worker` say where it stands; the cluster is still up.",
  },
  MCO_MANIFEST_INVALID: {
    meaning: "A manifest cannot be read or is no Kubernetes object.",
    remedy: "Correct the file and document that are named.",
  },
  MCO_USAGE: {
    meaning: "The command line is not understood.",
    remedy: "Run the command with --help.",
  },
  MCO_LEDGER_NEWER: {
    meaning: "A newer version of the daemon wrote this machine's ledger.",
    remedy: "Run that version or a newer one on the machine; this one touches nothing.",
  },
  MCO_LEDGER_UNREADABLE: {
    meaning: "A document that the daemon keeps on its machine cannot be read.",
    remedy:
      "Look at the file that is named below /var/lib/machine-config-daemon; without ledger.json the daemon plans from what it observes, without previous.json it takes the machine over anew.",
  },
  MCO_PACKAGES_MISSING: {
    meaning: "The machine runs without packages of an extension that it should have.",
    remedy: "Check that the extensions image holds the packages; `rpm -q` on the machine shows what is there.",
  },
  MCO_SETTLE_FAILED: {
    meaning: "A machine could not be made equal to what its image, or the payload that was laid down for it, holds.",
    remedy:
      "Read the path and the cause; on the machine, the systemd journal of machine-config-settle tells every try.",
  },
  MCO_SERVICE_FAILED: {
    meaning: "A service was reloaded or restarted and has failed.",
    remedy:
      "Look at the unit on the machine (systemctl status, its journal); the daemon tries again, and what is on the disk stays.",
  },
  MCO_OWNER_UNKNOWN: {
    meaning: "A file is to belong to a user or group that the machine does not have.",
    remedy: "Give the owner by number, or create the account first.",
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
    remedy: "Check that the files that are named hold PEM and belong together.",
  },
  MCO_LISTEN_REFUSED: {
    meaning: "The API server does not listen there.",
    remedy: "Use an address of the loopback network (127.0.0.0/8 or ::1) and a free port.",
  },
} as const satisfies Record<string, { readonly meaning: string; readonly remedy: string }>;

export type ErrorCode = keyof typeof errorCodes;

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
      options?.message ?? `${errorCodes[code].meaning} ${JSON.stringify(facts)}`,
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
