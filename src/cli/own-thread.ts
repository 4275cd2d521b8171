import { type AdmissionSettings, admissionThreads, runAdmissionEndpoint } from "../controller/admission-endpoint.ts";
import { runAdmissionPlanner } from "../controller/admission-planner.ts";
import {
  httpsListen,
  jsonLogger,
  type ownThread,
  systemClock,
  systemRandom,
  workerThreads,
} from "../ports/node/index.ts";
import { redactText } from "../core/text/redact.ts";
import { connect } from "./connect.ts";

/** Runs the part of the program that this thread was started for. The thread lives until its parent ends it. */
export async function runThread({ name, data, parent }: NonNullable<ReturnType<typeof ownThread>>): Promise<void> {
  const settings = data as AdmissionSettings;
  const level = process.env["MCO_LOG_LEVEL"] === "debug" ? "debug" : "info";
  const log = jsonLogger({ component: "controller", level, redact: redactText });
  const ports = { clock: systemClock, random: systemRandom, log };
  const { signal } = new AbortController();
  switch (name) {
    case admissionThreads.endpoint:
      return runAdmissionEndpoint(
        parent,
        settings,
        { ...ports, startThread: workerThreads(), listen: httpsListen },
        signal,
      );
    case admissionThreads.planner: {
      const isPlanShown = settings.access.to !== "verdicts";
      const connected = isPlanShown
        ? await connect({ kubeconfig: settings.kubeconfig, component: "controller" })
        : undefined;
      return runAdmissionPlanner(parent, connected?.kube, ports, signal);
    }
    default: {
      const { readYamlInThread, yamlThread } = await import("../standin/api-server.ts");
      if (name !== yamlThread) throw new Error(`bug: there is no thread ${name}`);
      return parent.send(readYamlInThread(data));
    }
  }
}
