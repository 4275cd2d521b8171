import type { KubeObject, PrinterColumn, TableCells } from "./contract.ts";
import { at, isList, isObject, listAt, numberAt, objectAt, textAt } from "./json-values.ts";
import { compileJsonPath } from "./json-path.ts";
import { printLabelSelector } from "./selectors.ts";

type Column = TableCells["columns"][number];

const descriptions: Readonly<Record<string, string>> = {
  Name: "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically.",
  Age: "CreationTimestamp is a timestamp representing the server time when this object was created.",
};

/** A duration in the words of `kubectl get`: kubernetes/apimachinery pkg/util/duration/duration.go (master). */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 192) return hours % 24 === 0 ? `${days}d` : `${days}d${hours % 24}h`;
  if (days < 730) return `${days}d`;
  const years = Math.trunc(days / 365);
  if (years < 8) return days % 365 === 0 ? `${years}y` : `${years}y${days % 365}d`;
  return `${years}y`;
}

/** How long ago an RFC 3339 time was. `now`: milliseconds since the epoch. */
export function age(timestamp: unknown, now: number): string {
  if (typeof timestamp !== "string" || timestamp === "") return "<unknown>";
  const then = Date.parse(timestamp);
  return Number.isNaN(then) ? "<invalid>" : humanDuration(now - then);
}

/** The table of a custom kind: the name, and its `additionalPrinterColumns` (the age where there are none). */
export function customTable(columns: readonly PrinterColumn[] | undefined): TableCells {
  const given =
    columns === undefined || columns.length === 0
      ? [{ name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: descriptions["Age"] ?? "" }]
      : columns;
  const readers = given.map(({ type, jsonPath }) => {
    const path = compileJsonPath(jsonPath);
    return (object: KubeObject, now: number): unknown =>
      path.verdict === "compiled" ? cell(type, path.first(object), now) : null;
  });
  return {
    columns: [
      column("Name", { format: "name" }),
      ...given.map(({ name, type, format, description, priority, jsonPath }): Column => ({
        name,
        type,
        format: format ?? "",
        description: description ?? `Custom resource definition column (in JSONPath format): ${jsonPath}`,
        priority: priority ?? 0,
      })),
    ],
    row: (object, now) => [object.metadata.name ?? "", ...readers.map((read) => read(object, now))],
  };
}

/** kubernetes/apiextensions-apiserver pkg/registry/customresource/tableconvertor (master) */
function cell(type: string, value: unknown, now: number): unknown {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? age(value, now) : "<invalid>";
    default:
      return typeof value === "string"
        ? value
        : typeof value === "object"
          ? JSON.stringify(value)
          : String(value as number | boolean);
  }
}

function column(
  name: string,
  more: { readonly type?: string; readonly format?: string; readonly priority?: number } = {},
): Column {
  return {
    name,
    type: more.type ?? "string",
    format: more.format ?? "",
    description: descriptions[name] ?? "",
    priority: more.priority ?? 0,
  };
}

/** `Name Ready Age+wide #Count`: `+` prints only with `-o wide`, `#` is a number. */
function columns(text: string): readonly Column[] {
  return text.split("|").map((name) => {
    const bare = name.replace(/^[+#]+/, "");
    return column(bare, {
      ...(name.includes("#") ? { type: "integer" } : {}),
      ...(name.includes("+") ? { priority: 1 } : {}),
      ...(bare === "Name" ? { format: "name" } : {}),
    });
  });
}

function table(text: string, cells: (object: KubeObject, now: number) => readonly unknown[]): TableCells {
  return { columns: columns(text), row: (object, now) => [object.metadata.name ?? "", ...cells(object, now)] };
}

function created({ metadata }: KubeObject, now: number): string {
  return age(metadata.creationTimestamp, now);
}

function joined(values: readonly string[]): string {
  return values.length === 0 ? "<none>" : values.join(",");
}

function containers(object: KubeObject, field: "name" | "image"): string {
  const spec =
    object.kind === "CronJob"
      ? objectAt(object, "spec", "jobTemplate", "spec", "template", "spec")
      : objectAt(object, "spec", "template", "spec");
  return listAt(spec, "containers")
    .map((container) => textAt(container, field))
    .join(",");
}

function podRow(pod: KubeObject, now: number): readonly unknown[] {
  const statuses = listAt(pod, "status", "containerStatuses");
  const initial = listAt(pod, "status", "initContainerStatuses");
  let restarts = 0;
  let lastRestart: string | undefined;
  let ready = 0;
  let reason = textAt(pod, "status", "reason") || textAt(pod, "status", "phase");
  for (const condition of listAt(pod, "status", "conditions")) {
    if (textAt(condition, "type") === "PodScheduled" && textAt(condition, "reason") === "SchedulingGated")
      reason = "SchedulingGated";
  }
  const count = (status: unknown): void => {
    restarts += numberAt(status, "restartCount");
    const finished = textAt(status, "lastState", "terminated", "finishedAt");
    if (finished !== "" && (lastRestart === undefined || finished > lastRestart)) lastRestart = finished;
  };
  let initializing = false;
  const initTotal = listAt(pod, "spec", "initContainers").length;
  for (const [index, status] of initial.entries()) {
    count(status);
    const terminated = at(status, "state", "terminated");
    const waiting = textAt(status, "state", "waiting", "reason");
    if (isObject(terminated) && numberAt(terminated, "exitCode") === 0) continue;
    if (initializing) continue;
    if (isObject(terminated)) reason = `Init:${terminationReason(terminated)}`;
    else if (waiting !== "" && waiting !== "PodInitializing") reason = `Init:${waiting}`;
    else reason = `Init:${index}/${initTotal}`;
    initializing = true;
  }
  if (!initializing) {
    restarts = 0;
    lastRestart = undefined;
    let running = false;
    for (const status of statuses.toReversed()) {
      count(status);
      const terminated = at(status, "state", "terminated");
      const waiting = textAt(status, "state", "waiting", "reason");
      if (waiting !== "") reason = waiting;
      else if (isObject(terminated)) reason = terminationReason(terminated);
      else if (at(status, "ready") === true && isObject(at(status, "state", "running"))) {
        running = true;
        ready++;
      }
    }
    if (reason === "Completed" && running) {
      const isReady = listAt(pod, "status", "conditions").some(
        (condition) => textAt(condition, "type") === "Ready" && textAt(condition, "status") === "True",
      );
      reason = isReady ? "Running" : "NotReady";
    }
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    if (textAt(pod, "status", "reason") === "NodeLost") reason = "Unknown";
    else if (!/^(?:Succeeded|Failed)$/.test(textAt(pod, "status", "phase"))) reason = "Terminating";
  }
  const gates = listAt(pod, "spec", "readinessGates");
  const met = new Set(
    listAt(pod, "status", "conditions")
      .filter((condition) => textAt(condition, "status") === "True")
      .map((condition) => textAt(condition, "type")),
  );
  const passed = gates.filter((gate) => met.has(textAt(gate, "conditionType"))).length;
  return [
    `${ready}/${listAt(pod, "spec", "containers").length}`,
    reason,
    restarts > 0 && lastRestart !== undefined ? `${restarts} (${age(lastRestart, now)} ago)` : String(restarts),
    created(pod, now),
    textAt(pod, "status", "podIP") || "<none>",
    textAt(pod, "spec", "nodeName") || "<none>",
    textAt(pod, "status", "nominatedNodeName") || "<none>",
    gates.length === 0 ? "<none>" : `${passed}/${gates.length}`,
  ];
}

function terminationReason(terminated: unknown): string {
  const reason = textAt(terminated, "reason");
  if (reason !== "") return reason;
  const signal = numberAt(terminated, "signal");
  return signal === 0 ? `ExitCode:${numberAt(terminated, "exitCode")}` : `Signal:${signal}`;
}

const roleLabel = "node-role.kubernetes.io/";

function nodeRow(node: KubeObject, now: number): readonly unknown[] {
  const ready = listAt(node, "status", "conditions").find((condition) => textAt(condition, "type") === "Ready");
  const status = [ready === undefined ? "Unknown" : textAt(ready, "status") === "True" ? "Ready" : "NotReady"];
  if (at(node, "spec", "unschedulable") === true) status.push("SchedulingDisabled");
  const roles = Object.entries(node.metadata.labels ?? {}).flatMap(([key, value]) => {
    if (key.startsWith(roleLabel) && key.length > roleLabel.length) return [key.slice(roleLabel.length)];
    return key === "kubernetes.io/role" && value !== "" ? [value] : [];
  });
  const address = (type: string): string => {
    const found = listAt(node, "status", "addresses").find((one) => textAt(one, "type") === type);
    return textAt(found, "address") || "<none>";
  };
  const info = (field: string): string => textAt(node, "status", "nodeInfo", field) || "<unknown>";
  return [
    status.join(","),
    joined([...new Set(roles)].toSorted()),
    created(node, now),
    textAt(node, "status", "nodeInfo", "kubeletVersion"),
    address("InternalIP"),
    address("ExternalIP"),
    info("osImage"),
    info("kernelVersion"),
    info("containerRuntimeVersion"),
  ];
}

function jobRow(job: KubeObject, now: number): readonly unknown[] {
  const is = (type: string): boolean =>
    listAt(job, "status", "conditions").some(
      (condition) => textAt(condition, "type") === type && textAt(condition, "status") === "True",
    );
  const completions = at(job, "spec", "completions");
  const parallelism = numberAt(job, "spec", "parallelism");
  const succeeded = numberAt(job, "status", "succeeded");
  let done = `${succeeded}/1`;
  if (typeof completions === "number") done = `${succeeded}/${completions}`;
  else if (parallelism > 1) done = `${succeeded}/1 of ${parallelism}`;
  let status = "Running";
  if (is("Complete")) status = "Complete";
  else if (is("Failed")) status = "Failed";
  else if (job.metadata.deletionTimestamp !== undefined) status = "Terminating";
  else if (is("Suspended")) status = "Suspended";
  else if (is("FailureTarget")) status = "FailureTarget";
  else if (is("SuccessCriteriaMet")) status = "SuccessCriteriaMet";
  const started = Date.parse(textAt(job, "status", "startTime"));
  const completed = Date.parse(textAt(job, "status", "completionTime"));
  const duration = Number.isNaN(started) ? "" : humanDuration((Number.isNaN(completed) ? now : completed) - started);
  return [
    status,
    done,
    duration,
    created(job, now),
    containers(job, "name"),
    containers(job, "image"),
    printLabelSelector(at(job, "spec", "selector")),
  ];
}

function eventRow(event: KubeObject, now: number): readonly unknown[] {
  const first =
    textAt(event, "firstTimestamp") || textAt(event, "deprecatedFirstTimestamp") || textAt(event, "eventTime");
  const series = at(event, "series");
  const last = isObject(series)
    ? textAt(series, "lastObservedTime")
    : textAt(event, "lastTimestamp") || textAt(event, "deprecatedLastTimestamp");
  const count = isObject(series)
    ? numberAt(series, "count")
    : numberAt(event, "count") || numberAt(event, "deprecatedCount") || 1;
  const about = event["involvedObject"] ?? event["regarding"];
  const target = `${textAt(about, "kind").toLowerCase()}/${textAt(about, "name")}`;
  const component =
    textAt(event, "reportingComponent") ||
    textAt(event, "reportingController") ||
    textAt(event, "source", "component") ||
    textAt(event, "deprecatedSource", "component");
  const host = textAt(event, "reportingInstance") || textAt(event, "source", "host");
  const firstAge = age(first, now);
  return [
    last === "" ? firstAge : age(last, now),
    textAt(event, "type"),
    textAt(event, "reason"),
    target,
    textAt(about, "fieldPath"),
    [component, host].filter((part) => part !== "").join(", "),
    (textAt(event, "message") || textAt(event, "note")).trim(),
    firstAge,
    count,
    event.metadata.name ?? "",
  ];
}

function bindingRow(binding: KubeObject, now: number): readonly unknown[] {
  const subjects = (kind: string): string =>
    listAt(binding, "subjects")
      .filter((subject) => textAt(subject, "kind") === kind)
      .map((subject) =>
        kind === "ServiceAccount"
          ? `${textAt(subject, "namespace")}/${textAt(subject, "name")}`
          : textAt(subject, "name"),
      )
      .join(", ");
  return [
    `${textAt(binding, "roleRef", "kind")}/${textAt(binding, "roleRef", "name")}`,
    created(binding, now),
    subjects("User"),
    subjects("Group"),
    subjects("ServiceAccount"),
  ];
}

function serviceRow(service: KubeObject, now: number): readonly unknown[] {
  const ports = listAt(service, "spec", "ports").map((port) => {
    const node = numberAt(port, "nodePort");
    return `${numberAt(port, "port")}${node > 0 ? `:${node}` : ""}/${textAt(port, "protocol")}`;
  });
  const type = textAt(service, "spec", "type");
  const external = [
    ...listAt(service, "spec", "externalIPs").map(String),
    ...listAt(service, "status", "loadBalancer", "ingress").map((one) => textAt(one, "ip") || textAt(one, "hostname")),
  ];
  let externalText = joined(external);
  if (type === "ExternalName") externalText = textAt(service, "spec", "externalName");
  else if (type === "LoadBalancer" && external.length === 0) externalText = "<pending>";
  const selector = Object.entries(objectAt(service, "spec", "selector"));
  return [
    type,
    textAt(service, "spec", "clusterIP") || "<none>",
    externalText,
    joined(ports),
    created(service, now),
    joined(selector.map(([key, value]) => `${key}=${String(value)}`).toSorted()),
  ];
}

function signingRequestRow(request: KubeObject, now: number): readonly unknown[] {
  const conditions = listAt(request, "status", "conditions").map((condition) => textAt(condition, "type"));
  let status = conditions.includes("Denied") ? "Denied" : conditions.includes("Approved") ? "Approved" : "Pending";
  if (conditions.includes("Failed")) status += ",Failed";
  if (textAt(request, "status", "certificate") !== "") status += ",Issued";
  const seconds = at(request, "spec", "expirationSeconds");
  return [
    created(request, now),
    textAt(request, "spec", "signerName") || "<none>",
    textAt(request, "spec", "username"),
    typeof seconds === "number" ? humanDuration(seconds * 1000) : "<none>",
    status,
  ];
}

function count(object: KubeObject, ...fields: readonly string[]): number {
  return fields.reduce((sum, field) => sum + Object.keys(objectAt(object, field)).length, 0);
}

/** Endpoints that a row names. The others are only counted: there is one for each address by each port. */
const shownEndpoints = 3;

function endpoints(object: KubeObject): string {
  const shown: string[] = [];
  let all = 0;
  for (const subset of listAt(object, "subsets")) {
    const addresses = listAt(subset, "addresses");
    const ports = listAt(subset, "ports");
    all += addresses.length * Math.max(1, ports.length);
    for (const port of ports.length === 0 ? [undefined] : ports.slice(0, shownEndpoints)) {
      for (const address of addresses.slice(0, shownEndpoints - shown.length)) {
        const ip = textAt(address, "ip");
        shown.push(port === undefined ? ip : `${ip}:${numberAt(port, "port")}`);
      }
    }
  }
  if (all === 0) return "<none>";
  return all > shown.length ? `${shown.join(",")} + ${all - shown.length} more...` : shown.join(",");
}

function orZero(value: unknown): string {
  return typeof value === "number" || typeof value === "string" ? String(value) : "0";
}

function orNotAvailable(value: unknown): string {
  return typeof value === "number" || typeof value === "string" ? String(value) : "N/A";
}

const replicaTail = (object: KubeObject): readonly unknown[] => [
  containers(object, "name"),
  containers(object, "image"),
  printLabelSelector(at(object, "spec", "selector")),
];
const ageOnly = table("Name|Created At", ({ metadata }) => [metadata.creationTimestamp ?? ""]);
const bindings = table("Name|Role|Age|+Users|+Groups|+ServiceAccounts", bindingRow);
const webhooks = table("Name|#Webhooks|Age", (object, now) => [
  listAt(object, "webhooks").length,
  created(object, now),
]);
const events: TableCells = {
  columns: columns("Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+#Count|+Name"),
  row: eventRow,
};

/**
 * By `Kind` (events of both groups print alike): kubernetes/kubernetes pkg/printers/internalversion/printers.go
 * (master).
 */
const builtin: Readonly<Record<string, TableCells>> = {
  Pod: table("Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates", podRow),
  Node: table(
    "Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime",
    nodeRow,
  ),
  Namespace: table("Name|Status|Age", (object, now) => [textAt(object, "status", "phase"), created(object, now)]),
  ConfigMap: table("Name|Data|Age", (object, now) => [count(object, "data", "binaryData"), created(object, now)]),
  Secret: table("Name|Type|Data|Age", (object, now) => [
    textAt(object, "type"),
    count(object, "data"),
    created(object, now),
  ]),
  ServiceAccount: table("Name|#Secrets|Age", (object, now) => [listAt(object, "secrets").length, created(object, now)]),
  Service: table("Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector", serviceRow),
  Endpoints: table("Name|Endpoints|Age", (object, now) => [endpoints(object), created(object, now)]),
  Event: events,
  ResourceQuota: table("Name|Request|Limit|Age", (object, now) => {
    const used = (limits: boolean): string =>
      Object.entries(objectAt(object, "status", "hard"))
        .filter(([key]) => key.startsWith("limits.") === limits)
        .map(([key, hard]) => `${key}: ${orZero(at(object, "status", "used", key))}/${orZero(hard)}`)
        .join(", ");
    return [used(false), used(true), created(object, now)];
  }),
  Deployment: table("Name|Ready|#Up-to-date|#Available|Age|+Containers|+Images|+Selector", (object, now) => [
    `${numberAt(object, "status", "readyReplicas")}/${numberAt(object, "spec", "replicas")}`,
    numberAt(object, "status", "updatedReplicas"),
    numberAt(object, "status", "availableReplicas"),
    created(object, now),
    ...replicaTail(object),
  ]),
  ReplicaSet: table("Name|#Desired|#Current|#Ready|Age|+Containers|+Images|+Selector", (object, now) => [
    numberAt(object, "spec", "replicas"),
    numberAt(object, "status", "replicas"),
    numberAt(object, "status", "readyReplicas"),
    created(object, now),
    ...replicaTail(object),
  ]),
  DaemonSet: table(
    "Name|#Desired|#Current|#Ready|#Up-to-date|#Available|Node Selector|Age|+Containers|+Images|+Selector",
    (object, now) => [
      numberAt(object, "status", "desiredNumberScheduled"),
      numberAt(object, "status", "currentNumberScheduled"),
      numberAt(object, "status", "numberReady"),
      numberAt(object, "status", "updatedNumberScheduled"),
      numberAt(object, "status", "numberAvailable"),
      joined(
        Object.entries(objectAt(object, "spec", "template", "spec", "nodeSelector"))
          .map(([key, value]) => `${key}=${String(value)}`)
          .toSorted(),
      ),
      created(object, now),
      ...replicaTail(object),
    ],
  ),
  StatefulSet: table("Name|Ready|Age|+Containers|+Images", (object, now) => [
    `${numberAt(object, "status", "readyReplicas")}/${numberAt(object, "spec", "replicas")}`,
    created(object, now),
    containers(object, "name"),
    containers(object, "image"),
  ]),
  ControllerRevision: table("Name|Controller|#Revision|Age", (object, now) => {
    const owner = object.metadata.ownerReferences?.find((one) => one.controller === true);
    return [
      owner === undefined
        ? "<none>"
        : `${owner.kind.toLowerCase()}.${owner.apiVersion.split("/")[0] ?? ""}/${owner.name}`,
      numberAt(object, "revision"),
      created(object, now),
    ];
  }),
  Job: table("Name|Status|Completions|Duration|Age|+Containers|+Images|+Selector", jobRow),
  CronJob: table(
    "Name|Schedule|Timezone|Suspend|#Active|Last Schedule|Age|+Containers|+Images|+Selector",
    (object, now) => [
      textAt(object, "spec", "schedule"),
      textAt(object, "spec", "timeZone") || "<none>",
      at(object, "spec", "suspend") === true ? "True" : "False",
      listAt(object, "status", "active").length,
      textAt(object, "status", "lastScheduleTime") === ""
        ? "<none>"
        : age(textAt(object, "status", "lastScheduleTime"), now),
      created(object, now),
      containers(object, "name"),
      containers(object, "image"),
      printLabelSelector(at(object, "spec", "jobTemplate", "spec", "selector")),
    ],
  ),
  PodDisruptionBudget: table("Name|Min Available|Max Unavailable|#Allowed Disruptions|Age", (object, now) => [
    orNotAvailable(at(object, "spec", "minAvailable")),
    orNotAvailable(at(object, "spec", "maxUnavailable")),
    numberAt(object, "status", "disruptionsAllowed"),
    created(object, now),
  ]),
  Lease: table("Name|Holder|Age", (object, now) => [textAt(object, "spec", "holderIdentity"), created(object, now)]),
  Role: ageOnly,
  ClusterRole: ageOnly,
  RoleBinding: bindings,
  ClusterRoleBinding: bindings,
  CustomResourceDefinition: ageOnly,
  ValidatingWebhookConfiguration: webhooks,
  MutatingWebhookConfiguration: webhooks,
  ValidatingAdmissionPolicy: table("Name|#Validations|ParamKind|Age", (object, now) => {
    const kind = at(object, "spec", "paramKind");
    return [
      listAt(object, "spec", "validations").length,
      isObject(kind) ? `${textAt(kind, "apiVersion")}/${textAt(kind, "kind")}` : "<unset>",
      created(object, now),
    ];
  }),
  ValidatingAdmissionPolicyBinding: table("Name|PolicyName|ParamRef|Age", (object, now) => {
    const reference = at(object, "spec", "paramRef");
    const namespace = textAt(reference, "namespace") || "*";
    return [
      textAt(object, "spec", "policyName"),
      isObject(reference) ? `${namespace}/${textAt(reference, "name")}` : "<unset>",
      created(object, now),
    ];
  }),
  CertificateSigningRequest: table("Name|Age|SignerName|Requestor|RequestedDuration|Condition", signingRequestRow),
  NetworkPolicy: table("Name|Pod-Selector|Age", (object, now) => [
    printLabelSelector(at(object, "spec", "podSelector")),
    created(object, now),
  ]),
  PriorityClass: table("Name|#Value|Global-Default|Age|PreemptionPolicy", (object, now) => [
    numberAt(object, "value"),
    at(object, "globalDefault") === true,
    created(object, now),
    textAt(object, "preemptionPolicy"),
  ]),
};

/** The table of a built-in kind; kinds without a printer show name and time of creation. */
export function builtinTable(kind: string): TableCells {
  return builtin[kind] ?? ageOnly;
}

/** Whether a value is a list of printable columns, for callers that have only the object. */
export function isPrinterColumns(value: unknown): value is PrinterColumn[] {
  return (
    isList(value) &&
    value.every(
      (one) =>
        isObject(one) &&
        typeof one["name"] === "string" &&
        typeof one["jsonPath"] === "string" &&
        typeof one["type"] === "string",
    )
  );
}
