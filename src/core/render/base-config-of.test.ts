import { describe, expect, test } from "vitest";
import type { KubeObject } from "../../api/schema/object.ts";
import { kubeletBaseOf, clusterSettings } from "../kubelet/cluster-settings.ts";
import { runtimeInputsOf } from "../runtime/base-texts.ts";
import { registriesBase } from "../runtime/registries-base.ts";
import { baseConfigOf, baseFileText, basePartOf } from "./base-config-of.ts";
import { generatedConfig } from "./generated-config.ts";

const owner: KubeObject = { apiVersion: "v1", kind: "ControllerConfig", metadata: { name: "c", uid: "c" } };
const storage = "/etc/containers/storage.conf";
const registries = "/etc/containers/registries.conf";
const policy = "/etc/containers/policy.json";
const kubelet = "/etc/kubernetes/kubelet.conf";

/** MachineConfigs by name, each with one file whose text is the name, and of the role in its name if none is given. */
const havingRoles = (
  roles: Readonly<Record<string, string>>,
  ...named: readonly (readonly [name: string, path: string])[]
) => {
  const configs = new Map(
    named.map(([name, path]) => [
      name,
      generatedConfig({
        name,
        role: roles[name] ?? /^0[01]-([a-z]+)/.exec(name)?.[1] ?? "",
        owner,
        files: [{ path, mode: 0o644, text: path === kubelet ? `staticPodPath: ${name}` : `# ${name}\n` }],
        generatorVersion: "g",
      }),
    ]),
  );
  return (name: string) => configs.get(name);
};
const having = (...named: readonly (readonly [name: string, path: string])[]) => havingRoles({}, ...named);

describe("a pool's base configuration", () => {
  test.for([
    { has: ["01-infra-kubelet", "01-worker-kubelet"], part: "kubelet", is: "01-infra-kubelet" },
    { has: ["00-infra", "01-worker-kubelet"], part: "kubelet", is: "01-worker-kubelet" },
    { has: ["00-infra", "01-worker-container-runtime"], part: "container-runtime", is: "01-worker-container-runtime" },
    { has: ["01-infra-container-runtime"], part: "container-runtime", is: "01-infra-container-runtime" },
    { has: ["00-worker", "01-infra-container-runtime"], part: "files", is: "00-worker" },
    { has: ["00-master"], part: "files", is: undefined },
  ] as const)("of $has, $part is $is [base-config-of-1]", ({ has, part, is }) => {
    expect(baseConfigOf(part, "infra", having(...has.map((name) => [name, storage] as const)))?.metadata.name).toBe(is);
  });

  test("every setting begins with the file of the same one [base-config-of-2]", () => {
    const settings = clusterSettings({});
    for (const own of [true, false]) {
      const role = own ? "infra" : "worker";
      // A pool with one part of its own has the others of `worker`.
      const configOf = having(
        ["00-infra", "/etc/a"],
        ["01-worker-kubelet", kubelet],
        ["01-worker-container-runtime", registries],
        ["00-worker", storage],
        ...(own ? ([[`01-infra-container-runtime`, registries]] as const) : []),
      );
      expect(registriesBase("infra", configOf, { pools: [], configs: [] })?.registries).toBe(
        `# 01-${role}-container-runtime\n`,
      );
      expect(baseFileText(registries, "infra", configOf)).toBe(`# 01-${role}-container-runtime\n`);
      expect(kubeletBaseOf("infra", settings, configOf)).toMatchObject({
        config: { staticPodPath: "01-worker-kubelet" },
      });
    }
    const inRuntime = having(["01-infra-container-runtime", storage], ["00-worker", storage]);
    expect(runtimeInputsOf("infra", {}, inRuntime).storage).toBe("# 01-infra-container-runtime\n");
    expect(runtimeInputsOf("infra", {}, having(["00-worker", storage])).storage).toBe("# 00-worker\n");
  });

  test.for(["infra", "arbiter"])(
    "of the pool %s, a MachineConfig of another role is no part of it, whatever its name [base-config-of-4]",
    (pool) => {
      const foreign = { [`01-${pool}-kubelet`]: "other", [`01-${pool}-container-runtime`]: "other" };
      const configOf = havingRoles(
        { ...foreign, [`00-${pool}`]: "other" },
        [`01-${pool}-kubelet`, kubelet],
        [`01-${pool}-container-runtime`, registries],
        [`00-${pool}`, policy],
        ["01-worker-kubelet", kubelet],
        ["01-worker-container-runtime", registries],
        ["00-worker", policy],
      );
      expect(registriesBase(pool, configOf, { pools: [], configs: [] })).toMatchObject({
        registries: "# 01-worker-container-runtime\n",
        policy: "# 00-worker\n",
      });
      expect(kubeletBaseOf(pool, clusterSettings({}), configOf)).toMatchObject({
        config: { staticPodPath: "01-worker-kubelet" },
      });
    },
  );

  test.for([
    ["00-worker", "files"],
    ["01-infra-kubelet", "kubelet"],
    ["01-a-b-container-runtime", "container-runtime"],
    ["01-worker-other", undefined],
    ["99-worker-ssh", undefined],
  ] as const)("%s is of part %s [base-config-of-3]", ([name, part]) => {
    expect(basePartOf(name)).toBe(part);
  });
});
