import { describe, expect, test } from "vitest";
import { type Impersonated, inClusterConnection, readKubeconfig } from "./kubeconfig.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");
const filesOf = (files: Record<string, string>) => ({ readText: async (path: string) => files[path] });

const config = (
  user: string,
  cluster = `{server: "https://10.0.0.1:6443/", certificate-authority-data: ${base64("CA")}}`,
) => `
apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: ns}}
- {name: there, context: {cluster: nowhere, user: u}}
clusters:
- {name: c, cluster: ${cluster}}
users:
- {name: u, user: ${user}}
`;

describe("readKubeconfig", () => {
  test("reads inline certificates and the context's namespace", async () => {
    const files = filesOf({
      "/k": config(`{client-certificate-data: ${base64("CERT")}, client-key-data: ${base64("KEY")}}`),
    });
    expect(await readKubeconfig(files, "/k")).toEqual({
      server: "https://10.0.0.1:6443",
      ca: "CA",
      certificate: "CERT",
      key: "KEY",
      context: "here",
      namespace: "ns",
    });
  });

  test("reads certificates from files beside it, and tokens", async () => {
    const files = filesOf({
      "/a/k": config(
        "{client-certificate: c.pem, client-key: /b/k.pem, token: T}",
        "{server: 'https://h', certificate-authority: ca.pem}",
      ),
      "/a/c.pem": "C",
      "/b/k.pem": "K",
      "/a/ca.pem": "A",
    });
    expect(await readKubeconfig(files, "/a/k")).toMatchObject({
      server: "https://h",
      ca: "A",
      certificate: "C",
      key: "K",
      token: "T",
    });
  });

  test("reads an exec plug-in", async () => {
    const files = filesOf({
      "/k": config(
        "{exec: {command: get-token, args: [a], env: [{name: X, value: '1'}], apiVersion: client.authentication.k8s.io/v1beta1}}",
      ),
    });
    expect((await readKubeconfig(files, "/k")).exec).toEqual({
      command: "get-token",
      args: ["a"],
      env: { X: "1" },
      apiVersion: "client.authentication.k8s.io/v1beta1",
    });
  });

  test.for([
    { title: "a missing file", text: undefined, context: undefined, problem: "there is no such file" },
    { title: "no YAML", text: "a: [", context: undefined, problem: "it is not valid YAML" },
    {
      title: "a context that is not there",
      text: config("{}"),
      context: "other",
      problem: 'it has no context "other"',
    },
    {
      title: "a cluster that is not there",
      text: config("{}"),
      context: "there",
      problem: 'it has no cluster "nowhere"',
    },
  ])("refuses $title and says what is missing", async ({ text, context, problem }) => {
    const files = filesOf(text === undefined ? {} : { "/k": text });
    await expect(readKubeconfig(files, "/k", context)).rejects.toMatchObject({
      code: "MCO_KUBECONFIG_INVALID",
      facts: { problem },
    });
  });

  test("reads whom the user acts as, and refuses a part without a name [kubeconfig-1]", async () => {
    const read = (user: string) => readKubeconfig(filesOf({ "/k": config(user) }), "/k");
    expect(
      (await read("{as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {example.com/k: [v]}}")).impersonate,
    ).toEqual({ user: "jane", uid: "7", groups: ["a", "b"], extra: { "example.com/k": ["v"] } });
    expect((await read("{as: jane}")).impersonate).toEqual({ user: "jane" });
    for (const [user, problem] of [
      ["{as-groups: [a]}", "as-uid, as-groups and as-user-extra need as, or --as"],
      ["{as: jane, as-groups: a}", "as-groups is no list of texts"],
      ["{as: jane, as-user-extra: {k: v}}", "as-user-extra is no map of lists of texts"],
      ["{as: 7}", "as is no text"],
    ] as const)
      await expect(read(user)).rejects.toMatchObject({ code: "MCO_KUBECONFIG_INVALID", facts: { problem } });
  });

  test("of what the user acts as, the command line replaces the parts that it names [kubeconfig-4]", async () => {
    const read = async (user: string, named: Partial<Impersonated>) =>
      (await readKubeconfig(filesOf({ "/k": config(user) }), "/k", undefined, named)).impersonate;
    const full = "{as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {k: [v]}}";
    const rest = { uid: "7", groups: ["a", "b"], extra: { k: ["v"] } };
    expect(await read(full, { user: "joe" })).toEqual({ user: "joe", ...rest });
    expect(await read(full, { groups: ["c"], uid: "9" })).toEqual({ ...rest, user: "jane", groups: ["c"], uid: "9" });
    expect(await read("{as-groups: [a]}", { user: "joe" })).toEqual({ user: "joe", groups: ["a"] });
    await expect(read("{}", { groups: ["c"] })).rejects.toMatchObject({ code: "MCO_KUBECONFIG_INVALID" });
  });

  test("of several files the first entry of a name counts, with paths beside its own file [kubeconfig-2]", async () => {
    const files = filesOf({
      "/a/k": "users: [{name: u, user: {client-certificate: c.pem}}]\n",
      "/b/k": config("{token: T}", "{server: 'https://h', certificate-authority: ca.pem}"),
      "/a/c.pem": "C",
      "/b/ca.pem": "A",
    });
    const both = ["/none", "/a/k", "/b/k"];
    expect(await readKubeconfig(files, both)).toEqual({
      server: "https://h",
      ca: "A",
      certificate: "C",
      context: "here",
      namespace: "ns",
    });
    await expect(readKubeconfig(files, both, "gone")).rejects.toMatchObject({
      facts: { path: "/none:/a/k:/b/k", problem: 'it has no context "gone"' },
    });
    await expect(readKubeconfig(files, ["/x", "/y"])).rejects.toMatchObject({
      facts: { problem: "there is none of these files" },
    });
  });

  test("never puts the file's text into the error", async () => {
    const secret = "token: SECRET-THAT-MUST-NOT-SHOW: [";
    const error = await readKubeconfig(filesOf({ "/k": secret }), "/k").catch((caught: unknown) => caught as Error);
    expect(`${JSON.stringify(error)} ${(error as Error).message} ${String((error as Error).cause)}`).not.toContain(
      "SECRET",
    );
  });
});

test("a pod finds the API server by its environment and its mounted account", async () => {
  const files = filesOf({ "/sa/ca.crt": "CA", "/sa/namespace": "ns" });
  expect(
    await inClusterConnection(files, { KUBERNETES_SERVICE_HOST: "127.1.2.1", KUBERNETES_SERVICE_PORT: "6443" }, "/sa"),
  ).toEqual({ server: "https://127.1.2.1:6443", ca: "CA", tokenFile: "/sa/token", namespace: "ns" });
  await expect(inClusterConnection(files, {}, "/sa")).rejects.toMatchObject({ code: "MCO_KUBECONFIG_INVALID" });
});
