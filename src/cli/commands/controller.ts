import { type AdmissionSettings, admissionInThreads } from "../../controller/admission-endpoint.ts";
import { runController } from "../../controller/run-controller.ts";
import { journals } from "../../api/names.ts";
import { McoError } from "../../api/errors.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { isLoopback, systemFiles, workerThreads } from "../../ports/node/index.ts";
import { imageStore } from "../../registry/image-store.ts";
import { httpsWire } from "../../registry/node/https-wire.ts";
import { addressToListenOn } from "../address-of-node.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { podPath } from "../connect.ts";
import { processIdentity, runComponent } from "../run-process.ts";
import { version } from "../version.ts";

const seconds = (text: string | undefined, name: string) =>
  text === undefined ? {} : { [name]: countOf(text, `--${name}`, 1, 3600) };

/** Kubernetes' names of the architectures that Node.js runs on. */
const architectures: Readonly<Record<string, string>> = {
  x64: "amd64",
  arm64: "arm64",
  ppc64: "ppc64le",
  s390x: "s390x",
};
const architectureHere = (name: string) => {
  const architecture = architectures[name];
  return architecture === undefined ? {} : { architecture };
};

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.controller, { positionals: true });
  // Loaded on demand: a long-running process must not keep it in memory.
  if (positionals[0] === "bootstrap")
    return (await import("../bootstrap.ts")).bootstrap(
      "controller",
      values,
      (await import("../../core/operator/bootstrap.ts")).bootstrapController,
    );
  if (positionals[0] !== "start") throw usageError("name a verb: start or bootstrap");
  const port = countOf(values["admission-port"], "--admission-port", 0, 65_535);
  const lease = {
    ...seconds(values["lease-seconds"], "leaseSeconds"),
    ...seconds(values["renew-seconds"], "renewSeconds"),
    ...seconds(values["retry-seconds"], "retrySeconds"),
  };
  return runComponent(
    {
      component: "controller",
      kubeconfig: values.kubeconfig,
      reporter: "machineconfigcontroller",
      journalName: journals.controller,
    },
    async (ports, signal) => {
      const folder = values["admission-tls"];
      const admission =
        folder === undefined
          ? undefined
          : await admissionAt(ports.kube, {
              address: values["admission-address"],
              port,
              folder: podPath(folder),
              clientCa: values["admission-client-ca"],
              clientNames: values["admission-client-name"],
              kubeconfig: values.kubeconfig,
            });
      const wire = httpsWire();
      try {
        await runController(
          {
            ...ports,
            identity: processIdentity("controller"),
            version,
            lease,
            ...architectureHere(process.arch),
            images: (settings) =>
              imageStore({ ...settings, wire: wire.send, clock: ports.clock, random: ports.random }),
            ...(admission === undefined ? {} : { admission: admissionInThreads(workerThreads(), admission) }),
          },
          signal,
        );
      } finally {
        wire.close();
      }
    },
  );
}

async function admissionAt(
  kube: KubeClient,
  {
    address,
    port,
    folder,
    clientCa,
    clientNames,
    kubeconfig,
  }: {
    readonly address: string | undefined;
    readonly port: number;
    readonly folder: string;
    readonly clientCa: string | undefined;
    readonly clientNames: readonly string[];
    readonly kubeconfig: string | undefined;
  },
): Promise<AdmissionSettings> {
  const [certificate, key] = await Promise.all([
    systemFiles.readText(`${folder}/tls.crt`),
    systemFiles.readText(`${folder}/tls.key`),
  ]);
  if (certificate === undefined || key === undefined)
    throw new McoError("MCO_USAGE", {}, { message: `--admission-tls: ${folder} holds no tls.crt and tls.key` });
  const ca = clientCa === undefined ? undefined : await systemFiles.readText(podPath(clientCa));
  if (clientCa !== undefined && ca === undefined)
    throw new McoError("MCO_USAGE", {}, { message: `--admission-client-ca: there is no file ${clientCa}` });
  if (ca === undefined && clientNames.length > 0)
    throw usageError("--admission-client-name needs --admission-client-ca");
  const host = await addressToListenOn(kube, address, "--admission-address");
  // The address is one that was given for this, or the node's own: on a cluster the API server is another machine.
  return {
    host,
    port,
    network: true,
    kubeconfig,
    tls: { certificate, key, ...(ca === undefined ? {} : { clientCa: ca }) },
    // On a loopback address, as on one machine, callers are programs of that machine.
    access:
      ca !== undefined ? { to: "certificates", names: clientNames } : { to: isLoopback(host) ? "open" : "verdicts" },
  };
}
