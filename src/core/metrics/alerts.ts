import { namespace } from "../../api/names.ts";
import { type ReportReason, reportReasons } from "../../api/books/report-table.ts";

/**
 * A Prometheus rule, and what the person on call needs to know. Alerts that the reference has keep its names and
 * severities.
 */
export interface Alert {
  readonly name: string;
  readonly expression: string;
  /** How long the expression must hold, as a Prometheus duration; fires immediately when absent. */
  readonly for?: string;
  readonly severity: "critical" | "warning" | "info";
  /** One line, with the labels of its subject. */
  readonly summary: string;
  readonly means: string;
  /** Commands that show the cause; text in angle brackets comes from the alert. */
  readonly see: readonly string[];
  readonly remedy: string;
}

const inNamespace = `-n ${namespace}`;
const ofNode = "{{ $labels.node }}";
const ofPool = "{{ $labels.pool }}";
const logOf = (component: string) => `kubectl logs ${inNamespace} -l k8s-app=${component} --tail=100`;

/** Meaning and remedy from the closed list of reasons, so that books, conditions and alerts agree. */
const textsOf = (reason: ReportReason): Pick<Alert, "means" | "remedy"> => ({
  means: reportReasons[reason].means,
  remedy: reportReasons[reason].next,
});

/**
 * Daemons serve their metrics on a loopback address: these alerts fire only where something on the machine scrapes
 * them.
 */
export const alerts: readonly Alert[] = [
  {
    name: "MCCDrainError",
    expression: "mcc_drain_err > 0",
    severity: "warning",
    summary: `Draining ${ofNode} takes longer than its pool allows.`,
    means:
      "Pods do not leave the machine: a disruption budget forbids it, a pod does not end, or no controller would start it elsewhere. Nothing is forced unless the pool's policy says so, and the machine is not rebooted meanwhile. It holds one place of its pool's budget.",
    see: [
      "mco explain node/<node>",
      "kubectl get machineconfignode <node> -o jsonpath='{.status.conditions[?(@.type==\"Drained\")].message}'",
      "kubectl get pods -A --field-selector spec.nodeName=<node>",
    ],
    remedy:
      "Give the application named there room: more replicas, a budget that allows one to leave, or machines that can take its pods. A pod that nothing restarts has to be deleted by its owner. To let drains end automatically, give the pool a policy: docs/os-updates.md.",
  },
  {
    name: "MCCPoolAlert",
    expression: "mcc_pool_alert > 0",
    severity: "warning",
    summary: `${ofNode} is of the control plane, and a custom pool selects it too.`,
    means: "The machine stays in the pool of the control plane, and what the custom pool says does not reach it.",
    see: [
      "kubectl get node <node> --show-labels",
      "kubectl get machineconfigpools -o custom-columns=NAME:.metadata.name,NODES:.spec.nodeSelector",
    ],
    remedy: "Take the custom pool's label off the node, or narrow the pool's nodeSelector.",
  },
  {
    name: "MCCBootImageSkewEnforcementNone",
    expression: "mcc_boot_image_skew_enforcement_none == 1",
    severity: "info",
    summary: "The age of new machines' boot images is not checked.",
    means: "The MachineConfiguration says so. A machine that is made from a very old image may not be able to join.",
    see: ["kubectl get machineconfiguration cluster -o jsonpath='{.spec.bootImageSkewEnforcement}'"],
    remedy:
      "Nothing, where that was meant; otherwise change spec.bootImageSkewEnforcement of MachineConfiguration/cluster.",
  },
  {
    name: "MCOMachineDegraded",
    expression: "mco_degraded_machine_count > 0",
    for: "15m",
    severity: "warning",
    summary: `Machines of pool ${ofPool} cannot go on without help.`,
    means:
      "A configuration cannot be applied to a machine, or the machine differs from the applied configuration. It stays as it is.",
    see: [
      "mco explain pool/<pool>",
      'kubectl get machineconfignodes -o custom-columns=\'NAME:.metadata.name,DEGRADED:.status.conditions[?(@.type=="NodeDegraded")].status,WHY:.status.conditions[?(@.type=="NodeDegraded")].message\'',
    ],
    remedy:
      "The message names what to undo or to create. Where a configuration is at fault, correct or revert the MachineConfig: broken machines get the next target first, and take no place of the budget.",
  },
  {
    name: "MCOTargetQuarantined",
    expression: 'mco_waiting_machines{reason="TargetQuarantined"} > 0',
    for: "5m",
    severity: "warning",
    summary: `The roll-out of pool ${ofPool} has stopped: machines went back from its target.`,
    means:
      "Two machines, or the only one of the pool, could not boot their target, and rolled back on their own. No healthy machine gets the same target.",
    see: [
      "mco explain pool/<pool>",
      "kubectl get machineconfigpool <pool> -o jsonpath='{.metadata.annotations.machineconfiguration\\.openshift\\.io/quarantined}'",
    ],
    remedy:
      "Correct or revert the MachineConfig: a new target ends the quarantine. If the machine was at fault and not the configuration, repair it and take the annotation machineconfiguration.openshift.io/quarantined off the pool.",
  },
  {
    name: "MCORolloutStuck",
    expression:
      "mco_rollout_running_seconds > 3600 and on (pool) changes(mco_updated_machine_count[1h]) == 0 and on (pool) mco_pool_paused == 0",
    for: "15m",
    severity: "warning",
    summary: `No machine of pool ${ofPool} has got further for an hour.`,
    means: "A roll-out is under way, its pool is not paused, and for an hour no machine has reached the target.",
    see: [
      "mco explain pool/<pool>",
      "kubectl get machineconfigpool <pool> -o jsonpath='{.status.conditions[?(@.type==\"Updating\")].message}'",
    ],
    remedy: "The message names what each machine waits for, and mco explain says what would lift it.",
  },
  {
    name: "MCONodeUpdateSlow",
    expression:
      'max by (pool) (mco_node_out_of_service_longest_seconds{cause="Update"}) > 3600 and on (pool) max by (pool) (mco_node_out_of_service_longest_seconds{cause="Update"}) > 3 * histogram_quantile(0.5, sum by (pool, le) (increase(mco_node_out_of_service_seconds_bucket{cause="Update"}[30d])))',
    severity: "warning",
    summary: `A machine of pool ${ofPool} has been out of service for its update for more than an hour.`,
    means:
      "That is more than three times what the updates of this pool take in the middle. Something holds it: a drain, a download, a reboot that does not end, or a step that fails again and again.",
    see: ["mco explain pool/<pool>", "mco timeline pool/<pool> --since 6h", "mco book node/<node>"],
    remedy: "mco explain names the machine, the step and what would lift it; the machine's book says what was tried.",
  },
  {
    name: "MCODaemonSilent",
    expression: "mco_silent_machines > 0",
    for: "10m",
    severity: "warning",
    summary: `Daemons of pool ${ofPool} do not answer though their kubelets do.`,
    ...textsOf("DaemonSilent"),
    see: [
      "mco explain pool/<pool>",
      `kubectl get pods ${inNamespace} -l k8s-app=machine-config-daemon -o wide`,
      logOf("machine-config-daemon"),
    ],
  },
  {
    name: "MCOStateNotKept",
    expression: 'mco_health{component="StateKeeping"} < 1',
    for: "15m",
    severity: "warning",
    summary: "The state process does not keep all books.",
    means: `Everything else continues, and recent history can be read from the journals for a while. Most often a part of it is down or lines were missed: ${reportReasons.ChildDown.means}`,
    see: [
      "kubectl get machineconfiguration cluster -o jsonpath='{.status.conditions[?(@.type==\"StateKeeping\")]}'",
      logOf("machine-state-controller"),
      "mco book cluster",
    ],
    remedy: `The condition names the part and the reason (docs/errors.md). ${reportReasons.ChildDown.next}`,
  },
  {
    name: "MCOJoinOverdue",
    expression: "mco_join_overdue > 0",
    severity: "warning",
    summary: `A machine of pool ${ofPool} was given its configuration and has not joined.`,
    ...textsOf("JoinOverdue"),
    see: ["mco book pool/<pool>", "mco explain pool/<pool>"],
  },
  {
    name: "MCCInsecureAccess",
    expression: "mcc_insecure_access == 1",
    for: "1h",
    severity: "warning",
    summary: "The config server has given configurations to every client for an hour.",
    means:
      "The annotation config-server-access of MachineConfiguration/cluster is insecure: every client that reaches the port gets configurations with their secrets, without a credential.",
    see: [
      "mco status",
      "kubectl get machineconfiguration cluster -o jsonpath='{.metadata.annotations.machineconfiguration\\.openshift\\.io/config-server-access}'",
    ],
    remedy:
      "Give machines tokens (mco token create) and remove the annotation. Meanwhile, let only the machines' network reach port 22623; docs/audit.md finds who set the annotation.",
  },
  {
    name: "MCCCertificateDenied",
    expression: 'sum by (reason) (increase(mcc_certificate_requests_total{verdict="deny"}[15m])) > 0',
    severity: "warning",
    summary: "A certificate request of a machine was denied: {{ $labels.reason }}.",
    means:
      "A machine, or an account that machines join with, asked for a certificate that is never granted: one of another form, of another signer, or for names and addresses of others.",
    see: ["kubectl get csr", "kubectl get events -A --field-selector involvedObject.kind=CertificateSigningRequest"],
    remedy:
      "The request's condition says what is wrong with it and who asked. If no machine of yours asks so, expel the joining account or revoke the node: docs/threat-model.md, Runbooks.",
  },
  {
    name: "MCSTokensRefused",
    expression:
      'sum by (reason) (increase(mcs_requests_total{reason=~"Unauthorized|TokenExpired|TokenUsedUp|WrongPool"}[15m])) > 30',
    severity: "warning",
    summary: "The config server refuses many requests of machines that join: {{ $labels.reason }}.",
    means:
      "More than thirty requests of a quarter of an hour showed no good credential: machines with an old pointer config, or a client that guesses tokens or tries a stolen one.",
    see: [logOf("machine-config-server"), "mco token list", "mco book pool/<pool>"],
    remedy:
      "The server's journal names the addresses. Give machines of yours a new token (mco token create --pointer); keep other clients from port 22623. Revoke a token that is shown from addresses that are not yours.",
  },
  {
    name: "MCSUsesGivenBack",
    expression: "sum(increase(mcs_uses_given_back_total[1h])) > 5",
    severity: "warning",
    summary: "Uses of provisioning tokens are given back again and again.",
    means:
      "Clients end their connections after their token's use was stored and before the answer begins. A lossy network does that, and so does a client that looks for a way to read more often than its token allows.",
    see: [logOf("machine-config-server"), "mco token list"],
    remedy:
      "The log names the token, and status.lastUsedBy of its ProvisioningToken who showed it last. No byte was sent to these clients. Revoke the token if its user is not yours; otherwise look at the network between machines and control plane.",
  },
  {
    name: "MCSForeignConfigAsked",
    expression: 'sum(increase(mcs_deliveries_total{reason="NotYours"}[15m])) > 0',
    severity: "warning",
    summary: "A machine asked for a configuration that is not its own, and was refused.",
    means:
      "The daemon's token of a node was shown to read a configuration that neither the node was given nor its pool names. Daemons do not ask so, unless their Node's annotations were changed by others.",
    see: [logOf("machine-config-server"), "kubectl get machineconfignode <node> -o yaml"],
    remedy:
      "The log names the node and what it asked for. Compare the Node's desiredConfig annotation with its pool; if nothing explains it, treat the node as taken over and revoke it: docs/threat-model.md, Runbooks.",
  },
  {
    name: "MCCReconcileFailing",
    expression: 'sum by (subcontroller) (rate(mcc_reconcile_total{outcome="failed"}[10m])) > 0',
    for: "15m",
    severity: "warning",
    summary: "The controller {{ $labels.subcontroller }} keeps failing.",
    means: "Its passes fail repeatedly; the objects that it manages may be out of date.",
    see: [logOf("machine-config-controller"), "kubectl get machineconfigpools"],
    remedy:
      "The log names the failing request. If rights are missing, apply install/ again; if the API server is slow or unavailable, repair it.",
  },
  {
    name: "MCCDown",
    expression: "absent(mco_machine_count)",
    for: "15m",
    severity: "warning",
    summary: "No machine config controller reports any pool.",
    means:
      "No controller runs, none leads, or its metrics cannot be read. Machines keep their configuration; changes do not reach them.",
    see: [
      `kubectl get pods ${inNamespace}`,
      `kubectl get lease machine-config-controller ${inNamespace} -o yaml`,
      "mco explain clusteroperator/machine-config",
    ],
    remedy:
      "Let the controller's Deployment run again; the ClusterOperator machine-config says what keeps it from that.",
  },
  {
    name: "MCDRebootError",
    expression: "mcd_reboots_failed_total > 0",
    for: "5m",
    severity: "critical",
    summary: "A machine ({{ $labels.instance }}) was asked to reboot and stays up.",
    means: "Its update waits for the reboot, drained, and holds a place of its pool's budget. The daemon asks again.",
    see: ["kubectl get machineconfignodes", logOf("machine-config-daemon")],
    remedy:
      "Find the job that keeps the machine up (systemctl list-jobs), or reboot it by hand: the daemon finds the staged system.",
  },
  {
    name: "MCDRebootLoop",
    // One update boots a machine once or twice, a system that does not come up three times.
    expression: "mcd_boots_last_hour > 5",
    for: "1m",
    severity: "critical",
    summary: "A machine ({{ $labels.instance }}) has booted {{ $value }} times within an hour.",
    means:
      "The daemon boots a machine three times at most for one target. More boots are those of several targets, of an administrator, or of the machine itself: a watchdog, a kernel that panics, a failing power supply.",
    see: [
      "mco book node/<node>",
      "kubectl get machineconfignode <node> -o jsonpath='{.status.conditions[?(@.type==\"NodeDegraded\")].message}'",
      "journalctl --list-boots",
    ],
    remedy:
      "The book names each reboot that the daemon asked for, and why. If it asked for none, look at the machine's console and its kernel log. Pause the pool (spec.paused) while you look.",
  },
  {
    name: "MCDPivotError",
    expression: "mcd_pivot_errors_total > 0",
    for: "2m",
    severity: "warning",
    summary: "A machine ({{ $labels.instance }}) cannot bring its new operating system onto its disk.",
    means: "The image cannot be pulled or staged. Nothing was changed; it is tried again.",
    see: [
      "kubectl get machineconfignode <node> -o jsonpath='{.status.conditions[?(@.type==\"NodeDegraded\")].message}'",
      logOf("machine-config-daemon"),
    ],
    remedy:
      "The message names image and error: the registry, the pull secret, the disk's free space, or the image itself.",
  },
  {
    name: "MCDConfigDrift",
    expression: "mcd_config_drift > 0",
    for: "5m",
    severity: "warning",
    summary: "Files of a machine ({{ $labels.instance }}) differ from the applied configuration.",
    means: "They were changed on the machine. It takes no updates until an administrator decides.",
    see: [
      "kubectl get machineconfignode <node> -o jsonpath='{.status.conditions[?(@.type==\"NodeDegraded\")].message}'",
    ],
    remedy:
      "Undo the change on the machine, or create /run/machine-config-daemon-force on it to have the configuration applied again; what should stay belongs into a MachineConfig.",
  },
  {
    name: "KubeletHealthState",
    expression: "mcd_kubelet_state > 2",
    severity: "warning",
    summary: "The kubelet of a machine ({{ $labels.instance }}) does not answer.",
    means: "Its health check has failed three times in a row.",
    see: ["kubectl get node <node>", "journalctl -u kubelet (on the machine)"],
    remedy: "Its log says why. If it began with an update, revert the MachineConfig: the machine gets the fix first.",
  },
];

/** The PrometheusRule object: the rules, each with its runbook. */
export function prometheusRule(): object {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: { name: "machine-config", namespace, labels: { "k8s-app": "machine-config-controller" } },
    spec: {
      groups: [
        {
          name: "machine-config",
          rules: alerts.map((alert) => ({
            alert: alert.name,
            expr: alert.expression,
            ...(alert.for === undefined ? {} : { for: alert.for }),
            labels: { severity: alert.severity, namespace },
            annotations: {
              summary: alert.summary,
              description: alert.means,
              runbook: `${alert.see.map((command) => `See: ${command}`).join("\n")}\n${alert.remedy}`,
            },
          })),
        },
      ],
    },
  };
}

/** Metrics that an expression names. */
export const metricsNamedBy = (expression: string): readonly string[] => [
  ...new Set(
    [...expression.matchAll(/\b(?:mco|mcc|mcd|mcs|ocl)_[a-z_]+|\bos_image_url_override\b/g)].map(([name]) =>
      name.replace(/_bucket$/, ""),
    ),
  ),
];
