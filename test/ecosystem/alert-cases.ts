/** Labels of an alert, without those that all have. */
type Labels = Readonly<Record<string, string>>;

/** The alerts that fire at a minute of a case, by their labels, with the value behind them where it is shown. */
interface Moment {
  readonly minute: number;
  readonly fires: readonly Labels[];
  /** As the summary prints it. */
  readonly value?: string;
}

/** An alert, series in promtool's notation (one sample a minute), and when it fires. */
export interface AlertCase {
  readonly alert: string;
  readonly series: Readonly<Record<string, string>>;
  readonly moments: readonly Moment[];
}

const none = [] as const;

/** Of each alert: silence before its cause, its delay, the firing, and the end of the cause. */
export const alertCases: readonly AlertCase[] = [
  {
    alert: "MCCDrainError",
    series: { 'mcc_drain_err{node="w0"}': "0x4 1x5 0x5", 'mcc_drain_err{node="w1"}': "0x20" },
    moments: [
      { minute: 4, fires: none },
      { minute: 6, fires: [{ node: "w0" }] },
      { minute: 12, fires: none },
    ],
  },
  {
    alert: "MCCPoolAlert",
    series: { 'mcc_pool_alert{node="m0"}': "0x4 1x5 0x5" },
    moments: [
      { minute: 4, fires: none },
      { minute: 6, fires: [{ node: "m0" }] },
      { minute: 12, fires: none },
    ],
  },
  {
    alert: "MCCBootImageSkewEnforcementNone",
    series: { mcc_boot_image_skew_enforcement_none: "0x4 1x5 0x5" },
    moments: [
      { minute: 4, fires: none },
      { minute: 6, fires: [{}] },
      { minute: 12, fires: none },
    ],
  },
  {
    alert: "MCOMachineDegraded",
    series: {
      'mco_degraded_machine_count{pool="worker"}': "0x9 1x30 0x5",
      // Ten minutes are forgiven.
      'mco_degraded_machine_count{pool="infra"}': "0x9 1x9 0x26",
    },
    moments: [
      { minute: 20, fires: none },
      { minute: 26, fires: [{ pool: "worker" }] },
      { minute: 42, fires: none },
    ],
  },
  {
    alert: "MCOTargetQuarantined",
    series: {
      'mco_waiting_machines{pool="worker",reason="TargetQuarantined"}': "0x4 2x20 0x5",
      'mco_waiting_machines{pool="worker",reason="BudgetExhausted"}': "5x30",
    },
    moments: [
      { minute: 8, fires: none },
      { minute: 12, fires: [{ pool: "worker", reason: "TargetQuarantined" }] },
      { minute: 27, fires: none },
    ],
  },
  {
    alert: "MCORolloutStuck",
    series: {
      'mco_rollout_running_seconds{pool="worker"}': "0+60x300",
      'mco_updated_machine_count{pool="worker"}': "1x100 2x200",
      'mco_pool_paused{pool="worker"}': "0x300",
      // It goes on, a machine each half an hour.
      'mco_rollout_running_seconds{pool="infra"}': "0+60x300",
      'mco_updated_machine_count{pool="infra"}': "1x29 2x29 3x29 4x29 5x29 6x29 7x29 8x29 9x29 10x29",
      'mco_pool_paused{pool="infra"}': "0x300",
      // Nothing is expected of a paused one.
      'mco_rollout_running_seconds{pool="paused"}': "0+60x300",
      'mco_updated_machine_count{pool="paused"}': "1x300",
      'mco_pool_paused{pool="paused"}': "1x300",
    },
    moments: [
      { minute: 60, fires: none },
      { minute: 90, fires: [{ pool: "worker" }] },
      { minute: 110, fires: none },
      { minute: 240, fires: [{ pool: "worker" }] },
    ],
  },
  {
    alert: "MCONodeUpdateSlow",
    series: {
      'mco_node_out_of_service_longest_seconds{pool="worker",cause="Update"}': "0x9 0+60x150 0x9",
      'mco_node_out_of_service_longest_seconds{pool="infra",cause="Drain"}': "9000x170",
      // Machines of this pool take two hours each: this one is no exception.
      'mco_node_out_of_service_longest_seconds{pool="storage",cause="Update"}': "0x9 0+60x150 0x9",
      'mco_node_out_of_service_seconds_bucket{pool="worker",cause="Update",le="300"}': "0 10x170",
      'mco_node_out_of_service_seconds_bucket{pool="worker",cause="Update",le="+Inf"}': "0 10x170",
      'mco_node_out_of_service_seconds_bucket{pool="storage",cause="Update",le="3600"}': "0x171",
      'mco_node_out_of_service_seconds_bucket{pool="storage",cause="Update",le="14400"}': "0 10x170",
      'mco_node_out_of_service_seconds_bucket{pool="storage",cause="Update",le="+Inf"}': "0 10x170",
    },
    moments: [
      { minute: 60, fires: none },
      { minute: 80, fires: [{ pool: "worker" }] },
      { minute: 168, fires: none },
    ],
  },
  {
    alert: "MCODaemonSilent",
    series: { 'mco_silent_machines{pool="worker"}': "0x4 1x20 0x5" },
    moments: [
      { minute: 10, fires: none },
      { minute: 16, fires: [{ pool: "worker" }] },
      { minute: 27, fires: none },
    ],
  },
  {
    alert: "MCOStateNotKept",
    series: {
      'mco_health{component="StateKeeping"}': "1x4 0.5x25 1x5",
      'mco_health{component="Controller"}': "0x40",
    },
    moments: [
      { minute: 15, fires: none },
      { minute: 21, fires: [{ component: "StateKeeping" }] },
      { minute: 32, fires: none },
    ],
  },
  {
    alert: "MCOJoinOverdue",
    series: { 'mco_join_overdue{pool="worker"}': "0x4 1x5 0x5" },
    moments: [
      { minute: 4, fires: none },
      { minute: 6, fires: [{ pool: "worker" }] },
      { minute: 12, fires: none },
    ],
  },
  {
    alert: "MCCInsecureAccess",
    series: { mcc_insecure_access: "0x4 1x80 0x5" },
    moments: [
      { minute: 60, fires: none },
      { minute: 66, fires: [{}] },
      { minute: 87, fires: none },
    ],
  },
  {
    alert: "MCCCertificateDenied",
    series: {
      'mcc_certificate_requests_total{verdict="deny",reason="NameTaken"}': "0x4 1x30",
      'mcc_certificate_requests_total{verdict="approve",reason="Bound"}': "0+1x35",
    },
    moments: [
      { minute: 4, fires: none },
      { minute: 8, fires: [{ reason: "NameTaken" }] },
      { minute: 25, fires: none },
    ],
  },
  {
    alert: "MCSTokensRefused",
    series: {
      'mcs_requests_total{reason="TokenExpired",code="403"}': "0x4 0+10x4 40x25",
      // A few are a machine that tries again.
      'mcs_requests_total{reason="WrongPool",code="403"}': "0x4 0+1x9 9x20",
      'mcs_requests_total{reason="Served",code="200"}': "0+100x33",
    },
    moments: [
      { minute: 4, fires: none },
      { minute: 10, fires: [{ reason: "TokenExpired" }] },
      { minute: 28, fires: none },
    ],
  },
  {
    alert: "MCSUsesGivenBack",
    series: { mcs_uses_given_back_total: "0x4 0+2x4 8x80" },
    moments: [
      { minute: 4, fires: none },
      { minute: 10, fires: [{}] },
      { minute: 80, fires: none },
    ],
  },
  {
    alert: "MCSForeignConfigAsked",
    series: {
      'mcs_deliveries_total{reason="NotYours"}': "0x4 1x30",
      'mcs_deliveries_total{reason="Delivered"}': "0+1x35",
    },
    moments: [
      { minute: 4, fires: none },
      { minute: 8, fires: [{}] },
      { minute: 25, fires: none },
    ],
  },
  {
    alert: "MCCReconcileFailing",
    series: {
      'mcc_reconcile_total{subcontroller="render",outcome="failed"}': "0x4 0+1x30 30x30",
      'mcc_reconcile_total{subcontroller="node",outcome="done"}': "0+1x60",
    },
    moments: [
      { minute: 15, fires: none },
      { minute: 24, fires: [{ subcontroller: "render" }] },
      { minute: 60, fires: none },
    ],
  },
  {
    alert: "MCCDown",
    series: { 'mco_machine_count{pool="worker"}': "3x4 _x30 3x5" },
    moments: [
      { minute: 4, fires: none },
      { minute: 15, fires: none },
      { minute: 30, fires: [{}] },
      { minute: 38, fires: none },
    ],
  },
  {
    alert: "MCDRebootError",
    series: { 'mcd_reboots_failed_total{instance="w0"}': "0x4 1x20 0x5" },
    moments: [
      { minute: 8, fires: none },
      { minute: 12, fires: [{ instance: "w0" }] },
      { minute: 28, fires: none },
    ],
  },
  {
    alert: "MCDRebootLoop",
    series: { 'mcd_boots_last_hour{instance="w0"}': "5x4 6x9 1x5" },
    moments: [
      { minute: 4, fires: none },
      { minute: 8, fires: [{ instance: "w0" }], value: "6" },
      { minute: 17, fires: none },
    ],
  },
  {
    alert: "MCDPivotError",
    series: { 'mcd_pivot_errors_total{instance="w0"}': "0x4 1x9 0x5" },
    moments: [
      { minute: 6, fires: none },
      { minute: 9, fires: [{ instance: "w0" }] },
      { minute: 17, fires: none },
    ],
  },
  {
    alert: "MCDConfigDrift",
    series: { 'mcd_config_drift{instance="w0"}': "0x4 1800000000x20 0x5" },
    moments: [
      { minute: 8, fires: none },
      { minute: 12, fires: [{ instance: "w0" }] },
      { minute: 28, fires: none },
    ],
  },
  {
    alert: "KubeletHealthState",
    series: { 'mcd_kubelet_state{instance="w0"}': "0x4 1 2 3x9 0x5" },
    moments: [
      { minute: 6, fires: none },
      { minute: 8, fires: [{ instance: "w0" }] },
      { minute: 19, fires: none },
    ],
  },
];
