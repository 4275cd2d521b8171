import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { objects } from "../api/names.ts";
import {
  ServerHarness,
  credentialIn,
  kubeconfigIn,
  ignition,
  problemOf,
  pullSecret,
} from "../../test/support/server-harness.ts";

interface Config {
  readonly ignition: { readonly version: string };
  readonly storage: {
    readonly files: readonly {
      readonly path: string;
      readonly mode: number;
      readonly contents: { readonly source: string };
    }[];
  };
}

const fileIn = (text: string, path: string) =>
  (JSON.parse(text) as Config).storage.files.find((file) => file.path === path);
const forAll = { pool: "worker", expiresAt: "2099-01-01T00:00:00Z" };

describe("the server answers", () => {
  test("a machine with a token gets its pool's configuration, with a credential to join [server-served-answers-5]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("one", "a", { maxUses: 1 });
    const got = await server.get({ token, headers: { accept: ignition("3.5.0") } });
    expect(got.status).toBe(200);
    expect(got.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(got.body.length),
      "cache-control": "no-store",
    });
    expect((JSON.parse(got.text) as Config).ignition.version).toBe("3.5.0");
    expect(fileIn(got.text, "/etc/kubernetes/kubeconfig")?.mode).toBe(0o600);
    expect(kubeconfigIn(got.text)).toContain("https://api.example.com:6443");
    expect(kubeconfigIn(got.text)).toContain(btoa("ca-1"));
    expect(got.text).toContain(pullSecret);
    const [, claims = ""] = /token: \S+\.(\S+)\./.exec(kubeconfigIn(got.text)) ?? [];
    const { sub, exp, iat } = JSON.parse(Buffer.from(claims, "base64url").toString()) as {
      readonly sub: string;
      readonly exp: number;
      readonly iat: number;
    };
    expect(sub).toMatch(/:node-bootstrapper-worker$/);
    expect(exp - iat).toBe(3600);
  });

  test.for([
    { accept: undefined, version: "2.2.0" },
    { accept: ignition("2.2.0"), version: "2.2.0" },
    { accept: ignition("3.1.0"), version: "3.1.0" },
    { accept: ignition("3.4.0"), version: "3.4.0" },
    { accept: ignition("3.6.0"), version: "3.5.0" },
  ])("$accept is answered in $version [server-served-answers-6]", async ({ accept, version }) => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    const got = await server.get({ headers: accept === undefined ? {} : { accept } });
    expect((JSON.parse(got.text) as Config).ignition.version).toBe(version);
  });

  test("every error status has a body with the reason [server-served-answers-1]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("all", "a", forAll);
    const ghost = await harness.token("ghost", "g", { ...forAll, pool: "ghosts" });
    expect(problemOf(await server.get({ token: ghost, path: "/config/ghosts" }))).toMatchObject({
      reason: "UnknownPool",
      pool: "ghosts",
    });
    expect((await server.get({ token: ghost, path: "/config/ghosts" })).status).toBe(404);

    const old = await server.get({ token, headers: { accept: ignition("3.0.0") } });
    expect([old.status, problemOf(old)]).toMatchObject([
      400,
      { reason: "UnsupportedVersion", asked: "3.0.0", offered: ["2.2.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"] },
    ]);

    await harness.point(
      "worker",
      await harness.render("worker", {}, { systemd: {}, passwd: {}, kernelArguments: { shouldNotExist: ["quiet"] } }),
    );
    const lost = await server.until({ token, headers: { accept: ignition("3.1.0") } }, ({ status }) => status === 400);
    expect(problemOf(lost).reason).toBe("FieldWouldBeLost");
    expect(JSON.stringify(problemOf(lost)["fields"])).toContain("kernelArguments");

    const posted = await server.get({ token, method: "POST" });
    expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD"]);
    expect((await server.get({ token, method: "PUT", body: "x" })).status).toBe(413);

    await harness.kube.delete(ControllerConfig, { name: objects.controllerConfig });
    const early = await server.until({ token }, ({ status }) => status === 503);
    expect([problemOf(early).reason, early.headers["retry-after"]]).toEqual(["NoControllerConfig", "5"]);
    const ready = await server.until({ path: "/readyz" }, ({ status }) => status === 503);
    expect(JSON.parse(ready.text)).toEqual({
      ready: false,
      access: "required",
      missing: ["NoControllerConfig: 2 of 2 pools"],
      pools: ["NoControllerConfig: 2 of 2 pools"],
    });
    expect((await server.get({ path: "/healthz" })).status).toBe(200);
  });

  test("HEAD equals GET without a body, and counts no use [server-served-answers-2]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("head", "a", { maxUses: 1 });
    const described = await server.get({ token, method: "HEAD" });
    expect(described.body.length).toBe(0);
    expect(await harness.uses(token)).toBe(0);
    const got = await server.get({ token });
    const { date: _, connection: __, "keep-alive": ___, ...same } = described.headers;
    expect(got.headers).toMatchObject(same);
    expect(described.headers["content-length"]).toBe(String(got.body.length));
    for (const path of ["/healthz", "/readyz", "/nowhere", "/config/worker"])
      expect((await server.get({ path, method: "HEAD" })).body.length, path).toBe(0);
  });

  test("an unchanged answer is not sent again, and counts no use [server-served-answers-3]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start();
    const token = await harness.token("etag", "a", { maxUses: 2 });
    const etag = String((await server.get({ token, method: "HEAD" })).headers["etag"]);
    expect(etag).toMatch(/^W\/"[0-9a-f]{40}"$/);
    const same = await server.get({ token, headers: { "if-none-match": `"other", ${etag}` } });
    expect([same.status, same.body.length, same.headers["etag"]]).toEqual([304, 0, etag]);
    expect(await harness.uses(token)).toBe(0);
    expect((await server.get({ token, headers: { "if-none-match": '"other"' } })).status).toBe(200);
    expect((await server.get({ token, headers: { "if-none-match": etag, "accept-encoding": "gzip" } })).status).toBe(
      200,
    );
    expect(await harness.uses(token)).toBe(2);
  });

  test.for([
    { encoding: "gzip", zipped: true },
    { encoding: "br, gzip;q=0.1", zipped: true },
    { encoding: "*", zipped: true },
    { encoding: "gzip;q=0, identity", zipped: false },
    { encoding: "identity", zipped: false },
  ])("with Accept-Encoding $encoding [server-served-answers-4]", async ({ encoding, zipped }) => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    const plain = await server.get();
    const got = await server.get({ headers: { "accept-encoding": encoding } });
    expect(got.headers["content-encoding"]).toBe(zipped ? "gzip" : undefined);
    // Each answer has a credential of its own.
    const withoutCredential = (text: string) => text.replace(credentialIn(text).token, "");
    expect(withoutCredential((zipped ? gunzipSync(got.body) : got.body).toString())).toBe(
      withoutCredential(plain.text),
    );
    expect(got.headers["etag"] === plain.headers["etag"]).toBe(!zipped);
  });
});

describe("the server answers again after a change", () => {
  test("another configuration of the pool, other settings, other authorities [server-served-answers-7]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    await harness.point("worker", await harness.render("worker", { "/etc/a": "changed" }));
    await server.until({}, ({ status, text }) => status === 200 && text.includes("data:,changed"));

    await harness.kube.patch(
      ControllerConfig,
      { name: objects.controllerConfig },
      { type: "merge", body: { spec: { kubeAPIServerServingCAData: btoa("kubelet-ca-2\n") } } },
    );
    await server.until({}, ({ text }) => text.includes(btoa("kubelet-ca-2\n")));

    await harness.authorities("ca-2");
    await server.until({}, ({ text }) => kubeconfigIn(text).includes(btoa("ca-2")));

    const last = await server.get();
    expect(last.status).toBe(200);
    expect(last.text).toContain("data:,changed");
    expect(last.text).toContain(btoa("kubelet-ca-2\n"));
    expect(kubeconfigIn(last.text)).toContain(btoa("ca-2"));
  });

  test("a new pool is served, and a deleted one is not [server-served-answers-8]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    expect((await server.get({ path: "/config/infra" })).status).toBe(404);
    await harness.pool("infra", { "/etc/infra": "x" });
    await server.until({ path: "/config/infra" }, ({ status }) => status === 200);
    await harness.kube.delete(MachineConfigPool, { name: "infra" });
    await server.until({ path: "/config/infra" }, ({ status }) => status === 404);
  });

  test("while a new configuration is pending, the previous one is served without refusals [server-served-answers-9]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    const before = new Set<number>();
    await harness.point("worker", await harness.render("worker", { "/etc/a": "next" }));
    await server.until({}, ({ status, text }) => {
      before.add(status);
      return text.includes("data:,next");
    });
    expect([...before]).toEqual([200]);
  });

  test("each answer has a credential of its own, by which the API server knows its machine [server-served-answers-10]", async () => {
    const harness = await ServerHarness.make();
    const server = await harness.start({ access: "insecure" });
    const [one, two] = [credentialIn((await server.get()).text), credentialIn((await server.get()).text)];
    expect(one.token).not.toBe(two.token);
    expect(one.id).not.toBe(two.id);
  });
});
