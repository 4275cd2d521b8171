import { describe, expect, test } from "vitest";
import { serverWithAdmin } from "../../test/support/server-with-admin.ts";
import { type ConfigMap, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject } from "../api/schema/object.ts";
import type { ClusterRegistry } from "../standin/cluster/cluster-registry.ts";
import type { Resource } from "../api/schema/object.ts";
import { systemRandom } from "../ports/node/index.ts";
import { hashRandomPassword } from "../standin/registry/registry-users.ts";
import { applyRegistrySettings } from "./apply-registry-settings.ts";
import { pullSecretName, pushSecretName } from "./image-mode.ts";

const { signal } = new AbortController();
const host = "127.9.9.2:5000";
const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");
const entry = (user: string, password: string) => ({ auth: base64(`${user}:${password}`) });
const authOf = (auths: object) => JSON.stringify({ auths });
const user = (name: string, may: readonly ("pull" | "push" | "delete")[], password: string) => ({
  name,
  may,
  password: hashRandomPassword(password, systemRandom),
});

const pullSecret = { name: "pull-secret", namespace };
const pushSecret = { name: pushSecretName, namespace };
const buildConfig = { name: objects.buildConfig, namespace };
const authorities = { name: "image-registry-ca", namespace };

/** A cluster with a registry, that was started once. */
async function startedCluster() {
  const { kube } = serverWithAdmin();
  await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
  const registryWith = (pullerPassword: string): ClusterRegistry => ({
    host,
    process: { host, pushAuth: "" },
    authority: "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n",
    pushAuth: authOf({ [host]: entry("builder", "secret-of-builder") }),
    pullAuth: authOf({ [host]: entry("puller", pullerPassword) }),
    users: [
      user("builder", ["pull", "push", "delete"], "secret-of-builder"),
      user("puller", ["pull"], pullerPassword),
      user("colleague", ["pull"], "secret-of-colleague"),
    ],
    notices: [],
  });
  const start = (pullerPassword = "secret-of-puller") =>
    applyRegistrySettings({
      kube,
      owner: "mco-up",
      registry: registryWith(pullerPassword),
      deriveKey: () => Promise.reject(new Error("no hash here takes long")),
      signal,
    });
  const edit = <T extends KubeObject>(
    resource: Resource<T>,
    { name, namespace: of }: typeof pullSecret,
    body: object,
  ) => kube.patch(resource, { name, namespace: of }, { type: "merge", body }, { owner: "kubectl-edit" });
  const write = (secret: typeof pullSecret, text: string) =>
    edit(kubernetes.Secret, secret, { data: { ".dockerconfigjson": base64(text) } });
  const read = async (secret: typeof pullSecret): Promise<unknown> => {
    const has: Secret | undefined = await kube.get(kubernetes.Secret, secret);
    return JSON.parse(Buffer.from(has?.data?.[".dockerconfigjson"] ?? "", "base64").toString("utf8"));
  };
  expect(await start()).toEqual([]);
  expect(await start()).toEqual([]);
  return { kube, start, edit, write, read };
}

const elsewhere = { "quay.io": entry("me", "mine") };
const own = { [host]: entry("puller", "secret-of-puller") };

describe("credentials of the cluster's registry that a user changed", () => {
  test.for([
    { title: "with more entries", secret: pullSecret, auths: { ...own, ...elsewhere } },
    {
      title: "with another user who may do so",
      secret: pullSecret,
      auths: { [`https://${host}/v1/`]: entry("colleague", "secret-of-colleague") },
    },
    { title: "with more rights", secret: pullSecret, auths: { [host]: entry("builder", "secret-of-builder") } },
    {
      title: "for the repository of the builds",
      secret: pushSecret,
      auths: { [`${host}/os`]: entry("builder", "secret-of-builder") },
    },
  ])(
    "stay as they are, if the registry accepts them: $title [apply-registry-settings-1]",
    async ({ secret, auths }) => {
      const { start, write, read } = await startedCluster();
      await write(secret, authOf(auths));
      for (const _ of [1, 2]) {
        expect(await start()).toEqual([]);
        expect(await read(secret)).toEqual({ auths });
      }
    },
  );

  test.for([
    { title: "no entry", auths: {}, why: `it has no credentials for ${host}` },
    {
      title: "a wrong password",
      auths: { [host]: entry("puller", "wrong") },
      why: "no user with this name and password",
    },
    {
      title: "a token, of which there are none",
      auths: { [host]: { registrytoken: "t" } },
      why: `it has no user and password for ${host}`,
    },
    {
      title: "a wrong password for the repository of images that are built",
      auths: { ...own, [`${host}/os/images`]: entry("puller", "wrong") },
      why: "no user with this name and password",
    },
    {
      title: "a wrong password for a repository",
      auths: { ...own, [`${host}/os`]: entry("puller", "wrong") },
      why: "no user with this name and password",
    },
  ])("are put back beside entries for others, and that is said: $title [apply-registry-settings-2]", async (row) => {
    const { start, write, read } = await startedCluster();
    await write(pullSecret, authOf({ ...elsewhere, ...row.auths }));
    const notices = await start();
    expect(notices).toEqual([expect.stringContaining(`Secret ${namespace}/pull-secret was put back`)]);
    expect(notices[0]).toContain(row.why);
    expect(notices[0]).not.toContain("wrong");
    expect(await read(pullSecret)).toEqual({ auths: { ...elsewhere, ...own } });
    // The next start finds nothing to put back, and takes nothing away.
    expect(await start()).toEqual([]);
    expect(await read(pullSecret)).toEqual({ auths: { ...elsewhere, ...own } });
    // A password that is made again reaches what the user has changed, too.
    expect(await start("another-secret")).toHaveLength(1);
    expect(await read(pullSecret)).toEqual({ auths: { ...elsewhere, [host]: entry("puller", "another-secret") } });
  });

  test("are put back if the registry does not let their user push [apply-registry-settings-3]", async () => {
    const { start, write, read } = await startedCluster();
    await write(pushSecret, authOf({ [host]: entry("colleague", "secret-of-colleague") }));
    expect(await start()).toEqual([expect.stringContaining(`${host} does not let its user colleague push`)]);
    expect(await read(pushSecret)).toEqual({ auths: { [host]: entry("builder", "secret-of-builder") } });
    await write(pushSecret, "{}");
    expect(await start()).toEqual([expect.stringContaining(".dockerconfigjson has no object with hosts")]);
    expect(await read(pushSecret)).toEqual({ auths: { [host]: entry("builder", "secret-of-builder") } });
  });

  test("are put back beside whatever else the user wrote there [apply-registry-settings-7]", async () => {
    const { start, write, read } = await startedCluster();
    for (const more of [{ credHelpers: { "quay.io": "ecr-login" }, auths: elsewhere }, elsewhere]) {
      await write(pullSecret, JSON.stringify(more));
      expect(await start()).toHaveLength(1);
      expect(await read(pullSecret)).toEqual({
        ...more,
        auths: { ...("auths" in more ? (more.auths as object) : {}), ...own },
      });
    }
  });

  test.for([
    { title: "a Secret", resource: kubernetes.Secret as Resource<KubeObject>, key: pushSecret },
    { title: "a ConfigMap", resource: kubernetes.ConfigMap as Resource<KubeObject>, key: authorities },
  ])("and settings in what is immutable are only reported: $title [apply-registry-settings-8]", async (row) => {
    const { kube, start, edit } = await startedCluster();
    const before = await kube.get(row.resource, row.key);
    const [changed = ""] = Object.keys((before as Secret | undefined)?.data ?? {});
    const value = row.title === "a Secret" ? base64("{}") : "another";
    await edit(row.resource, row.key, { immutable: true, data: { [changed]: value } });
    const notices = await start();
    expect(notices).toEqual([expect.stringContaining(`${row.key.namespace}/${row.key.name} was left as it is`)]);
    const after = await kube.get(row.resource, row.key);
    expect(after?.metadata.uid).toBe(before?.metadata.uid);
    expect(after).toMatchObject({ immutable: true, data: { [changed]: value } });
  });

  test("in a Secret that cannot be changed are only reported [apply-registry-settings-4]", async () => {
    const { kube, start } = await startedCluster();
    await kube.delete(kubernetes.Secret, pullSecret);
    const opaque = { apiVersion: "v1", kind: "Secret", metadata: pullSecret, type: "Opaque", data: { a: base64("b") } };
    await kube.create(kubernetes.Secret, opaque as Secret, { owner: "kubectl-create" });
    expect(await start()).toEqual([expect.stringMatching(/was left as it is, but it is of type Opaque; .* delete it/)]);
    expect(await kube.get(kubernetes.Secret, pullSecret)).toMatchObject({ type: "Opaque", data: { a: base64("b") } });
    await kube.delete(kubernetes.Secret, pullSecret);
    expect(await start()).toEqual([]);
    expect(await kube.get(kubernetes.Secret, pullSecret)).toMatchObject({ type: "kubernetes.io/dockerconfigjson" });
  });

  test("that are the cluster's own follow a password that is made again [apply-registry-settings-5]", async () => {
    const { start, read } = await startedCluster();
    expect(await start("another-secret")).toEqual([]);
    const auths = { [host]: entry("puller", "another-secret") };
    expect(await read(pullSecret)).toEqual({ auths });
    expect(await read({ name: pullSecretName, namespace })).toEqual({ auths });
  });
});

test("settings of builds that a user changed stay, and the registry's certificate is put back [apply-registry-settings-6]", async () => {
  const { kube, start, edit } = await startedCluster();
  const dataOf = async (key: typeof pullSecret) => {
    const has: ConfigMap | undefined = await kube.get(kubernetes.ConfigMap, key);
    return has?.data;
  };
  const before = await dataOf(buildConfig);
  await edit(kubernetes.ConfigMap, buildConfig, {
    data: { finalImagePullspec: "quay.io/me/os", defaultOptIn: "true" },
  });
  const [key = ""] = Object.keys((await dataOf(authorities)) ?? {});
  const certificate = (await dataOf(authorities))?.[key] ?? "";
  const other = "-----BEGIN CERTIFICATE-----\nother\n-----END CERTIFICATE-----\n";
  await edit(kubernetes.ConfigMap, authorities, { data: { [key]: `${other}${certificate}` } });
  for (const _ of [1, 2]) {
    expect(await start()).toEqual([]);
    expect(await dataOf(buildConfig)).toEqual({
      ...before,
      finalImagePullspec: "quay.io/me/os",
      defaultOptIn: "true",
    });
    expect(await dataOf(authorities)).toEqual({ [key]: `${other}${certificate}` });
  }
  await edit(kubernetes.ConfigMap, authorities, { data: { [key]: other } });
  expect(await start()).toEqual([expect.stringContaining(`${namespace}/image-registry-ca was put back`)]);
  expect(await dataOf(authorities)).toEqual({ [key]: certificate });
});
