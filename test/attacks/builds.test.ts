import { describe, expect, test } from "vitest";
import { type Job, type Secret, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { buildNamespace, namespace, objects } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/schema/object.ts";
import { isForbidden } from "../../src/kube/kube-error.ts";
import { suiteRights } from "../../src/operator/rights.ts";
import { startOperator } from "../support/operator-harness.ts";
import { buildJob } from "../support/pod-templates.ts";

interface Binding extends KubeObject {
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

describe("who controls the builder, or a step of a build, meets no Secret of a component", () => {
  test("the builder makes no pod and no Secret in the suite's namespace, and reads none of other namespaces [attack-builds-1]", async () => {
    const { kube, as } = await startOperator();
    const builder = as({ name: `system:serviceaccount:${namespace}:${objects.osBuilder}`, groups: [] });
    const secret = (name: string, where: string): Secret => ({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace: where },
    });
    await kube.create<Secret>(kubernetes.Secret, secret("certificate", namespace));
    const job = buildJob();
    const stealing = { ...job, metadata: { ...job.metadata, namespace } } as Job;
    for (const attack of [
      () => builder.create<Job>(kubernetes.Job, stealing),
      () =>
        builder.create(kubernetes.Pod, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { name: "thief", namespace: buildNamespace },
          spec: job.spec?.template.spec ?? { containers: [] },
        }),
      () => builder.create<Secret>(kubernetes.Secret, secret("planted", namespace)),
      () =>
        builder.patch<Secret>(
          kubernetes.Secret,
          { name: "certificate", namespace },
          { type: "merge", body: { data: {} } },
        ),
      () => builder.delete(kubernetes.Secret, { name: "certificate", namespace }),
      () => builder.list(kubernetes.Secret, { namespace: "kube-system" }),
      () => builder.list(kubernetes.Secret),
    ])
      await expect(attack()).rejects.toSatisfy(isForbidden);
    // Its work it can do.
    await builder.create<Job>(kubernetes.Job, job);
  });

  test("a build's pod runs as an account that no binding names, and has no token [attack-builds-2]", async () => {
    const spec = buildJob().spec?.template.spec;
    expect([spec?.serviceAccountName, spec?.automountServiceAccountToken]).toEqual([objects.buildAccount, false]);
    const subjects = suiteRights().flatMap((one) => (one as Binding).subjects ?? []);
    expect(subjects.filter(({ name }) => name === objects.buildAccount || name.endsWith(buildNamespace))).toEqual([]);
    const { kube } = await startOperator();
    const account = await kube.get(kubernetes.ServiceAccount, {
      name: objects.buildAccount,
      namespace: buildNamespace,
    });
    expect(account?.automountServiceAccountToken).toBe(false);
  });

  test("a build's pod mounts what was copied for this build alone, and the cache of its pool alone [attack-builds-3]", () => {
    const { metadata, spec } = buildJob();
    expect(metadata.namespace).toBe(buildNamespace);
    const [, build = ""] = /^build-(.*)-1$/.exec(metadata.name) ?? [];
    for (const { secret, configMap, hostPath } of spec?.template.spec?.volumes ?? []) {
      const name = secret?.secretName ?? configMap?.name;
      if (name !== undefined) expect(name).toMatch(new RegExp(`-${build}$`));
      if (hostPath !== undefined) expect(hostPath.path).toMatch(/\/worker$/);
    }
  });
});
