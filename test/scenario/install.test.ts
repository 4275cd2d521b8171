import { readFileSync, readdirSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import {
  ClusterOperator,
  MachineConfig,
  MachineConfigPool,
  definedResources,
  kubernetes,
  names,
} from "../../src/api/index.ts";
import { type KubeObject, conditionOf } from "../../src/api/schema/object.ts";
import { version } from "../../src/cli/version.ts";
import { suiteImage } from "../../src/standin/cluster/host/pod-worker.ts";
import {
  admission,
  admissionService,
  admissionWebhook,
  builtInPools,
  bootstrapAccounts,
  builderDeployment,
  configServerDaemonSet,
  configServerPorts,
  configServerService,
  controllerDeployment,
  daemonSet,
  gate,
  stateDeployment,
  stateMetrics,
  stateService,
} from "../../src/operator/manifests.ts";
import { TestCluster, annotation, hasApiServer, hasKubectl, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations, machineNamespace, namespace, objects } = names;
const root = join(import.meta.dirname, "../..");
const machines = ["master-0", "worker-0"];
let cluster: TestCluster;

async function kubectl(args: string, input?: string): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args.split(" "), {
    timeoutMs: 120_000,
    ...(input === undefined ? {} : { input }),
  });
  expect(code, `kubectl ${args}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

const updated = (pool: string) =>
  cluster.until(
    MachineConfigPool,
    pool,
    ({ status }) =>
      status?.conditions?.find(({ type }) => type === "Updated")?.status === "True" &&
      status?.machineCount === 1 &&
      status.updatedMachineCount === 1,
    `pool ${pool} is updated`,
    { seconds: 420 },
  );
const bootIds = () => machines.map((machine) => cluster.machineState(machine).bootId);

/** Reads a page over TLS. */
function get(
  url: string,
  ca: string,
  token: string | undefined,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const call = request(
      url,
      { ca, agent: false, headers: token === undefined ? {} : { authorization: `Bearer ${token}` } },
      (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      },
    );
    call.on("error", reject);
    call.end();
  });
}

describe.skipIf(!hasKubectl || !hasApiServer)("kubectl apply -k install/", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1, operator: false });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("starts the operator, and the operator starts the other components", { timeout: 180_000 }, async () => {
    expect((await cluster.kube.list(kubernetes.Pod)).items).toEqual([]);
    await kubectl(`apply -k ${join(root, "install")}`);
    for (const pool of ["master", "worker"]) await updated(pool);
    await cluster.until(
      ClusterOperator,
      objects.clusterOperator,
      ({ status }) => conditionOf(status?.conditions, "Available")?.status === "True",
      "the operator is available",
    );
    const pods = (await cluster.kube.list(kubernetes.Pod, { namespace })).items;
    expect(pods.map(({ spec }) => spec?.serviceAccountName).sort()).toEqual(
      [
        objects.configServer,
        objects.controller,
        objects.daemon,
        objects.daemon,
        objects.operator,
        objects.state,
      ].sort(),
    );
    // Components run from the image of the operator's own pod.
    expect([...new Set(pods.flatMap(({ spec }) => spec?.containers.map(({ image }) => image)))]).toEqual([
      suiteImage(version),
    ]);
  });

  test("passes the API server's strict validation with every manifest", async () => {
    const inputs = {
      image: suiteImage(version),
      builderImage: suiteImage(version),
      version,
      certificateHash: "",
      logLevel: "debug" as const,
    };
    const byService = { ...admissionWebhook({ address: undefined, ca: "ca" }), metadata: { name: "by-service" } };
    const byOperator: readonly KubeObject[] = [
      ...definedResources.map((resource) => resource.crd()),
      ...gate(),
      controllerDeployment(inputs),
      stateDeployment(inputs, 1),
      builderDeployment(inputs),
      daemonSet(inputs),
      configServerDaemonSet({
        ...inputs,
        access: "required",
        apiServer: "https://api.example.com:6443",
        oneMachine: true,
        tls: [],
        hasClientCa: true,
      }),
      ...bootstrapAccounts(["worker"]),
      admissionService(),
      stateService(),
      configServerService(),
      byService,
      ...builtInPools(),
    ];
    const folders = ["install", "install/crds", "examples"].flatMap((folder) =>
      readdirSync(join(root, folder)).map((file) => join(root, folder, file)),
    );
    const files = folders.filter((file) => file.endsWith(".yaml") && !file.endsWith("kustomization.yaml"));
    const documents = [
      // This cluster lacks the namespace of the machine API: the API server judges its manifests in `default`.
      ...files.map((file) =>
        readFileSync(file, "utf8").replaceAll(`namespace: ${machineNamespace}`, "namespace: default"),
      ),
      ...byOperator.map((manifest) => stringify(manifest)),
    ].join("\n---\n");
    const answer = await kubectl(
      "apply --server-side --force-conflicts --dry-run=server --validate=strict -f -",
      documents,
    );
    expect(answer.trim().split("\n").length).toBeGreaterThan(files.length + byOperator.length - 1);
    const wrong = await cluster.kubectl(["apply", "--dry-run=server", "--validate=strict", "-f", "-"], {
      input: documents.replace(
        "serviceAccountName: machine-config-operator",
        "serviceAccount_Name: machine-config-operator",
      ),
    });
    expect(wrong.stderr).toContain('unknown field "spec.template.spec.serviceAccount_Name"');
  });

  test("opens /metrics to authorized clients only, with Prometheus objects that name existing metrics [scenario-install-2]", async () => {
    const definition = (kind: string, plural: string) => ({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.monitoring.coreos.com` },
      spec: {
        group: "monitoring.coreos.com",
        scope: "Namespaced",
        names: { kind, plural, singular: kind.toLowerCase() },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        ],
      },
    });
    await kubectl(
      "apply -f -",
      [definition("ServiceMonitor", "servicemonitors"), definition("PrometheusRule", "prometheusrules")]
        .map((kind) => stringify(kind))
        .join("---\n"),
    );
    await kubectl(
      "wait --for=condition=Established crd/servicemonitors.monitoring.coreos.com crd/prometheusrules.monitoring.coreos.com --timeout=400s",
    );
    await kubectl(`apply -k ${join(root, "install/monitoring")}`);
    await kubectl("create namespace openshift-monitoring");
    await kubectl("create serviceaccount prometheus-k8s -n openshift-monitoring");
    const reader = (await kubectl("create token prometheus-k8s -n openshift-monitoring")).trim();
    const other = (await kubectl("create token default -n openshift-monitoring")).trim();
    const { items } = await cluster.kube.list(kubernetes.Pod, {
      namespace,
      labelSelector: `k8s-app=${objects.controller}`,
    });
    const secret = await cluster.kube.get(kubernetes.Secret, { name: admission.secret, namespace });
    const scrape = (token: string | undefined) =>
      get(`https://${items[0]?.status?.hostIP}:${admission.port}/metrics`, atob(secret?.data?.["ca.crt"] ?? ""), token);

    const { status, text } = await scrape(reader);
    expect(status, text).toBe(200);
    for (const line of [
      'mco_machine_count{pool="worker"} 1',
      'mco_updated_machine_count{pool="worker"} 1',
      'mco_degraded_machine_count{pool="master"} 0',
      "# TYPE mcc_drain_err gauge",
    ])
      expect(text.split("\n")).toContain(line);
    expect((await scrape(other)).status).toBe(403);
    expect((await scrape(undefined)).status).toBe(401);
    expect((await scrape(`${reader}x`)).status).toBe(401);
    const alerts = readFileSync(join(root, "install/monitoring/alerts.yaml"), "utf8");
    const named = [...alerts.matchAll(/expr: .*?\b(mc[oc]_[a-z_]+)/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(3);
    // Some are of the process that keeps the books.
    const [state] = (await cluster.kube.list(kubernetes.Pod, { namespace, labelSelector: `k8s-app=${objects.state}` }))
      .items;
    const own = await cluster.kube.get(kubernetes.Secret, { name: stateMetrics.secret, namespace });
    const told = await get(
      `https://${state?.status?.hostIP}:${stateMetrics.port}/metrics`,
      atob(own?.data?.["ca.crt"] ?? ""),
      reader,
    );
    expect(told.status, told.text).toBe(200);
    for (const name of named) expect(`${text}${told.text}`).toContain(`# TYPE ${name} `);
    // The config server shows its own with the certificate that machines know it by.
    const [server] = (
      await cluster.kube.list(kubernetes.Pod, { namespace, labelSelector: `k8s-app=${objects.configServer}` })
    ).items;
    const believed =
      (await cluster.kube.get(kubernetes.ConfigMap, { name: objects.configServerCa, namespace }))?.data?.[
        "ca-bundle.crt"
      ] ?? "";
    const metrics = (token: string) =>
      get(`https://${server?.status?.hostIP}:${configServerPorts.metrics}/metrics`, believed, token);
    expect((await metrics(reader)).text.split("\n")).toContain("mcs_insecure_access 0");
    expect((await metrics(other)).status).toBe(403);
    await kubectl(`delete -k ${join(root, "install/monitoring")}`);
    // So that nothing of the suite's name is left for the next test.
    expect(await kubectl("get clusterrole,clusterrolebinding -o name")).not.toContain("metrics-reader");
  });

  test(
    "is undone by kubectl delete -k without a change on machines, and can be repeated [scenario-install-1]",
    { timeout: 240_000 },
    async () => {
      const before = await cluster.target("worker");
      await cluster.kube.create(
        MachineConfig,
        machineConfig("99-worker-kept", { "/etc/kept.conf": "kept\n" }) as MachineConfig,
      );
      await cluster.untilRolledOut("worker", before);
      const boots = bootIds();

      // Its accounts lose their rights while their last processes end.
      cluster.refusalsAreExpected();
      // The namespace may have taken things with it before kubectl comes to them.
      await kubectl(`delete -k ${join(root, "install")} --ignore-not-found --timeout=400s`);
      await expect
        .poll(async () => (await cluster.kube.list(kubernetes.Pod)).items.length, { timeout: 300_000 })
        .toBe(0);
      const ours = async () => [
        ...(await cluster.kube.list(kubernetes.CustomResourceDefinition)).items.filter(({ metadata }) =>
          metadata.name.endsWith(names.group),
        ),
        ...(await cluster.kube.list(kubernetes.ClusterRole)).items.filter(
          ({ metadata }) => metadata.name.startsWith("machine-config") || metadata.name.startsWith("machine-state"),
        ),
        ...(await cluster.kube.list(kubernetes.ClusterRoleBinding)).items.filter(
          ({ metadata }) => metadata.name.startsWith("machine-config") || metadata.name.startsWith("machine-state"),
        ),
        ...(await cluster.kube.list(kubernetes.ValidatingWebhookConfiguration)).items,
        ...(await cluster.kube.list(kubernetes.ValidatingAdmissionPolicy)).items,
      ];
      // What the operator made outside of its namespace goes by its owner, a moment later.
      await expect
        .poll(async () => (await ours()).map(({ metadata }) => metadata.name), { timeout: 300_000 })
        .toEqual([]);
      expect(bootIds()).toEqual(boots);
      expect(cluster.hostFile("worker-0", "/etc/kept.conf")).toBe("kept\n");
      for (const machine of machines) {
        const node = await cluster.kube.get(kubernetes.Node, { name: machine });
        expect(conditionOf(node?.status?.conditions, "Ready")?.status, machine).toBe("True");
        expect(node?.spec?.unschedulable).not.toBe(true);
      }

      // The MachineConfig went with its kind: the machine goes back to what it had before.
      await kubectl(`apply -k ${join(root, "install")}`);
      for (const pool of ["master", "worker"]) await updated(pool);
      await cluster.untilNode(
        "worker-0",
        (node) =>
          annotation(node, annotations.currentConfig) === before && annotation(node, annotations.state) === "Done",
        "worker-0 is back on its configuration",
      );
      expect(cluster.hostFile("worker-0", "/etc/kept.conf")).toBeUndefined();
      expect(cluster.machineState("master-0").bootId).toBe(boots[0]);
      // Last, since the configurations before and after are compared.
      await cluster.plantCanaries();
    },
  );
});
