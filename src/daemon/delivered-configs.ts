import { McoError } from "../api/errors.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import { configServersKey, machineTokens, namespace, objects } from "../api/names.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Clock } from "../ports/clock.ts";
import type { Downloaded, Downloader } from "../ports/download.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";

/** Reads a configuration of the daemon's own machine; `undefined`: it does not exist. */
export type ConfigReader = (name: string, kube: KubeClient, signal: AbortSignal) => Promise<MachineConfig | undefined>;

export interface DeliveredConfigsOptions {
  readonly download: Downloader;
  readonly files: Pick<Files, "readText">;
  /** File with the token of the daemon's pod. The kubelet replaces it before it ends. */
  readonly tokenPath: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** How long a configuration is asked for before the machine is reported: a config server may just be restarting. */
const patienceMs = 60_000;
const firstWaitMs = 1_000;
const longestWaitMs = 15_000;
const headersTimeoutMs = 10_000;
/** For a whole answer. */
const answerMs = 30_000;
/** An object of the API server has 3 MiB at most. */
const maxBytes = 4 * 1024 * 1024;
const authoritiesKey = "ca-bundle.crt";

/** What one attempt led to. `later`: no server answered so that it counts; the text says which answered what. */
type Attempt =
  | { readonly is: "config"; readonly config: MachineConfig }
  | { readonly is: "absent" }
  | { readonly is: "later"; readonly because: string };

/**
 * Reads configurations from the config server, since the daemon's account cannot read MachineConfigs: see
 * `server/deliver-config.ts`.
 */
export function deliveredConfigs(options: DeliveredConfigsOptions): ConfigReader {
  const { clock, log } = options;
  return async (name, kube, signal) => {
    const end = clock.monotonic() + patienceMs;
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
      const attempt = await tryOnce(name, kube, options, signal);
      switch (attempt.is) {
        case "config":
          return attempt.config;
        case "absent":
          return undefined;
        case "later":
          if (clock.monotonic() + waitMs > end)
            throw new McoError(
              "MCO_CONFIG_NOT_DELIVERED",
              { config: name },
              { message: `${name} could not be read: ${attempt.because}` },
            );
          log.warn({ config: name, because: attempt.because }, "a configuration is not delivered yet");
          await clock.sleep(waitMs, signal);
      }
    }
  };
}

/** Asks the servers in random order until one of them answers. */
async function tryOnce(
  name: string,
  kube: KubeClient,
  options: DeliveredConfigsOptions,
  signal: AbortSignal,
): Promise<Attempt> {
  const { files, tokenPath, random } = options;
  const known = await kube.get(kubernetes.ConfigMap, { name: objects.configServerCa, namespace }, { signal });
  const servers = (known?.data?.[configServersKey] ?? "")
    .split("\n")
    .filter((url) => url.startsWith("https://") && URL.canParse(url));
  const authorities = known?.data?.[authoritiesKey];
  if (servers.length === 0 || authorities === undefined)
    return later(`the ConfigMap ${namespace}/${objects.configServerCa} names no config server yet`);
  const token = (await files.readText(tokenPath))?.trim();
  if (token === undefined || token === "")
    return later(`there is no token in ${tokenPath}: the daemon's pod has none for ${machineTokens.audience}`);
  const answers: string[] = [];
  for (const server of shuffled(servers, random)) {
    const url = new URL(`/machineconfigs/${encodeURIComponent(name)}`, server).href;
    const request = {
      url,
      headers: { authorization: `Bearer ${token}`, accept: "application/json" },
      authorities: [authorities],
      onlyAuthorities: true,
      headersTimeoutMs,
      maxBytes,
    };
    const deadline = options.clock.deadline(answerMs, signal);
    const answer = await options
      .download(request, deadline.signal)
      .catch((error: unknown) => {
        if (signal.aborted) throw error;
        return error instanceof Error ? error.message : String(error);
      })
      .finally(() => deadline.cancel());
    const read = typeof answer === "string" ? later(answer) : readAnswer(name, answer);
    if (read.is !== "later") return read;
    answers.push(`${server}: ${read.because}`);
  }
  return later(answers.join("; "));
}

const later = (because: string): Attempt & { readonly is: "later" } => ({ is: "later", because });

function readAnswer(name: string, { status, body }: Downloaded): Attempt {
  const text = new TextDecoder().decode(body);
  if (status === 404) return { is: "absent" };
  const document = parsed(text);
  if (status !== 200) {
    const error = document?.["error"] as { readonly reason?: unknown; readonly message?: unknown } | undefined;
    const said = typeof error?.message === "string" ? error.message.slice(0, 500) : "";
    return later(
      `HTTP ${status}${typeof error?.reason === "string" ? ` ${error.reason.slice(0, 50)}` : ""}${said === "" ? "" : `: ${said}`}`,
    );
  }
  const config = document as MachineConfig | undefined;
  return config?.kind === "MachineConfig" && config.metadata?.name === name
    ? { is: "config", config }
    : later("the answer is not the configuration that was asked for");
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** All servers, in random order, so that machines spread over them. */
function shuffled<T>(items: readonly T[], random: Random): readonly T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
