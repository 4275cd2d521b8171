import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { McoError } from "../api/errors.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { hostPaths, namespace, objects } from "../api/names.ts";
import { withAuthorities } from "../core/render/kubeconfig-authorities.ts";
import { type MachineFile, certificatePaths, machineCertificates } from "../core/certificates/machine-certificates.ts";
import type { Host, HostEntry, HostWrite } from "../host/host.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { isPassing } from "../kube/kube-error.ts";
import { type Outcome, done, waiting } from "../kube/outcome.ts";
import { documentStore } from "./machine-documents.ts";
import { readConfig } from "../core/machine/read-config.ts";
import { certificatesFailed, certificatesWritten } from "./reports.ts";

export interface CertificateOptions {
  readonly host: Host;
  /** The journal to report in; nothing is reported when absent. */
  readonly nodeName?: string;
}

export interface CertificateController extends Controller {
  /** Runs a pass at once, for controllers of the same process that are about to need the files. */
  refresh(context: Context): Promise<void>;
}

/** Interval for rereading the disk: no watch covers these files. */
const sweepSeconds = 600;
/** The daemon's own document of the files that this writer put there, so that it removes no others. */
const recordName = "certificates.json";
const version = 1;
/** Document that records that the kubelet has not read its kubeconfig since the last change. */
const owedName = "kubelet-restart.json";
const kubelet = "kubelet.service";
const serverAuthorities = { namespace, fieldSelector: `metadata.name=${objects.kubeconfigData}` } as const;

const carries = (config: ControllerConfig | undefined) =>
  JSON.stringify(
    config === undefined
      ? []
      : [
          config.metadata.uid,
          machineCertificates(config.spec).files.map(({ path, contents }) => [path, contents.join()]),
        ],
  );

/**
 * Keeps the certificates and credentials of one machine in line with ControllerConfig, without a MachineConfig, a drain
 * or a reboot. It runs for paused pools too, since certificates expire on paused machines as well. Registries' files
 * that a MachineConfig names belong to that MachineConfig; the others are removed when ControllerConfig no longer has
 * them.
 */
export function certificateController({ host, nodeName }: CertificateOptions): CertificateController {
  /** The last reported failure; `undefined` after a success. */
  let failure: string | undefined;
  /** Passes run one after the other: they share a record of what was written. */
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = (name: string, context: Context): Promise<Outcome> => {
    const turn = last.then(() => keepCertificates(name, host, nodeName, context));
    last = turn.catch(() => undefined);
    return turn;
  };

  return {
    name: "certificates",
    watches: [
      watching({
        resource: ControllerConfig,
        selection: { fieldSelector: `metadata.name=${objects.controllerConfig}` },
        concerns: ({ key, before, after }) => (carries(before) === carries(after) ? [] : [key]),
      }),
      watching({
        resource: kubernetes.ConfigMap,
        selection: serverAuthorities,
        concerns: () => [objects.controllerConfig],
      }),
    ],
    owns: ["Host/certificates"],

    async reconcile(name, context): Promise<Outcome> {
      try {
        const outcome = await inTurn(name, context);
        failure = undefined;
        return outcome;
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        // The book of a machine without a name is not there yet.
        if (nodeName !== undefined && !context.signal.aborted && !isPassing(error) && failure !== message)
          context.report(certificatesFailed(nodeName, message));
        failure = message;
        throw error;
      }
    },
    refresh: async (context) => void (await inTurn(objects.controllerConfig, context)),
  };
}

/** One pass: brings the machine's files, and the authorities that the kubelet trusts, in line with ControllerConfig. */
async function keepCertificates(
  name: string,
  host: Host,
  nodeName: string | undefined,
  context: Context,
): Promise<Outcome> {
  const { signal, log } = context;
  const config = context.caches.of(ControllerConfig).get(name);
  // Without a ControllerConfig nothing is known to be wrong, so nothing is removed.
  if (config === undefined || config.metadata.deletionTimestamp !== undefined)
    return waiting("NoControllerConfig", "the operator has not written the ControllerConfig yet", sweepSeconds);
  const { files, problems } = machineCertificates(config.spec);
  const managed = await pathsOfConfigs(host, signal);
  const plan = await planFiles(files, problems, managed, host, signal);
  await performFiles(plan, host, signal);
  if (plan.writes.length + plan.stale.length > 0) {
    const written = plan.writes.map(({ path }) => path);
    log.info({ written, removed: plan.stale }, "certificates of the machine are those of the cluster");
    if (nodeName !== undefined) context.report(certificatesWritten(nodeName, written, plan.stale));
  }
  const bundle = context.caches.of(kubernetes.ConfigMap, serverAuthorities).list()[0]?.data?.["ca-bundle.crt"];
  await believeServer(host, bundle, managed, context);
  if (problems.length > 0)
    log.warn(
      { problems: problems.map(({ message }) => message) },
      "certificates of the cluster that cannot be written",
    );
  return done(sweepSeconds);
}

interface FilesPlan {
  readonly writes: readonly HostWrite[];
  readonly stale: readonly string[];
  /** The files that the daemon has written on this machine: as recorded, and as desired. */
  readonly recorded: readonly string[];
  readonly record: readonly string[];
}

/** @param managed paths that configurations name: their content of registries' files takes precedence. */
async function planFiles(
  files: readonly MachineFile[],
  problems: readonly { readonly path: string | undefined }[],
  managed: ReadonlySet<string>,
  host: Host,
  signal: AbortSignal,
): Promise<FilesPlan> {
  const own = files.filter(({ path }) => certificatePaths.has(path) || !managed.has(path));
  const recorded = await readRecord(host, signal);
  // Leave a document that cannot be read; remove the other files that were written here and are no longer desired.
  const kept = new Set([
    ...own.map(({ path }) => path),
    ...recorded.filter((path) => problems.some((problem) => problem.path === path)),
  ]);
  const writes: HostWrite[] = [];
  for (const file of own) {
    const write = writeOf(file, await host.files.read(file.path, signal));
    if (write !== undefined) writes.push(write);
  }
  const stale = recorded.filter((path) => !kept.has(path) && !managed.has(path));
  return { writes, stale, recorded, record: [...kept].sort() };
}

/** First the record: a daemon that is killed in between knows the next time what it may remove. */
async function performFiles(
  { writes, stale, recorded, record }: FilesPlan,
  host: Host,
  signal: AbortSignal,
): Promise<void> {
  const grown = [...new Set([...record, ...recorded])].sort();
  if (!same(grown, recorded)) await storeRecord(host, grown, signal);
  if (writes.length > 0) await host.files.write(writes, signal);
  for (const path of stale) await host.files.remove(path, signal);
  if (!same(record, await readRecord(host, signal))) await storeRecord(host, record, signal);
}

/**
 * Makes the kubelet trust new authorities of the API server. The kubelet reads them when it starts, so a restart is
 * owed. The debt is recorded before the files are changed: if the daemon dies in between, the next one restarts the
 * kubelet. The reference puts the restart off for authorities that change during an upgrade; pods do not notice either
 * way.
 */
async function believeServer(
  host: Host,
  bundle: string | undefined,
  managed: ReadonlySet<string>,
  { signal, log }: Context,
): Promise<void> {
  const owes = (await host.ledger.read(owedName, signal)) !== undefined;
  const writes: HostWrite[] = [];
  for (const path of [hostPaths.kubeconfig, hostPaths.kubeletKubeconfig]) {
    const has = bundle === undefined || managed.has(path) ? undefined : await host.files.read(path, signal);
    if (bundle === undefined || has?.kind !== "file") continue;
    const text = withAuthorities(new TextDecoder().decode(has.contents), bundle);
    if (text !== undefined) writes.push({ path, entry: { ...has, contents: new TextEncoder().encode(text) } });
  }
  if (writes.length === 0 && !owes) return;
  if (!owes) await host.ledger.write(owedName, JSON.stringify({ v: version, restart: kubelet }), signal);
  if (writes.length > 0) await host.files.write(writes, signal);
  const state = (await host.units.state([kubelet], signal)).get(kubelet);
  if (state !== undefined && state.enablement !== "absent" && state.enablement !== "masked")
    await host.units.restart(kubelet, signal);
  await host.ledger.remove(owedName, signal);
  log.info({ written: writes.map(({ path }) => path) }, "the kubelet believes the API server's new authorities");
}

/** An existing file keeps its mode and owner; credentials are readable for root only. */
function writeOf(
  { path, contents, mode, credentials }: MachineFile,
  has: HostEntry | undefined,
): HostWrite | undefined {
  const own =
    has?.kind === "file" && !credentials ? { mode: has.mode, uid: has.uid, gid: has.gid } : { mode, uid: 0, gid: 0 };
  if (has?.kind === "folder")
    throw new McoError(
      "MCO_HOST_COMMAND_FAILED",
      { path },
      { message: `${path} is a folder: a file of certificates belongs there; remove the folder` },
    );
  if (
    has?.kind === "file" &&
    has.mode === own.mode &&
    has.uid === own.uid &&
    has.gid === own.gid &&
    same([...has.contents], [...contents])
  )
    return undefined;
  return { path, entry: { kind: "file", contents, ...own } };
}

const same = <T>(a: readonly T[], b: readonly T[]) =>
  a.length === b.length && a.every((one, index) => one === b[index]);

/** Paths that the machine's configuration names, or the one that it is updating to. */
async function pathsOfConfigs(host: Host, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const documents = documentStore(host.ledger);
  const { previous } = await documents.load(signal);
  const target = await documents.target(signal);
  const paths = [previous?.config, target?.config].flatMap((config) => {
    const read = config === undefined ? undefined : readConfig(config);
    return read?.verdict === "read" ? [...read.wanted.config.entries.keys()] : [];
  });
  return new Set(paths);
}

async function readRecord({ ledger }: Host, signal: AbortSignal): Promise<readonly string[]> {
  const text = await ledger.read(recordName, signal);
  if (text === undefined) return [];
  try {
    const { v, paths } = JSON.parse(text) as { readonly v?: unknown; readonly paths?: unknown };
    // A configuration that cannot be parsed names nothing that may be removed.
    return v === version && Array.isArray(paths)
      ? paths.filter((path): path is string => typeof path === "string" && isOurs(path))
      : [];
  } catch {
    return [];
  }
}

const isOurs = (path: string) => certificatePaths.has(path) || path.startsWith(`${hostPaths.registryCas}/`);

const storeRecord = ({ ledger }: Host, paths: readonly string[], signal: AbortSignal) =>
  ledger.write(recordName, JSON.stringify({ v: version, paths }), signal);
