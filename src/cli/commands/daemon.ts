import { SectionMeter, journalFamilies } from "../../core/metrics/section-meter.ts";
import { certificateController } from "../../daemon/certificate-controller.ts";
import { closeBuildCaches } from "../../daemon/close-build-caches.ts";
import { daemonController } from "../../daemon/daemon-controller.ts";
import { newDaemonFacts } from "../../daemon/daemon-facts.ts";
import { deliveredConfigs } from "../../daemon/delivered-configs.ts";
import { keepCompletingFirstBoot } from "../../daemon/first-boot.ts";
import { firstBootJournal, openNodeJournal } from "../../daemon/machine-books.ts";
import { pinnedImagesController } from "../../daemon/pinned-images-controller.ts";
import { statusHandler } from "../../daemon/status-handler.ts";
import { watchKubelet } from "../../daemon/watch-kubelet.ts";
import type { Host } from "../../host/host.ts";
import { runControllers } from "../../kube/controller.ts";
import { meteredJournal } from "../../kube/metered-journal.ts";
import { localQuestionLimits } from "../../kube/question-limits.ts";
import { keepListening } from "../../ports/keep-listening.ts";
import { downloadDocument, httpGet, httpListen, systemFiles } from "../../ports/node/index.ts";
import { countOf, readArguments, usageError } from "../arguments.ts";
import { flags } from "../flags.ts";
import { podPath } from "../connect.ts";
import { hostAt, podImagesAt } from "../host-at.ts";
import { installProgram, ownProgram } from "../install-program.ts";
import { runComponent, runProcess } from "../run-process.ts";
import { version } from "../version.ts";

/**
 * Where machines serve metrics and readiness: loopback, and on one machine with many hosts each host's own loopback
 * address.
 */
const defaultMetricsUrl = () => {
  const hostIp = process.env["HOST_IP"] ?? "";
  return `${hostIp.startsWith("127.") ? hostIp : "127.0.0.1"}:8797`;
};

/**
 * For machines in folders, their host applies the image's content; on a real one the unit runs a copy of the program
 * that lies there.
 */
async function keepProgram(host: Host, rootMount: string): Promise<void> {
  const program = host.driver === "rpm-ostree" ? ownProgram() : undefined;
  if (program !== undefined) await installProgram(rootMount, program);
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, flags.daemon, { positionals: true });
  const rootMount = podPath(values["root-mount"]);
  switch (positionals[0]) {
    case "start":
      break;
    case "firstboot-complete-machineconfig":
      if (values["persist-nics"]) return 0;
      return runProcess({ component: "daemon" }, async (ports, signal) => {
        const host = await hostAt(rootMount);
        const journal = await firstBootJournal({ ...ports, host, version }, signal);
        const outcome = await keepCompletingFirstBoot(
          {
            ...ports,
            journal,
            host,
            file: values["machineconfig-file"],
            beforeStaging: () => keepProgram(host, rootMount),
          },
          signal,
        ).finally(() => journal.flush());
        if (outcome.verdict === "givenUp")
          ports.log.error(
            { reason: outcome.reason },
            "the first boot cannot be completed; the daemon reports it once the machine has joined",
          );
        else ports.log.info(outcome, "first boot");
      });
    default:
      throw usageError("name a verb: start or firstboot-complete-machineconfig");
  }
  const nodeName = values["node-name"] ?? process.env["NODE_NAME"];
  if (nodeName === undefined || nodeName === "") throw usageError("--node-name or NODE_NAME is required");
  const metrics = /^(.+):(\d{1,5})$/.exec(values["metrics-url"] ?? defaultMetricsUrl());
  if (metrics?.[1] === undefined) throw usageError("--metrics-url must be ADDRESS:PORT");
  const listen = { host: metrics[1], port: countOf(metrics[2] ?? "", "--metrics-url", 0, 65_535) };
  return runComponent(
    { component: "daemon", node: nodeName, kubeconfig: values.kubeconfig, reporter: "machineconfigdaemon" },
    async (ports, signal) => {
      const host = await hostAt(rootMount);
      await closeBuildCaches(host, ports.log, signal);
      const facts = newDaemonFacts();
      const { journal: own, past } = await openNodeJournal({ ...ports, host, nodeName, version }, signal);
      const sections = new SectionMeter();
      sections.recall(past, ports.clock.now(), ports.clock.monotonic());
      const journal = meteredJournal(own, sections, ports.clock);
      const status = statusHandler({
        facts,
        clock: ports.clock,
        nodeName,
        more: () => [...sections.families(), ...journalFamilies("daemon", journal.counts?.dropped ?? 0)],
      });
      // Any program of the machine can take the port: the machine is kept current without it.
      const showing = keepListening(
        (until) => httpListen({ ...listen, limits: localQuestionLimits }, status, until),
        "answering probes and readers of metrics",
        ports,
        signal,
      );
      // A machine in a folder has no kubelet of its own to ask.
      const watchesKubelet =
        (values["kubelet-healthz-enabled"] ?? (host.driver === "directory" ? "false" : "true")) === "true";
      const watching = watchesKubelet
        ? watchKubelet(
            { ...ports, facts, check: (until) => httpGet(values["kubelet-healthz-endpoint"], until) },
            signal,
          )
        : undefined;
      const certificates = certificateController({ host, nodeName });
      const configs = deliveredConfigs({
        ...ports,
        download: downloadDocument,
        files: systemFiles,
        tokenPath: podPath(values["machine-token"]),
      });
      const daemon = daemonController({
        host,
        nodeName,
        configs,
        facts,
        past,
        refreshCredentials: async (context) => {
          await certificates.refresh(context);
          await keepProgram(host, rootMount);
        },
      });
      const pinned = pinnedImagesController({ host, images: await podImagesAt(rootMount, host), nodeName });
      await Promise.all([
        showing,
        watching,
        runControllers([daemon, certificates, pinned], { ...ports, journal, coalesceMs: 50 }, signal),
      ]).finally(() => journal.flush());
    },
  );
}
