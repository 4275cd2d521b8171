import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Api } from "./api-target.ts";
import { editorScript, type Kubectl, kubectlFor, kubectlPath } from "../support/kubectl.ts";
import { tlsTarget, type TlsTarget } from "./tls-target.ts";
import { requestCertificate } from "../../src/kube/certificates.ts";

const yaml = {
  deployment: (name: string, image = "example.com/app:1") => `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
  labels: {app: ${name}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      containers:
      - name: main
        image: ${image}
`,
  pod: (name: string, node = "") => `apiVersion: v1
kind: Pod
metadata:
  name: ${name}
  labels: {app: ${name}}
spec:
${node === "" ? "" : `  nodeName: ${node}\n`}  containers:
  - name: main
    image: example.com/app:1
`,
  widgets: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
spec:
  group: example.com
  scope: Cluster
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList, shortNames: [gd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    schema:
      openAPIV3Schema:
        description: Gadget is a thing with a size.
        type: object
        properties:
          spec:
            description: What is wanted.
            type: object
            properties:
              size: {type: integer, minimum: 1, description: How big it is.}
          status:
            type: object
            properties:
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
`,
};

describe.skipIf(!existsSync(kubectlPath))("kubectl", () => {
  let target: TlsTarget;
  let kubectl: Kubectl;
  let api: Api;
  let count = 0;

  beforeAll(async () => {
    target = await tlsTarget({
      logs: ({ pod, container, query }) =>
        Promise.resolve({
          status: 200,
          headers: { "content-type": "text/plain" },
          body: `output of ${pod}/${container}${query.has("tailLines") ? ` (last ${query.get("tailLines") ?? ""})` : ""}\n`,
        }),
    });
    kubectl = kubectlFor(target);
    api = new Api(target);
    await ok(["create", "-f", "-"], { input: yaml.widgets });
  });
  afterAll(() => target.close());

  async function ok(args: readonly string[], options: Parameters<Kubectl>[1] = {}): Promise<string> {
    const result = await kubectl(args, options);
    expect(result.code, `kubectl ${args.join(" ")}\n${result.out}${result.err}`).toBe(0);
    return result.out;
  }

  /** A namespace for one test. */
  async function namespace(): Promise<string> {
    const name = `kubectl-${count++}`;
    await ok(["create", "namespace", name]);
    return name;
  }

  test("create namespace, configmap, secret, serviceaccount, deployment, role, rolebinding (protobuf bodies)", async () => {
    const n = await namespace();
    expect(await ok(["-n", n, "create", "configmap", "c", "--from-literal=a=b"])).toBe("configmap/c created\n");
    expect(await ok(["-n", n, "get", "configmap", "c", "-o", "jsonpath={.data.a}"])).toBe("b");
    await ok(["-n", n, "create", "secret", "generic", "s", "--from-literal=a=b"]);
    expect(await ok(["-n", n, "get", "secret", "s", "-o", "jsonpath={.data.a}"])).toBe("Yg==");
    await ok(["-n", n, "create", "serviceaccount", "robot"]);
    await ok(["-n", n, "create", "deployment", "d", "--image=example.com/app:1", "--replicas=3"]);
    expect(
      await ok([
        "-n",
        n,
        "get",
        "deployment",
        "d",
        "-o",
        "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}",
      ]),
    ).toBe("3 example.com/app:1");
    await ok(["-n", n, "create", "role", "r", "--verb=get", "--resource=pods"]);
    await ok(["-n", n, "create", "rolebinding", "b", "--role=r", `--serviceaccount=${n}:robot`]);
    expect(
      await ok(["-n", n, "get", "rolebinding", "b", "-o", "jsonpath={.subjects[0].kind} {.subjects[0].name}"]),
    ).toBe("ServiceAccount robot");
    expect((await ok(["-n", n, "create", "token", "robot"])).split(".")).toHaveLength(3);
  });

  test("get prints tables, wide tables, yaml and names", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.pod("p", "node-a") });
    expect(await ok(["-n", n, "get", "pods"])).toMatch(
      /^NAME +READY +STATUS +RESTARTS +AGE\np +0\/1 +Pending +0 +\d+s\n$/,
    );
    expect(await ok(["-n", n, "get", "pods", "-o", "wide"])).toContain("node-a");
    expect(await ok(["-n", n, "get", "pod", "p", "-o", "yaml"])).toContain("kind: Pod\n");
    expect(await ok(["-n", n, "get", "pods", "-o", "name"])).toBe("pod/p\n");
    expect(await ok(["get", "pods", "-A", "--field-selector", "spec.nodeName=node-a", "-o", "name"])).toContain(
      "pod/p",
    );
    expect(await ok(["-n", n, "get", "pods", "-l", "app=other"])).toBe("");
    expect(await ok(["get", "ns", n])).toMatch(/Active/);
  });

  test("get reports missing objects", async () => {
    const missing = await kubectl(["get", "configmap", "ghost"]);
    expect(missing).toMatchObject({ code: 1, err: 'Error from server (NotFound): configmaps "ghost" not found\n' });
    const unknown = await kubectl(["get", "nonsense"]);
    expect(unknown.err).toBe('error: the server doesn\'t have a resource type "nonsense"\n');
  });

  test("api-resources, api-versions, version and cluster-info answer", async () => {
    expect(await ok(["api-resources"])).toMatch(/gadgets +gd +example\.com\/v1 +false +Gadget/);
    expect(await ok(["api-versions"])).toContain("apps/v1\n");
    expect(await ok(["version"])).toMatch(/Server Version: v1\./);
    expect(await ok(["get", "--raw", "/readyz"])).toBe("ok");
  });

  test("describe shows an object with its events", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.pod("p") });
    const uid = await ok(["-n", n, "get", "pod", "p", "-o", "jsonpath={.metadata.uid}"]);
    await api.post(`/api/v1/namespaces/${n}/events`, {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: "e" },
      involvedObject: { apiVersion: "v1", kind: "Pod", name: "p", namespace: n, uid },
      reason: "Started",
      message: "It started",
      type: "Normal",
      count: 1,
      firstTimestamp: "2030-01-01T00:00:00Z",
      lastTimestamp: "2030-01-01T00:00:00Z",
      source: { component: "test" },
    });
    const described = await ok(["-n", n, "describe", "pod", "p"]);
    expect(described).toMatch(/Name: +p\n/);
    expect(described).toContain("It started");
    expect(await ok(["-n", n, "events", "--for", "pod/p"])).toContain("Started");
    await ok(["create", "-f", "-"], {
      input: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: described}\nspec: {size: 2}\n",
    });
    expect(await ok(["describe", "gadget", "described"])).toMatch(/Spec:\n +Size: +2\n/);
  });

  test("apply creates, configures and leaves unchanged", async () => {
    const n = await namespace();
    expect(await ok(["-n", n, "apply", "-f", "-"], { input: yaml.deployment("d") })).toBe(
      "deployment.apps/d created\n",
    );
    expect(await ok(["-n", n, "apply", "-f", "-"], { input: yaml.deployment("d") })).toBe(
      "deployment.apps/d unchanged\n",
    );
    expect(await ok(["-n", n, "apply", "-f", "-"], { input: yaml.deployment("d", "example.com/app:2") })).toBe(
      "deployment.apps/d configured\n",
    );
    expect(await ok(["-n", n, "get", "deploy", "d", "-o", "jsonpath={.spec.template.spec.containers[*].image}"])).toBe(
      "example.com/app:2",
    );
    expect(
      await ok(["apply", "-f", "-"], {
        input: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: applied}\nspec: {size: 2}\n",
      }),
    ).toBe("gadget.example.com/applied created\n");
    expect(
      await ok(["apply", "-f", "-"], {
        input: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: applied}\nspec: {size: 3}\n",
      }),
    ).toBe("gadget.example.com/applied configured\n");
  });

  test("apply refuses a typo and an invalid value by field", async () => {
    const n = await namespace();
    const typo = await kubectl(["-n", n, "apply", "-f", "-"], {
      input: yaml.deployment("d").replace("replicas:", "replica:"),
    });
    expect(typo.code).toBe(1);
    expect(typo.err).toContain('strict decoding error: unknown field "spec.replica"');
    const wrong = await kubectl(["apply", "-f", "-"], {
      input: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: wrong}\nspec: {size: 0}\n",
    });
    expect(wrong.err).toBe(
      'The Gadget "wrong" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1\n',
    );
  });

  test("apply --server-side takes over from client-side apply, and reports conflicts", async () => {
    const n = await namespace();
    expect(await ok(["-n", n, "apply", "--server-side", "-f", "-"], { input: yaml.deployment("d") })).toBe(
      "deployment.apps/d serverside-applied\n",
    );
    await ok(["-n", n, "apply", "-f", "-"], { input: yaml.deployment("e") });
    expect(await ok(["-n", n, "apply", "--server-side", "-f", "-"], { input: yaml.deployment("e") })).toBe(
      "deployment.apps/e serverside-applied\n",
    );
    await ok(["-n", n, "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-"], {
      input: yaml.deployment("d", "example.com/app:9"),
    });
    const conflict = await kubectl(["-n", n, "apply", "--server-side", "-f", "-"], { input: yaml.deployment("d") });
    expect(conflict.code).toBe(1);
    expect(conflict.err).toContain(
      'Apply failed with 1 conflict: conflict with "other": .spec.template.spec.containers[name="main"].image',
    );
  });

  test("a List is applied item by item, and validated as strictly", async () => {
    const n = await namespace();
    const list = (field: string) =>
      `apiVersion: v1\nkind: List\nitems:\n- ${yaml.deployment("d").trim().replaceAll("\n", "\n  ").replace("replicas", field)}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: c}\n`;
    const typo = await kubectl(["-n", n, "apply", "-f", "-"], { input: list("replica") });
    expect(typo.err).toContain('strict decoding error: unknown field "spec.replica"');
    // The valid item went through the first time.
    expect(await ok(["-n", n, "apply", "-f", "-"], { input: list("replicas") })).toBe(
      "deployment.apps/d created\nconfigmap/c unchanged\n",
    );
    const exported = await ok(["-n", n, "get", "deployments,configmaps", "-o", "yaml"]);
    expect(exported).toContain("kind: List\n");
    expect(
      (
        await kubectl(["-n", n, "apply", "--server-side", "--force-conflicts", "-f", "-"], {
          input: exported.replaceAll(/^ *(managedFields|resourceVersion|uid): .*\n/gm, ""),
        })
      ).code,
    ).toBe(0);
  });

  test("certificate approve and deny", async () => {
    const { request } = await requestCertificate({ commonName: "somebody", organizations: [] });
    for (const name of ["yes", "no"]) {
      await api.post("/apis/certificates.k8s.io/v1/certificatesigningrequests", {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { name },
        spec: { request: btoa(request), signerName: "example.com/signer", usages: ["client auth"] },
      });
    }
    expect(await ok(["certificate", "approve", "yes"])).toBe(
      "certificatesigningrequest.certificates.k8s.io/yes approved\n",
    );
    expect(await ok(["certificate", "deny", "no"])).toBe("certificatesigningrequest.certificates.k8s.io/no denied\n");
    expect(await ok(["get", "csr"])).toMatch(/no .*Denied\nyes .*Approved\n/);
  });

  test("run, expose, job, quota, priority class, cluster role and its binding, auth reconcile", async () => {
    const n = await namespace();
    expect(await ok(["-n", n, "run", "p", "--image=example.com/app:1"])).toBe("pod/p created\n");
    await ok(["-n", n, "create", "deployment", "d", "--image=example.com/app:1"]);
    expect(await ok(["-n", n, "expose", "deployment", "d", "--port=80"])).toBe("service/d exposed\n");
    expect(await ok(["-n", n, "create", "job", "j", "--image=example.com/app:1"])).toBe("job.batch/j created\n");
    expect(await ok(["-n", n, "create", "quota", "q", "--hard=pods=3"])).toBe("resourcequota/q created\n");
    expect(await ok(["-n", n, "create", "poddisruptionbudget", "b", "--selector=app=x", "--min-available=50%"])).toBe(
      "poddisruptionbudget.policy/b created\n",
    );
    expect(await ok(["create", "priorityclass", n, "--value=5"])).toBe(
      `priorityclass.scheduling.k8s.io/${n} created\n`,
    );
    expect(await ok(["create", "clusterrole", n, "--verb=get,list", "--resource=pods,deployments.apps"])).toContain(
      "created",
    );
    expect(await ok(["create", "clusterrolebinding", n, `--clusterrole=${n}`, "--user=bob"])).toContain("created");
    expect(await ok(["get", "pods", "-A", "-o", "name"], { user: "bob" })).toContain("pod/p");
    expect(
      await ok(["auth", "reconcile", "-f", "-"], {
        input: `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${n}-more}\nrules:\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n`,
      }),
    ).toContain("reconciled");
    expect(await ok(["-n", n, "get", "all", "-o", "name"])).toBe("pod/p\nservice/d\ndeployment.apps/d\njob.batch/j\n");
    expect(await ok(["-n", n, "delete", "all", "--all"])).toContain('deployment.apps "d" deleted');
  });

  test("diff shows what apply would change, and changes nothing", async () => {
    const n = await namespace();
    await ok(["-n", n, "apply", "-f", "-"], { input: yaml.deployment("d") });
    expect(await ok(["-n", n, "diff", "-f", "-"], { input: yaml.deployment("d") })).toBe("");
    const diff = await kubectl(["-n", n, "diff", "-f", "-"], { input: yaml.deployment("d", "example.com/app:2") });
    expect(diff.code).toBe(1);
    expect(diff.out).toContain("+      - image: example.com/app:2");
    const serverSide = await kubectl(["-n", n, "diff", "--server-side", "--force-conflicts", "-f", "-"], {
      input: yaml.deployment("d", "example.com/app:3"),
    });
    expect(serverSide.out).toContain("example.com/app:3");
    expect(await ok(["-n", n, "get", "deploy", "d", "-o", "jsonpath={.spec.template.spec.containers[*].image}"])).toBe(
      "example.com/app:1",
    );
  });

  test("apply --dry-run=server and create --dry-run=server store nothing", async () => {
    const n = await namespace();
    expect(await ok(["-n", n, "apply", "--dry-run=server", "-f", "-"], { input: yaml.deployment("d") })).toBe(
      "deployment.apps/d created (server dry run)\n",
    );
    expect((await kubectl(["-n", n, "get", "deploy", "d"])).code).toBe(1);
  });

  test("apply --prune and delete -f work on what was applied", async () => {
    const n = await namespace();
    await ok(["-n", n, "apply", "-f", "-"], { input: yaml.deployment("d") });
    expect(await ok(["-n", n, "delete", "-f", "-"], { input: yaml.deployment("d") })).toContain("deleted");
  });

  test("edit changes what the editor changed", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.deployment("d") });
    expect(
      await ok(["-n", n, "edit", "deployment", "d"], {
        env: { KUBE_EDITOR: editorScript(target, "replicas: 2", "replicas: 5") },
      }),
    ).toBe("deployment.apps/d edited\n");
    expect(await ok(["-n", n, "get", "deploy", "d", "-o", "jsonpath={.spec.replicas}"])).toBe("5");
    await ok(["create", "-f", "-"], {
      input: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: edited}\nspec: {size: 2}\n",
    });
    expect(
      await ok(["edit", "gadget", "edited"], { env: { KUBE_EDITOR: editorScript(target, "size: 2", "size: 42") } }),
    ).toBe("gadget.example.com/edited edited\n");
  });

  test("replace and replace --force write the whole object", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.deployment("d") });
    expect(await ok(["-n", n, "replace", "-f", "-"], { input: yaml.deployment("d", "example.com/app:2") })).toBe(
      "deployment.apps/d replaced\n",
    );
    expect(
      await ok(["-n", n, "replace", "--force", "-f", "-"], { input: yaml.deployment("d", "example.com/app:3") }),
    ).toContain("deployment.apps/d replaced");
  });

  test("patch in all three forms", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.deployment("d") });
    expect(
      await ok([
        "-n",
        n,
        "patch",
        "deployment",
        "d",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.com/app:7"}]}}}}',
      ]),
    ).toBe("deployment.apps/d patched\n");
    expect(await ok(["-n", n, "patch", "deployment", "d", "--type=merge", "-p", '{"spec":{"replicas":4}}'])).toBe(
      "deployment.apps/d patched\n",
    );
    expect(
      await ok([
        "-n",
        n,
        "patch",
        "deployment",
        "d",
        "--type=json",
        "-p",
        '[{"op":"replace","path":"/spec/replicas","value":6}]',
      ]),
    ).toBe("deployment.apps/d patched\n");
    expect(
      await ok([
        "-n",
        n,
        "patch",
        "deployment",
        "d",
        "--subresource=status",
        "--type=merge",
        "-p",
        '{"status":{"readyReplicas":1,"replicas":1}}',
      ]),
    ).toBe("deployment.apps/d patched\n");
    expect(
      await ok([
        "-n",
        n,
        "get",
        "deploy",
        "d",
        "-o",
        "jsonpath={.spec.replicas} {.status.readyReplicas} {.spec.template.spec.containers[0].image}",
      ]),
    ).toBe("6 1 example.com/app:7");
  });

  test("label, annotate and set image", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.deployment("d") });
    expect(await ok(["-n", n, "label", "deployment", "d", "tier=one"])).toBe("deployment.apps/d labeled\n");
    expect(await ok(["-n", n, "label", "deployment", "d", "tier-"])).toBe("deployment.apps/d unlabeled\n");
    expect(await ok(["-n", n, "annotate", "deployment", "--all", "note=yes"])).toBe("deployment.apps/d annotated\n");
    expect(await ok(["-n", n, "set", "image", "deployment/d", "main=example.com/app:8"])).toBe(
      "deployment.apps/d image updated\n",
    );
  });

  test("delete waits until the object is gone", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "configmap", "c"]);
    expect(await ok(["-n", n, "delete", "configmap", "c"])).toContain('configmap "c" deleted');
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.pod("p", "node-a") });
    const deleting = ok(["-n", n, "delete", "pod", "p", "--timeout=400s"]);
    const watch = await api.watch(`/api/v1/namespaces/${n}/pods?watch=true`);
    for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
      if ((event.object["metadata"] as { deletionTimestamp?: string }).deletionTimestamp !== undefined) break;
    }
    await watch.close();
    await api.delete(`/api/v1/namespaces/${n}/pods/p`, { gracePeriodSeconds: 0 });
    expect(await deleting).toContain('pod "p" deleted');
  });

  test("wait sees a condition become true, and a deletion", async () => {
    await ok(["create", "-f", "-"], {
      input: "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: awaited}\nspec: {size: 1}\n",
    });
    const waiting = ok(["wait", "gadget/awaited", "--for=condition=Ready=True", "--timeout=400s"]);
    await api.patch("/apis/example.com/v1/gadgets/awaited/status", "merge", {
      status: { conditions: [{ type: "Ready", status: "True" }] },
    });
    expect(await waiting).toBe("gadget.example.com/awaited condition met\n");
    const gone = ok(["wait", "gadget/awaited", "--for=delete", "--timeout=400s"]);
    await api.delete("/apis/example.com/v1/gadgets/awaited");
    expect(await gone).toMatch(/^$|condition met/);
    const never = await kubectl(["wait", "crd/gadgets.example.com", "--for=condition=Never", "--timeout=1s"]);
    expect(never.err).toContain("timed out waiting for the condition");
  });

  test("explain shows fields and their descriptions", async () => {
    expect(await ok(["explain", "gadget.spec"])).toContain("How big it is.");
    expect(await ok(["explain", "deployment.spec.replicas"])).toContain("FIELD: replicas <integer>");
    expect(await ok(["explain", "pods"])).toContain("KIND:       Pod");
  });

  test("auth can-i and whoami", async () => {
    expect(await ok(["auth", "can-i", "create", "pods"])).toBe("yes\n");
    const no = await kubectl(["auth", "can-i", "create", "pods"], { user: "alice" });
    expect(no).toMatchObject({ code: 1, out: "no\n" });
    expect(await ok(["auth", "can-i", "--list"], { user: "alice" })).toContain(
      "selfsubjectaccessreviews.authorization.k8s.io",
    );
    expect(await ok(["auth", "whoami"], { user: "alice" })).toMatch(/Username +alice/);
    expect(await ok(["auth", "can-i", "get", "pods", "--as", "carol", "--as-group", "system:masters"])).toBe("yes\n");
    const refused = await kubectl(["get", "pods"], { user: "alice" });
    expect(refused.err).toBe(
      'Error from server (Forbidden): pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"\n',
    );
  });

  test("cordon, taint, drain against a budget, uncordon", async () => {
    const n = await namespace();
    await api.post("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "drained" } });
    expect(await ok(["cordon", "drained"])).toBe("node/drained cordoned\n");
    expect(await ok(["get", "node", "drained"])).toContain("SchedulingDisabled");
    expect(await ok(["uncordon", "drained"])).toBe("node/drained uncordoned\n");
    expect(await ok(["taint", "nodes", "drained", "k=v:NoSchedule"])).toBe("node/drained tainted\n");
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.pod("p", "drained") });
    await api.patch(`/api/v1/namespaces/${n}/pods/p/status`, "merge", {
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    });
    await api.post(`/apis/policy/v1/namespaces/${n}/poddisruptionbudgets`, {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: "guard" },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "p" } } },
    });
    await api.patch(`/apis/policy/v1/namespaces/${n}/poddisruptionbudgets/guard/status`, "merge", {
      status: { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
    });
    const blocked = await kubectl(["drain", "drained", "--force", "--timeout=2s"]);
    expect(blocked.code).toBe(1);
    expect(blocked.err).toContain("Cannot evict pod as it would violate the pod's disruption budget.");
    await api.delete(`/apis/policy/v1/namespaces/${n}/poddisruptionbudgets/guard`);
    const draining = ok(["drain", "drained", "--force", "--timeout=400s"]);
    const watch = await api.watch(`/api/v1/namespaces/${n}/pods?watch=true`);
    for (let event = await watch.next(); event !== undefined; event = await watch.next()) {
      if ((event.object["metadata"] as { deletionTimestamp?: string }).deletionTimestamp !== undefined) break;
    }
    await watch.close();
    await api.delete(`/api/v1/namespaces/${n}/pods/p`, { gracePeriodSeconds: 0 });
    expect(await draining).toContain("node/drained drained");
  });

  test("describe node", async () => {
    await api.post("/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "shown", labels: { "node-role.kubernetes.io/worker": "" } },
    });
    expect(await ok(["describe", "node", "shown"])).toMatch(/Roles: +worker/);
  });

  test("logs come from the pod's container", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.pod("p", "node-a") });
    expect(await ok(["-n", n, "logs", "p"])).toBe("output of p/main\n");
    expect(await ok(["-n", n, "logs", "p", "-c", "main", "--tail=5"])).toBe("output of p/main (last 5)\n");
  });

  test("scale and rollout status", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "-f", "-"], { input: yaml.deployment("d") });
    expect(await ok(["-n", n, "scale", "deployment", "d", "--replicas=4"])).toBe("deployment.apps/d scaled\n");
    expect(await ok(["-n", n, "get", "deploy", "d", "-o", "jsonpath={.spec.replicas}"])).toBe("4");
    const rollout = ok(["-n", n, "rollout", "status", "deployment/d", "--timeout=400s"]);
    const generation = Number(await ok(["-n", n, "get", "deploy", "d", "-o", "jsonpath={.metadata.generation}"]));
    await api.patch(`/apis/apps/v1/namespaces/${n}/deployments/d/status`, "merge", {
      status: {
        observedGeneration: generation,
        replicas: 4,
        updatedReplicas: 4,
        readyReplicas: 4,
        availableReplicas: 4,
      },
    });
    expect(await rollout).toContain("successfully rolled out");
  });

  test("get -w prints changes as they happen", async () => {
    const n = await namespace();
    await ok(["-n", n, "create", "configmap", "a"]);
    const { promise: listed, resolve } = Promise.withResolvers<void>();
    const onOutput = (out: string) => {
      if (/^a /m.test(out)) resolve();
    };
    const watching = kubectl(["-n", n, "get", "configmaps", "-w", "--request-timeout=2s"], { onOutput });
    await listed;
    await ok(["-n", n, "create", "configmap", "b"]);
    const { out } = await watching;
    expect(out).toMatch(/^a /m);
    expect(out).toMatch(/^b /m);
  });
});
