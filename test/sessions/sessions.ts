import type { TestUser } from "../contract/api-target.ts";

/** One command of a session. */
export interface Step {
  readonly run: readonly string[];
  readonly input?: string;
  readonly user?: Exclude<TestUser, "nobody">;
  /** For `edit`: what the editor replaces. */
  readonly edit?: readonly [from: string, to: string];
  /** For a watch: commands that are typed while it runs. */
  readonly meanwhile?: readonly (readonly string[])[];
}

/** What a user types, one command after the other, in a namespace of the session's name. */
export interface Session {
  readonly name: string;
  readonly title: string;
  readonly steps: readonly Step[];
}

const run = (line: string, more: Omit<Step, "run"> = {}): Step => ({ run: line.split(" "), ...more });
/** A command with a word that has spaces. */
const words = (...run: readonly string[]): Step => ({ run });
const file = (line: string, input: string): Step => ({ run: [...line.split(" "), "-f", "-"], input });

const machineConfig = (name: string, role: string, spec: string) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: ${name}
  labels:
    machineconfiguration.openshift.io/role: ${role}
spec:
${spec}
`;

const pool = (name: string, paused = false) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata:
  name: ${name}
spec:
  machineConfigSelector:
    matchLabels:
      machineconfiguration.openshift.io/role: ${name}
  nodeSelector:
    matchLabels:
      node-role.kubernetes.io/${name}: ""
  paused: ${paused}
`;

const books = "machineconfiguration.openshift.io/v1alpha1";
const book = {
  apiVersion: books,
  kind: "MachineStateBook",
  metadata: { name: "node.worker-0", labels: { "book-kind": "node" } },
  spec: {
    book: "node/worker-0",
    kind: "node",
    subject: { kind: "Node", name: "worker-0" },
    chapters: [],
    counters: { chapters: 2 },
    health: "Drift",
    lastNumber: 2,
    prunedThrough: 0,
    through: [],
  },
};
const chapter = (number: number, kind: string, state: "Open" | "Closed") => ({
  apiVersion: books,
  kind: "MachineStateChapter",
  metadata: {
    name: `node.worker-0.${String(number).padStart(6, "0")}`,
    labels: { "book-kind": "node", book: "node.worker-0", chapter: kind, state },
  },
  spec: {
    book: "node/worker-0",
    number,
    chapter: kind,
    run: kind === "Update" ? "rendered-worker-b" : "",
    startedAt: "2020-01-02T10:00:00Z",
    state,
    reason: kind === "Update" ? "Succeeded" : "ConfigDrift",
    message: "",
    confidence: "Told",
    ...(state === "Closed"
      ? { endedAt: "2020-01-02T10:02:04Z", durationMs: 124_000, duration: "2m04s", outcome: "Succeeded" }
      : {}),
    sections: [{ path: kind === "Update" ? "Updated" : "Detected", startedAt: "2020-01-02T10:00:00Z", attempts: 1 }],
    entries: [],
    dropped: 0,
    through: [],
  },
});

const pod = (name: string, more = "", labels = "app: web") => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  labels:
    ${labels}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
${more}  containers:
  - name: main
    image: example.com/web:1
    ports:
    - containerPort: 8080
`;

const deployment = (replicas: number, image = "example.com/web:1") => `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    app: web
spec:
  replicas: ${replicas}
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: main
        image: ${image}
`;

const settings = (value: string, more = "") => `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: ${value}
${more}`;

const event = (name: string, type: string, reason: string, message: string, count = 1) => `apiVersion: v1
kind: Event
metadata:
  name: ${name}
involvedObject:
  apiVersion: v1
  kind: Pod
  name: web
  namespace: events
type: ${type}
reason: ${reason}
message: ${message}
source:
  component: test
firstTimestamp: "2020-01-01T00:00:00Z"
lastTimestamp: "2020-01-01T00:00:00Z"
count: ${count}
---
`;

export const sessions: readonly Session[] = [
  {
    name: "machine-configs",
    title: "MachineConfigs are made, listed in every form, labelled and deleted",
    steps: [
      file(
        "create",
        machineConfig(
          "50-a",
          "worker",
          "  kernelArguments:\n  - debug\n  config:\n    ignition:\n      version: 3.4.0",
        ),
      ),
      file("create", machineConfig("50-b", "infra", "  extensions:\n  - usbguard\n  kernelType: realtime")),
      run("get machineconfigs"),
      run("get mc 50-a -o wide"),
      run("get mc 50-a -o yaml"),
      run("get mc 50-b -o json"),
      run("get mc -o name"),
      run("get mc -o jsonpath={.items[*].spec.kernelType}"),
      run("get mc -o custom-columns=NAME:.metadata.name,TYPE:.spec.kernelType,ARGS:.spec.kernelArguments"),
      run("get mc --sort-by=.spec.kernelType"),
      run("get mc -l machineconfiguration.openshift.io/role=worker --show-labels"),
      run("get mc -L machineconfiguration.openshift.io/role"),
      run("get mc --no-headers"),
      run("describe mc 50-a"),
      run("label mc 50-a team=web"),
      run("label mc 50-a team=web"),
      run("label mc 50-a team=db"),
      run("label mc 50-a team=db --overwrite"),
      run("label mc 50-a team-"),
      run("annotate mc --all reviewed=yes"),
      run("get mc 50-a -o go-template={{.metadata.annotations.reviewed}}"),
      run("delete mc 50-a 50-b"),
      run("get mc"),
    ],
  },
  {
    name: "pools",
    title: "a pool, its status, its conditions, and an editor",
    steps: [
      file("create", pool("pool-a")),
      run("get machineconfigpools"),
      words(
        "patch",
        "mcp",
        "pool-a",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"machineCount":3,"readyMachineCount":2,"updatedMachineCount":1,"degradedMachineCount":0,"configuration":{"name":"rendered-pool-a-1"},"conditions":[{"type":"Updated","status":"False","lastTransitionTime":"2020-01-01T00:00:00Z","reason":"","message":""},{"type":"Updating","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z","reason":"Rolling","message":"one at a time"}]}}',
      ),
      run("get mcp"),
      run("get mcp pool-a -o wide"),
      run("get mcp pool-a -o yaml"),
      run("get mcp pool-a --subresource=status"),
      run("describe mcp pool-a"),
      run("wait mcp/pool-a --for=condition=Updating --timeout=400s"),
      run("wait mcp/pool-a --for=condition=Updated=True --timeout=1s"),
      words("wait", "mcp/pool-a", "--for=jsonpath={.status.machineCount}=3", "--timeout=400s"),
      words("patch", "mcp", "pool-a", "--type=merge", "-p", '{"spec":{"paused":true}}'),
      words("patch", "mcp", "pool-a", "--type=merge", "-p", '{"spec":{"paused":true}}'),
      run("edit mcp pool-a", { edit: ["paused: true", "paused: false"] }),
      run("edit mcp pool-a", { edit: ["nothing like this", "nothing"] }),
      run("edit mcp pool-a", { edit: ["paused: false", "paused: perhaps"] }),
      run("get mcp pool-a -o jsonpath={.spec.paused}{.metadata.generation}"),
      words("patch", "mcp", "pool-a", "--type=merge", "-p", '{"spec":{"pinnedImageSets":[{"name":""}]}}'),
      run("delete mcp/pool-a"),
    ],
  },
  {
    name: "machine-config-nodes",
    title: "MachineConfigNodes, KubeletConfigs, ContainerRuntimeConfigs and the rules of our kinds",
    steps: [
      file(
        "apply",
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigNode\nmetadata:\n  name: node-a\nspec:\n  node:\n    name: node-a\n  pool:\n    name: worker\n  configVersion:\n    desired: rendered-worker-1\n",
      ),
      file(
        "create",
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigNode\nmetadata:\n  name: node-b\nspec:\n  node:\n    name: other\n  pool:\n    name: worker\n  configVersion:\n    desired: rendered-worker-1\n",
      ),
      words(
        "patch",
        "machineconfignode",
        "node-a",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"configVersion":{"desired":"rendered-worker-1","current":"rendered-worker-0"},"conditions":[{"type":"Updated","status":"False","lastTransitionTime":"2020-01-01T00:00:00Z","reason":"Behind","message":"not yet"},{"type":"Drained","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z","reason":"Done","message":"empty"}]}}',
      ),
      run("get machineconfignodes"),
      run("get machineconfignodes -o wide"),
      run("describe machineconfignode node-a"),
      file(
        "create",
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata:\n  name: more-pods\nspec:\n  logLevel: 3\n  kubeletConfig:\n    maxPods: 500\n",
      ),
      file(
        "create",
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: KubeletConfig\nmetadata:\n  name: too-loud\nspec:\n  logLevel: 30\n",
      ),
      file(
        "create",
        "apiVersion: machineconfiguration.openshift.io/v1\nkind: ContainerRuntimeConfig\nmetadata:\n  name: pids\nspec:\n  containerRuntimeConfig:\n    pidsLimit: 2048\n",
      ),
      run("get kubeletconfigs,containerruntimeconfigs"),
      run("get kubeletconfig more-pods -o yaml"),
      run("get controllerconfigs"),
      run("get controllerconfig machine-config-controller"),
      run("delete kubeletconfig,containerruntimeconfig --all"),
      run("delete machineconfignode node-a"),
    ],
  },
  {
    name: "books",
    title: "books and chapters: columns, labels, and a closed chapter, which cannot change",
    steps: [
      file("create", JSON.stringify(book)),
      file("create", JSON.stringify(chapter(1, "Drift", "Open"))),
      file("create", JSON.stringify(chapter(2, "Update", "Closed"))),
      run("get machinestatebooks"),
      run("get machinestatechapters"),
      run("get machinestatechapters -l book=node.worker-0,chapter=Update"),
      run("get machinestatechapter node.worker-0.000002 -o yaml"),
      words(
        "patch",
        "machinestatechapter",
        "node.worker-0.000001",
        "--type=merge",
        "-p",
        '{"spec":{"message":"still there"}}',
      ),
      words("patch", "machinestatechapter", "node.worker-0.000001", "--type=merge", "-p", '{"spec":{"number":3}}'),
      words(
        "patch",
        "machinestatechapter",
        "node.worker-0.000002",
        "--type=merge",
        "-p",
        '{"spec":{"outcome":"Failed"}}',
      ),
      words("patch", "machinestatechapter", "node.worker-0.000002", "--type=merge", "-p", '{"spec":{"state":"Open"}}'),
      words("patch", "machinestatebook", "node.worker-0", "--type=merge", "-p", '{"spec":{"lastNumber":1}}'),
      run("create -f -", {
        input: JSON.stringify({
          ...chapter(3, "Update", "Closed"),
          spec: { ...chapter(3, "Update", "Closed").spec, outcome: "Splendid" },
        }),
      }),
      run("explain machinestatechapter.spec.sections"),
      run("delete machinestatechapters -l book=node.worker-0"),
      run("delete machinestatebook node.worker-0"),
    ],
  },
  {
    name: "client-side-apply",
    title: "apply from the client's side: created, unchanged, configured, and what would change",
    steps: [
      file("apply", settings("red")),
      file("apply", settings("red")),
      file("diff", settings("blue", "  size: large\n")),
      file("apply", settings("blue", "  size: large\n")),
      run("apply view-last-applied configmap settings"),
      file("apply", settings("blue")),
      run("get configmap settings -o jsonpath={.data}"),
      file("apply --dry-run=server", settings("green")),
      file("apply --dry-run=client", settings("green")),
      run("get configmap settings -o yaml"),
      file("replace", settings("black")),
      file("diff", settings("black")),
      file("apply", pool("pool-c")),
      file("apply", pool("pool-c", true)),
      file("diff", pool("pool-c", false)),
      file("delete", pool("pool-c")),
      run("delete configmap settings"),
    ],
  },
  {
    name: "server-side-apply",
    title: "apply from the server's side: owners and conflicts",
    steps: [
      file("apply --server-side --field-manager=one", settings("red")),
      file("apply --server-side --field-manager=one", settings("red")),
      file("apply --server-side --field-manager=two", settings("blue")),
      file("apply --server-side --field-manager=two --force-conflicts", settings("blue")),
      run("get configmap settings -o yaml --show-managed-fields"),
      file("apply --server-side --field-manager=one", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"),
      run("get configmap settings -o jsonpath={.data}"),
      file("diff --server-side --field-manager=two", settings("green")),
      file("apply --server-side --field-manager=one", pool("pool-s")),
      file("apply --server-side --field-manager=two", pool("pool-s", true)),
      file("apply --server-side --field-manager=two", `${pool("pool-s", true)}  unknown: 1\n`),
      run("get mcp pool-s -o yaml --show-managed-fields"),
      run("delete mcp pool-s"),
    ],
  },
  {
    name: "patches",
    title: "every kind of patch, of built-in and of custom objects",
    steps: [
      file("create", deployment(2)),
      words(
        "patch",
        "deployment",
        "web",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:1"}]}}}}',
      ),
      run("get deployment web -o jsonpath={.spec.template.spec.containers[*].name}"),
      words(
        "patch",
        "deployment",
        "web",
        "--type=merge",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"only","image":"example.com/only:1"}]}}}}',
      ),
      run("get deployment web -o jsonpath={.spec.template.spec.containers[*].name}"),
      words("patch", "deployment", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":5}]'),
      words("patch", "deployment", "web", "--type=json", "-p", '[{"op":"remove","path":"/spec/nothing"}]'),
      words("patch", "deployment", "web", "--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":4}]'),
      words("patch", "deployment", "web", "-p", '{"spec":{"selector":{"matchLabels":{"app":"other"}}}}'),
      words("patch", "deployment", "web", "-p", "no json"),
      words("patch", "deployment", "web", "-p", '{"metadata":{"annotations":{"note":"x"}}}', "--dry-run=server"),
      words("patch", "deployment", "web", "-p", '{"metadata":{"annotations":null}}'),
      file("create", pool("pool-p")),
      words("patch", "mcp", "pool-p", "-p", '{"spec":{"paused":true}}'),
      words(
        "patch",
        "mcp",
        "pool-p",
        "--type=json",
        "-p",
        '[{"op":"add","path":"/spec/maxUnavailable","value":"10%"}]',
      ),
      words("patch", "mcp", "pool-p", "--type=merge", "-p", '{"spec":{"paused":"yes"}}'),
      run("get mcp pool-p -o jsonpath={.spec}"),
      run("delete deployment/web mcp/pool-p"),
    ],
  },
  {
    name: "nodes",
    title: "nodes: roles, conditions, taints, cordons and descriptions",
    steps: [
      file(
        "create",
        'apiVersion: v1\nkind: Node\nmetadata:\n  name: shown\n  labels:\n    node-role.kubernetes.io/worker: ""\n    kubernetes.io/hostname: shown\nspec:\n  providerID: test://shown\n',
      ),
      run("get nodes"),
      words(
        "patch",
        "node",
        "shown",
        "--subresource=status",
        "-p",
        '{"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"allocatable":{"cpu":"3500m","memory":"7Gi","pods":"110"},"addresses":[{"type":"InternalIP","address":"10.0.0.7"},{"type":"Hostname","address":"shown"}],"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":"2020-01-01T00:00:00Z","lastTransitionTime":"2020-01-01T00:00:00Z"}],"nodeInfo":{"architecture":"amd64","bootID":"b","containerRuntimeVersion":"cri-o://1.34","kernelVersion":"6.1","kubeProxyVersion":"","kubeletVersion":"v1.34.4","machineID":"m","operatingSystem":"linux","osImage":"Test OS","systemUUID":"s"}}}',
      ),
      run("get nodes"),
      run("get nodes -o wide"),
      run("label node shown node-role.kubernetes.io/infra="),
      run("get node shown --show-labels"),
      run("taint nodes shown node.kubernetes.io/not-ready-"),
      run("taint nodes shown dedicated=db:NoSchedule"),
      run("taint nodes shown dedicated=db:NoSchedule"),
      run("taint nodes shown dedicated=web:NoSchedule --overwrite"),
      run("taint nodes shown dedicated=web:Whenever"),
      run("get node shown -o jsonpath={.spec.taints}"),
      run("taint nodes shown dedicated-"),
      run("cordon shown"),
      run("cordon shown"),
      run("get nodes"),
      run("uncordon shown"),
      run("describe node shown"),
      run("cordon nobody"),
      run("delete node shown"),
    ],
  },
  {
    name: "drain",
    title: "a node is drained, against a budget and without one",
    steps: [
      file("create", "apiVersion: v1\nkind: Node\nmetadata:\n  name: drained\n"),
      file("create", pod("web", "  nodeName: drained\n")),
      file("create", pod("other", "  nodeName: drained\n", "app: other")),
      words(
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "-p",
        '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}',
      ),
      run("create poddisruptionbudget guard --selector=app=web --min-available=1"),
      words(
        "patch",
        "pdb",
        "guard",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}',
      ),
      run("get pdb"),
      run("drain drained"),
      run("drain drained --force --dry-run=client"),
      run("drain drained --force --grace-period=0 --timeout=1s --pod-selector=app=web"),
      run("get pods"),
      run("drain drained --force --grace-period=0 --timeout=400s --pod-selector=app=other"),
      run("get pods"),
      run("delete pdb guard"),
      run("drain drained --force --grace-period=0 --timeout=400s"),
      run("get nodes drained"),
      run("uncordon drained"),
      run("delete node drained"),
    ],
  },
  {
    name: "pods",
    title: "pods in many states, in tables and descriptions",
    steps: [
      file("create", pod("web")),
      run("get pods"),
      run("get pods -o wide"),
      words(
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "-p",
        '{"status":{"phase":"Running","podIP":"10.1.0.9","podIPs":[{"ip":"10.1.0.9"}],"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}],"containerStatuses":[{"name":"main","image":"example.com/web:1","imageID":"","ready":false,"restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error","startedAt":"2020-01-01T00:00:00Z","finishedAt":"2020-01-01T00:01:00Z"}}}]}}',
      ),
      run("get pods --no-headers -o custom-columns=:.metadata.name,:.status.containerStatuses[0].state.waiting.reason"),
      words(
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "-p",
        '{"status":{"conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"main","image":"example.com/web:1","imageID":"","ready":true,"restartCount":0,"state":{"running":{"startedAt":"2020-01-01T00:00:00Z"}}}]}}',
      ),
      run("get pods"),
      run("get pods web -o yaml"),
      run("get pods --field-selector=status.phase=Running -o name"),
      run("get pods --field-selector=spec.nodeName=nowhere"),
      run("get pods --field-selector=spec.color=red"),
      run("get pods -l app in"),
      run("describe pod web"),
      run("wait pod/web --for=condition=Ready --timeout=400s"),
      run("set image pod/web main=example.com/web:2"),
      run("label pod web app=other --overwrite"),
      words(
        "patch",
        "pod",
        "web",
        "--subresource=status",
        "-p",
        '{"status":{"phase":"Succeeded","containerStatuses":[{"name":"main","image":"example.com/web:1","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2020-01-01T00:00:00Z","finishedAt":"2020-01-01T00:01:00Z"}}}]}}',
      ),
      run("get pods"),
      run("delete pod web --now"),
      run("get pods"),
    ],
  },
  {
    name: "events",
    title: "events, as a list, of an object, and in its description",
    steps: [
      file("create", pod("web")),
      file(
        "create",
        `${event("web.1", "Normal", "Pulled", "image is there")}${event("web.2", "Warning", "BackOff", "again and again", 7)}`,
      ),
      run("get events"),
      run("get events -o wide --sort-by=.metadata.name"),
      run("get events --field-selector=type=Warning -o custom-columns=REASON:.reason,COUNT:.count"),
      run("get events --field-selector=involvedObject.name=web -o name"),
      run("events --for=pod/web"),
      run("events --types=Warning"),
      run("describe pod web"),
      run("delete events --all"),
      run("events"),
      run("delete pod web --force"),
    ],
  },
  {
    name: "deletions",
    title: "deleting: dry runs, cascades, selectors, finalizers",
    steps: [
      run("create configmap one --from-literal=a=1"),
      run("create configmap two --from-literal=a=1"),
      run("label configmap one two team=web"),
      run("delete configmap one --dry-run=server"),
      run("delete configmap one --dry-run=client"),
      run("delete configmap -l team=web"),
      run("delete configmap one"),
      run("delete configmap one --ignore-not-found"),
      file("create", deployment(1)),
      run("delete deployment web --cascade=orphan --wait=false"),
      run("get deployment web -o jsonpath={.metadata.finalizers}"),
      words("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'),
      file("create", deployment(1)),
      run("delete deployment web --cascade=foreground --wait=false"),
      run("get deployment web -o jsonpath={.metadata.finalizers}"),
      words("patch", "deployment", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}'),
      file("create", deployment(1)),
      run("delete deployment web"),
      file("create", pool("pool-d")),
      words("patch", "mcp", "pool-d", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}'),
      run("delete mcp pool-d --wait=false"),
      run("delete mcp pool-d --timeout=1s"),
      words(
        "patch",
        "mcp",
        "pool-d",
        "--type=merge",
        "-p",
        '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}',
      ),
      words("patch", "mcp", "pool-d", "--type=merge", "-p", '{"metadata":{"finalizers":[]}}'),
      run("get mcp pool-d"),
      run("delete mcp pool-d"),
    ],
  },
  {
    name: "wrong-input",
    title: "what is said to those who err",
    steps: [
      run("get nonsense"),
      run("get configmap ghost"),
      run("get mcp ghost"),
      run("describe pod ghost"),
      file("create", "kind: ConfigMap\nmetadata: {name: x"),
      file("create", "apiVersion: v1\nkind: Nonsense\nmetadata:\n  name: x\n"),
      file("create", "apiVersion: nonsense.example.com/v1\nkind: Nonsense\nmetadata:\n  name: x\n"),
      file("create", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not Valid\n"),
      file("create", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo\ndatum:\n  a: b\n"),
      file("create --validate=warn", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo\ndatum:\n  a: b\n"),
      file("create --validate=false", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo-2\ndatum:\n  a: b\n"),
      file("create", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo\n"),
      file("create", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: elsewhere\n  namespace: pods\n"),
      file("create", machineConfig("50-typo", "worker", "  kernelArgument:\n  - debug")),
      file("create", machineConfig("50-type", "worker", "  fips: perhaps")),
      file("create", pod("web", "  nodeNam: x\n")),
      file("create", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers: []\n"),
      file("create", deployment(-1)),
      file("replace", settings("red")),
      file("replace", 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo\n  resourceVersion: "1"\n'),
      run("label configmap typo -- -a=b"),
      run("label configmap typo not!valid=x"),
      run("annotate configmap typo"),
      run("scale configmap typo --replicas=1"),
      run("wait configmap/typo --for=condition=Ready --timeout=1s"),
      run("get configmap typo -o nonsense"),
      run("get configmap typo -o jsonpath={.data"),
      run("get --raw /nothing/here"),
      run("create namespace wrong-input"),
      run("delete namespace kube-system"),
    ],
  },
  {
    name: "discovery",
    title: "which kinds there are, and what their fields mean",
    steps: [
      run("api-resources --api-group=machineconfiguration.openshift.io"),
      run("api-resources --api-group=machineconfiguration.openshift.io -o wide --sort-by=name"),
      run("api-resources --api-group=coordination.k8s.io"),
      run("explain machineconfigpool"),
      run("explain mcp.spec"),
      run("explain mcp.spec.maxUnavailable"),
      run("explain mcp.status.conditions"),
      run("explain machineconfig.spec --recursive"),
      run("explain machineconfig.spec.nothing"),
      run("explain nonsense"),
      run("get --raw /apis/machineconfiguration.openshift.io"),
      run("get crd machineconfigs.machineconfiguration.openshift.io"),
      run("wait crd/machineconfigs.machineconfiguration.openshift.io --for=condition=Established --timeout=400s"),
    ],
  },
  {
    name: "access",
    title: "who may do what",
    steps: [
      run("auth can-i create pods"),
      run("auth can-i create pods", { user: "alice" }),
      run("auth can-i get nodes", { user: "alice" }),
      run("auth whoami", { user: "alice" }),
      run("get pods", { user: "alice" }),
      run("get mcp", { user: "alice" }),
      run("create configmap x", { user: "alice" }),
      run("delete pod x", { user: "alice" }),
      run("create role reader --verb=get,list --resource=configmaps,pods/log"),
      run("create rolebinding readers --role=reader --group=developers"),
      run("create clusterrole pools --verb=get --resource=machineconfigpools.machineconfiguration.openshift.io"),
      run("get role reader -o jsonpath={.rules}"),
      run("describe role reader"),
      run("describe rolebinding readers"),
      run("auth can-i list configmaps", { user: "alice" }),
      run("auth can-i delete configmaps", { user: "alice" }),
      run("auth can-i get pods --subresource=log", { user: "alice" }),
      run("get configmaps -l none=here", { user: "alice" }),
      run("get secrets", { user: "alice" }),
      run("get pods --as=carol"),
      run("auth can-i get pods --as=carol --as-group=system:masters"),
      run("get pods --as=carol", { user: "alice" }),
      run("delete clusterrole pools"),
    ],
  },
  {
    name: "workloads",
    title: "a Deployment is scaled and changed",
    steps: [
      run("create deployment web --image=example.com/web:1 --replicas=2"),
      run("get deployments"),
      run("get deployment web -o wide"),
      run("scale deployment web --replicas=4"),
      run("scale deployment web --replicas=5 --current-replicas=3"),
      run("get deployment web --subresource=scale -o jsonpath={.spec.replicas}"),
      run("set image deployment/web web=example.com/web:2"),
      run("set env deployment/web COLOR=red"),
      run("set resources deployment/web --limits=cpu=200m,memory=64Mi"),
      run("get deployment web -o yaml"),
      run("rollout pause deployment/web"),
      run("rollout resume deployment/web"),
      words(
        "patch",
        "deployment",
        "web",
        "--subresource=status",
        "-p",
        '{"status":{"observedGeneration":7,"replicas":4,"updatedReplicas":4,"readyReplicas":3,"availableReplicas":3,"unavailableReplicas":1}}',
      ),
      run("get deployments"),
      run("rollout status deployment/web --timeout=1s"),
      run("describe deployment web"),
      run("delete deployment web"),
    ],
  },
  {
    name: "watching",
    title: "changes are shown as they come",
    steps: [
      file("create", pool("pool-w")),
      run("get mcp pool-w -w --request-timeout=3s", {
        meanwhile: [
          [
            "patch",
            "mcp",
            "pool-w",
            "--subresource=status",
            "--type=merge",
            "-p",
            '{"status":{"machineCount":1,"configuration":{"name":"rendered-w-1"}}}',
          ],
          ["patch", "mcp", "pool-w", "--subresource=status", "--type=merge", "-p", '{"status":{"machineCount":2}}'],
        ],
      }),
      run("create configmap seen"),
      run("get configmap seen --watch --output-watch-events -o name --request-timeout=3s", {
        meanwhile: [
          ["label", "configmap", "seen", "a=b"],
          ["delete", "configmap", "seen"],
        ],
      }),
      run("delete mcp pool-w"),
    ],
  },
];
