import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { controllerConfigConditions, objects } from "../api/names.ts";
import { conditionOf } from "../api/schema/object.ts";
import { kubeletPullSecretPath } from "../core/render/base-configs.ts";
import { fileText } from "../core/render/config-file.ts";
import { pullSecretKey as pullSecretKeyOn } from "../core/render/pull-secret.ts";
import { mostTextCharacters } from "../ignition/held-contents.ts";

const pullSecretKey = pullSecretKeyOn(true);
const type = "kubernetes.io/dockerconfigjson";
const good = { auths: { "r.example": { auth: "dTpw" } } };

class PullSecret {
  readonly harness: Harness;

  private constructor(harness: Harness) {
    this.harness = harness;
  }

  static async make(text?: string): Promise<PullSecret> {
    const made = new PullSecret((await updatedPool(["w0"])).harness);
    const metadata = { name: pullSecretKey.namespace };
    await made.harness.act(() => made.harness.ofOpenShift());
    await made.harness.act(() =>
      made.harness.kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata }),
    );
    if (text !== undefined) await made.put(text);
    return made;
  }

  /** Writes the Secret, and lets the controllers see it. */
  async put(text: string): Promise<void> {
    const { kube } = this.harness;
    const data = { ".dockerconfigjson": btoa(text) };
    await this.harness.act(async () => {
      if ((await kube.get(kubernetes.Secret, pullSecretKey)) === undefined)
        await kube.create(kubernetes.Secret, { apiVersion: "v1", kind: "Secret", metadata: pullSecretKey, type, data });
      else await kube.patch(kubernetes.Secret, pullSecretKey, { type: "merge", body: { data } });
    });
    await this.harness.pass(3000);
  }

  async remove(): Promise<void> {
    await this.harness.act(() => this.harness.kube.delete(kubernetes.Secret, pullSecretKey));
    await this.harness.pass(3000);
  }

  onMachines = async (): Promise<string | undefined> =>
    fileText(
      await this.harness.act(() => this.harness.kube.get(MachineConfig, { name: "00-worker" })),
      kubeletPullSecretPath,
      mostTextCharacters,
    );

  async condition(of: keyof typeof controllerConfigConditions): Promise<string> {
    const config = await this.harness.act(() =>
      this.harness.kube.get(ControllerConfig, { name: objects.controllerConfig }),
    );
    const found = conditionOf(
      config?.status?.conditions as { type: string; status?: string; message?: string }[] | undefined,
      controllerConfigConditions[of],
    );
    return `${found?.status}: ${found?.message}`;
  }
}

describe("the pull secret of a cluster", () => {
  test("reaches the base configurations within seconds, compact [controller-template-1]", async () => {
    const secret = await PullSecret.make();
    expect(await secret.onMachines()).toBeUndefined();
    await secret.put(JSON.stringify(good, undefined, 2));
    expect(await secret.onMachines()).toBe(JSON.stringify(good));
    const more = { auths: { ...good.auths, "other.example": { auth: "dTpw" } } };
    await secret.put(JSON.stringify(more));
    expect(await secret.onMachines()).toBe(JSON.stringify(more));
    expect(await secret.condition("inputRefused")).toBe("undefined: undefined");
  });

  test.for<["plain" | "ofEarlierVersion"]>([["plain"], ["ofEarlierVersion"]])(
    "is read from the suite's namespace on clusters that are not OpenShift's, whose other namespaces are anybody's: %s [controller-template-5]",
    async ([cluster]) => {
      const { harness } = await updatedPool(["w0"]);
      if (cluster !== "plain") await harness.act(() => harness[cluster]());
      const put = (key: typeof pullSecretKey, text: string) =>
        harness.act(() =>
          harness.kube.create(kubernetes.Secret, {
            apiVersion: "v1",
            kind: "Secret",
            metadata: key,
            type,
            data: { ".dockerconfigjson": btoa(text) },
          }),
        );
      const onMachines = async () =>
        fileText(
          await harness.act(() => harness.kube.get(MachineConfig, { name: "00-worker" })),
          kubeletPullSecretPath,
          mostTextCharacters,
        );
      await harness.act(() =>
        harness.kube.create(kubernetes.Namespace, {
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: pullSecretKey.namespace },
        }),
      );
      await put(pullSecretKey, JSON.stringify({ auths: { "tenant.example": { auth: "dTpw" } } }));
      await harness.pass(3000);
      expect(await onMachines()).toBeUndefined();
      await put(pullSecretKeyOn(false), JSON.stringify(good));
      await harness.pass(3000);
      expect(await onMachines()).toBe(JSON.stringify(good));
    },
  );

  test.for(['{"auths":null}', '{"r.example":{"auth":"dTpw"}}', '{"auths":[]}'])(
    "which would take the credentials of all machines is not used, and the condition says so: %s [controller-template-2]",
    async (text) => {
      const secret = await PullSecret.make(JSON.stringify(good));
      await secret.put(text);
      expect(await secret.onMachines()).toBe(JSON.stringify(good));
      expect(await secret.condition("inputRefused")).toMatch(
        /^True: the Secret openshift-config\/pull-secret is not used: .*; machines keep the one that they have until it is fixed$/,
      );
      // Everything else is rendered as before.
      expect(await secret.condition("completed")).toMatch(/^True: /);
      await secret.put(JSON.stringify({ auths: {} }));
      expect(await secret.onMachines()).toBe('{"auths":{}}');
      expect(await secret.condition("inputRefused")).toBe("False: ");
    },
  );

  test("is nothing to machines of kubeadm, whatever it is [controller-template-4]", async () => {
    const secret = await PullSecret.make();
    await secret.harness.act(() =>
      secret.harness.kube.create(kubernetes.ConfigMap, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "kubelet-config", namespace: "kube-system" },
        data: { kubelet: "kind: KubeletConfiguration\n" },
      }),
    );
    await secret.put('{"auths":[]}');
    expect(await secret.onMachines()).toBeUndefined();
    expect(await secret.condition("completed")).toMatch(/^True: /);
    expect(await secret.condition("inputRefused")).toBe("undefined: undefined");
  });

  test("that was deleted takes no credentials from machines [controller-template-3]", async () => {
    const secret = await PullSecret.make(JSON.stringify(good));
    await secret.remove();
    expect(await secret.onMachines()).toBe(JSON.stringify(good));
    expect(await secret.condition("inputRefused")).toContain("the Secret openshift-config/pull-secret is gone");
  });
});
