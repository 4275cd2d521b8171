import type { MetricFamily } from "./metrics.ts";

const hourMs = 3_600_000;

/** What a daemon knows about itself and its machine. */
export interface DaemonMetrics {
  /** `Done`, `Working`, `Degraded`, `Unreconcilable`; empty before the first pass. */
  readonly state: string;
  /** A word of a closed list; empty for none. */
  readonly reason: string;
  /** Target configuration of the last update. */
  readonly config: string;
  readonly os: { readonly name: string; readonly version: string } | undefined;
  /** Since when the machine differs from its configuration, in milliseconds since the epoch. */
  readonly driftSince: number | undefined;
  /** Failures to stage a new OS deployment since the last success. */
  readonly osFailures: number;
  /** Requested reboots that did not happen. */
  readonly rebootFailures: number;
  /** Boot ID → when it began, in milliseconds since the epoch, as far as the machine's journal holds it. */
  readonly boots: ReadonlyMap<string, number>;
  /** Consecutive failed health checks of the kubelet. */
  readonly kubeletFailures: number;
  /** Packages that an administrator layered by hand. */
  readonly foreignPackages: number;
}

/**
 * The metrics of one machine. Names and kinds are the reference's (openshift/machine-config-operator
 * pkg/daemon/metrics.go, main), and `err` and `reason` are words of a closed list where the reference has whole
 * texts; values that the reference gives as times are 1.
 *
 * @param now milliseconds since the epoch
 */
export function daemonMetrics(metrics: DaemonMetrics, node: string, now: number): readonly MetricFamily[] {
  const family = (
    name: string,
    type: "gauge" | "counter",
    help: string,
    value: number,
    labels: Readonly<Record<string, string>> = {},
  ): MetricFamily => ({ name, type, help, labels: Object.keys(labels), samples: [{ labels, value }] });
  const { os, state, reason, config, driftSince } = metrics;
  return [
    ...(os === undefined
      ? []
      : [
          family("mcd_host_os_and_version", "gauge", "System that the machine runs.", 1, {
            os: os.name,
            version: os.version,
          }),
        ]),
    ...(state === ""
      ? []
      : [family("mcd_state", "gauge", "State of the daemon, with its reason.", 1, { state, reason })]),
    ...(config === ""
      ? []
      : [
          family("mcd_update_state", "gauge", "Configuration of the last update, and why it is not done.", 1, {
            config,
            err: state === "Done" || state === "Working" ? "" : reason,
          }),
        ]),
    family(
      "mcd_pivot_errors_total",
      "gauge",
      "Failures to bring a new system onto the machine since the last success.",
      metrics.osFailures,
    ),
    family(
      "mcd_reboots_failed_total",
      "counter",
      "Reboots that were asked for and did not come.",
      metrics.rebootFailures,
    ),
    family(
      "mcd_boots_last_hour",
      "gauge",
      "Boots of the machine within the last hour, whatever they were for.",
      [...metrics.boots.values()].filter((at) => at > now - hourMs).length,
    ),
    family("mcd_kubelet_state", "gauge", "Health checks of the kubelet that failed in a row.", metrics.kubeletFailures),
    family(
      "mcd_config_drift",
      "gauge",
      "Since when the machine differs from its configuration, in seconds since the epoch; 0 when it does not.",
      driftSince === undefined ? 0 : Math.floor(driftSince / 1000),
    ),
    family("mcd_local_unsupported_packages", "gauge", "Packages that were layered by hand.", metrics.foreignPackages, {
      node,
    }),
  ];
}
