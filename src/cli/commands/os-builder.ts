import { journals, objects } from "../../api/names.ts";
import { McoError } from "../../api/errors.ts";
import { buildCacheFolder } from "../../core/build/build-pod.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { appendBackend } from "../../os-builder/append-backend.ts";
import { jobBackend } from "../../os-builder/job-backend.ts";
import { type OsBuilderOptions, runOsBuilder } from "../../os-builder/run-os-builder.ts";
import { httpListen, httpsListen, systemFiles } from "../../ports/node/index.ts";
import { httpsWire } from "../../registry/node/https-wire.ts";
import { addressToListenOn } from "../address-of-node.ts";
import { buildImages } from "../build-images.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { podPath } from "../connect.ts";
import { processIdentity, runComponent } from "../run-process.ts";
import { version } from "../version.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags["os-builder"], { positionals: true });
  if (positionals[0] !== "start") throw usageError("name the verb: start");
  const { image } = values;
  if (image === undefined)
    throw usageError("--image is required: the image of build pods, which is the suite's image with buildah");
  const statusPort = countOf(values["status-port"], "--status-port", 0, 65_535);
  const metricsPort = countOf(values["metrics-port"], "--metrics-port", 0, 65_535);
  // On one machine everything shares its disk and its processors.
  const isOneMachine = process.env["MCO_POD_ROOT"] !== undefined;
  const atOnce =
    values["builds-at-once"] === undefined
      ? isOneMachine
        ? 1
        : undefined
      : countOf(values["builds-at-once"], "--builds-at-once", 1, 32);
  return runComponent(
    {
      component: "os-builder",
      kubeconfig: values.kubeconfig,
      reporter: objects.osBuilder,
      journalName: journals.osBuilder,
    },
    async (ports, signal) => {
      const wire = httpsWire();
      const images = buildImages(wire, ports);
      const folder = values["metrics-tls"];
      const status =
        values["status-address"] === undefined
          ? undefined
          : {
              listen: httpListen,
              host: await addressToListenOn(ports.kube, values["status-address"], "--status-address"),
              port: statusPort,
              network: true,
            };
      const metrics =
        folder === undefined
          ? undefined
          : await metricsAt(ports.kube, {
              address: values["metrics-address"],
              port: metricsPort,
              folder: podPath(folder),
            });
      try {
        await runOsBuilder(
          {
            ...ports,
            identity: identity(),
            version,
            images: images.open,
            backends: (kube) => [
              appendBackend({ kube, clock: ports.clock, storeFor: images.storeFor }),
              jobBackend({
                ...ports,
                kube,
                image,
                cacheFolder: values["build-cache"] ?? buildCacheFolder,
                hasProgram,
                ...(atOnce === undefined ? {} : { atOnce }),
              }),
            ],
            ...(status === undefined ? {} : { status }),
            ...(metrics === undefined ? {} : { metrics }),
          },
          signal,
        );
      } finally {
        wire.close();
      }
    },
  );
}

/**
 * A container that is started again in its pod has no other beside it: it takes the lease up at once where the one
 * before left it.
 */
const identity = () =>
  process.env["POD_NAME"] === undefined ? processIdentity("os-builder") : `${process.env["POD_NAME"]}_os-builder`;

/** Whether a program is in the path of this process, which runs in the same image as builds do. */
async function hasProgram(name: string): Promise<boolean> {
  for (const folder of (process.env["PATH"] ?? "").split(":"))
    if (folder !== "" && (await systemFiles.stat(`${folder}/${name}`)) !== undefined) return true;
  return false;
}

async function metricsAt(
  kube: KubeClient,
  { address, port, folder }: { readonly address: string | undefined; readonly port: number; readonly folder: string },
): Promise<NonNullable<OsBuilderOptions["metrics"]>> {
  const [certificate, key] = await Promise.all([
    systemFiles.readText(`${folder}/tls.crt`),
    systemFiles.readText(`${folder}/tls.key`),
  ]);
  if (certificate === undefined || key === undefined)
    throw new McoError("MCO_USAGE", {}, { message: `--metrics-tls: ${folder} holds no tls.crt and tls.key` });
  return {
    listen: httpsListen,
    host: await addressToListenOn(kube, address, "--metrics-address"),
    port,
    network: true,
    tls: { certificate, key },
  };
}
