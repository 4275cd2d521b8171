import { hostname } from "node:os";
import { McoError } from "../../api/errors.ts";
import { journals } from "../../api/names.ts";
import {
  type TlsDecision,
  type TlsSecurityProfile,
  type TlsSettings,
  tlsOfFlags,
  tlsOfProfile,
} from "../../core/certificates/tls-profile.ts";
import { kubernetesYaml } from "../../core/text/kubernetes-yaml.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { readKubeconfig, serviceAccountFolder } from "../../kube/kubeconfig.ts";
import { createBufferedJournal } from "../../kube/buffered-journal.ts";
import { configListen, httpListen, httpsListen, systemFiles } from "../../ports/node/index.ts";
import { ClusterSource } from "../../server/cluster-source.ts";
import type { AccessMode } from "../../server/credentials.ts";
import { FolderSource } from "../../server/folder-source.ts";
import { type RunServerOptions, runServer } from "../../server/run-server.ts";
import { addressToListenOn } from "../address-of-node.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { podPath } from "../connect.ts";
import { flags } from "../flags.ts";
import { lineFolder } from "../folder-store.ts";
import { processIdentity, runComponent, runProcess } from "../run-process.ts";
import { version } from "../version.ts";

const read = (args: readonly string[]) => readArguments(args, flags.server, { positionals: true });
type Values = ReturnType<typeof read>["values"];

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = read(args);
  switch (positionals[0]) {
    case "start":
      return start(values);
    case "bootstrap":
      return bootstrap(values);
    default:
      throw usageError("name a verb: start or bootstrap");
  }
}

function accessOf({ access }: Values): AccessMode {
  if (access !== "required" && access !== "insecure")
    throw usageError(`--access is required or insecure, not "${access}"`);
  return access;
}

function followed(decision: TlsDecision): TlsSettings {
  if (decision.verdict === "refused") throw usageError(`the TLS settings cannot be used: ${decision.reason}`);
  return decision.settings;
}

/** TLS settings from the flags; `undefined`: none are given. */
function tlsFlags(values: Values): TlsDecision | undefined {
  const [least, suites] = [values["tls-min-version"], values["tls-cipher-suites"]];
  return least === undefined && suites === undefined
    ? undefined
    : tlsOfFlags(
        least,
        suites
          ?.split(",")
          .map((name) => name.trim())
          .filter((name) => name !== ""),
      );
}

/** What both verbs derive from their flags. */
function common(
  values: Values,
  host: string,
): Pick<
  RunServerOptions,
  "access" | "files" | "listen" | "host" | "port" | "network" | "plain" | "identity" | "version"
> {
  const plain = values["insecure-port"];
  return {
    identity: process.env["POD_NAME"] ?? processIdentity("server"),
    version,
    access: accessOf(values),
    files: systemFiles,
    listen: configListen,
    host,
    port: countOf(values["secure-port"], "--secure-port", 0, 65_535),
    network: true,
    ...(plain === undefined
      ? {}
      : { plain: { listen: httpListen, host, port: countOf(plain, "--insecure-port", 0, 65_535), network: true } }),
  };
}

const pathsOf = (values: Values) => ({
  certificate: podPath(values.cert),
  key: podPath(values.key),
  ...(values["client-ca"] === undefined ? {} : { clientCa: podPath(values["client-ca"]) }),
});

async function start(values: Values): Promise<number> {
  const apiServerUrl = values["apiserver-url"];
  if (apiServerUrl === undefined || !URL.canParse(apiServerUrl))
    throw usageError("--apiserver-url is required: where machines reach the API server, https://HOST:PORT");
  const settings = followed(tlsFlags(values) ?? tlsOfFlags(undefined, undefined));
  accessOf(values);
  return runComponent(
    {
      component: "server",
      kubeconfig: values.kubeconfig,
      reporter: "machine-config-server",
      journalName: journals.server,
    },
    async (ports, signal) => {
      const { kube } = ports;
      const host = await hostOf(kube, values.address);
      const metrics =
        values["metrics-tls"] === undefined ? undefined : await metricsAt(kube, values, podPath(values["metrics-tls"]));
      const source = new ClusterSource({
        ...ports,
        apiServerUrl,
        fallbackCa: await ownAuthorities(values.kubeconfig),
        signal,
      });
      await runServer(
        {
          ...ports,
          ...common(values, host),
          source,
          runSource: () => source.run(),
          tokens: source,
          places: source,
          deliveries: { kube, machines: source },
          tls: { paths: pathsOf(values), settings },
          ...(metrics === undefined ? {} : { metrics }),
          ...probesAt(values),
        },
        signal,
      );
    },
  );
}

/**
 * All addresses, since machines may come by one that no Node names; on one machine, where many nodes share it, the
 * node's own.
 */
async function hostOf(kube: KubeClient, address: string | undefined): Promise<string> {
  return address === undefined && process.env["MCO_POD_ROOT"] === undefined
    ? ""
    : addressToListenOn(kube, address, "--address");
}

/** The authorities by which this process itself verifies the API server. */
async function ownAuthorities(kubeconfig: string | undefined): Promise<string | undefined> {
  return kubeconfig === undefined
    ? systemFiles.readText(podPath(`${serviceAccountFolder}/ca.crt`))
    : (await readKubeconfig(systemFiles, kubeconfig)).ca;
}

const probesAt = ({ "probe-address": host, "probe-port": port }: Values): Pick<RunServerOptions, "probes"> =>
  port === undefined ? {} : { probes: { listen: httpListen, host, port: countOf(port, "--probe-port", 0, 65_535) } };

async function metricsAt(
  kube: KubeClient,
  values: Values,
  folder: string,
): Promise<NonNullable<RunServerOptions["metrics"]>> {
  const [certificate, key] = await Promise.all([
    systemFiles.readText(`${folder}/tls.crt`),
    systemFiles.readText(`${folder}/tls.key`),
  ]);
  if (certificate === undefined || key === undefined)
    throw new McoError("MCO_USAGE", {}, { message: `--metrics-tls: ${folder} holds no tls.crt and tls.key` });
  return {
    kube,
    listen: httpsListen,
    host: await addressToListenOn(kube, values["metrics-address"], "--metrics-address"),
    port: countOf(values["metrics-port"], "--metrics-port", 0, 65_535),
    network: true,
    tls: { certificate, key },
  };
}

async function bootstrap(values: Values): Promise<number> {
  const folder = podPath(values["server-basedir"]);
  const certificates = new Map(
    values["bootstrap-certs"].map((pair) => {
      const [, host, file] = /^([^=/\s]+)=(\S+)$/.exec(pair) ?? [];
      if (host === undefined || file === undefined || file.split("/").includes(".."))
        throw usageError(`--bootstrap-certs must be HOST=FILE with a file below ${folder}, not "${pair}"`);
      return [host, file] as const;
    }),
  );
  const settings = followed(tlsFlags(values) ?? tlsOfProfile(await profileIn(folder)));
  const kubeconfig = podPath(values["bootstrap-kubeconfig"]);
  if ((await systemFiles.stat(kubeconfig)) === undefined)
    throw usageError(`--bootstrap-kubeconfig: ${kubeconfig} does not exist`);
  const shared = common(values, values.address ?? "");
  return runProcess({ component: "server" }, async (ports, signal) => {
    const { clock, log } = ports;
    const journalFolder = values["journal-dir"];
    const journal =
      journalFolder === undefined
        ? ports.journal
        : createBufferedJournal({
            clock,
            log,
            writer: { component: "server", instance: hostname(), version },
            boot: ports.random.uuid(),
            store: lineFolder(journalFolder, "server"),
          });
    const source = new FolderSource({ files: systemFiles, clock, log, folder, kubeconfig, certificates });
    try {
      await runServer(
        {
          ...ports,
          ...shared,
          journal,
          source,
          runSource: (until) => source.run(until),
          tokens: source,
          places: undefined,
          tls: { paths: pathsOf(values), settings },
        },
        signal,
      );
    } finally {
      await journal.flush();
    }
  });
}

/**
 * The cluster's TLS profile as an installer leaves it; a file that cannot be read is no reason to be less careful than
 * it asks.
 */
async function profileIn(folder: string): Promise<TlsSecurityProfile | undefined> {
  const path = `${folder}/api-server/api-server.yaml`;
  const text = await systemFiles.readText(path);
  if (text === undefined) return undefined;
  const document = kubernetesYaml(text);
  const value =
    document.errors.length > 0
      ? undefined
      : (document.toJS({ maxAliasCount: -1 }) as {
          readonly kind?: string;
          readonly spec?: { readonly tlsSecurityProfile?: TlsSecurityProfile };
        } | null);
  if (value?.kind !== "APIServer") throw usageError(`${path} is not an APIServer of config.openshift.io`);
  return value.spec?.tlsSecurityProfile;
}
