import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { hashPassword } from "../../../test/support/registry/hash-password.ts";
import { systemClock, systemFiles, systemRandom } from "../../ports/node/index.ts";
import { blobFolder } from "./node/blob-folder.ts";
import { deriveKey } from "./node/derive-key.ts";
import { digestOf } from "../../registry/registry-client.ts";
import type { RegistryRequest } from "./parts.ts";
import { registryServer } from "./registry-server.ts";
import { type DeriveKey, hashRandomPassword, passwordCheck, readUsers } from "./registry-users.ts";

const never = new AbortController().signal;
const users = [
  { name: "builder", password: hashPassword("pw"), may: ["pull", "push", "delete"] as const },
  { name: "puller", password: hashPassword("pw"), may: ["pull"] as const },
];
const basic = (user: string, password = "pw") => `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
const text = "some bytes of a blob";
const digest = digestOf(Buffer.from(text));

/** A registry in a folder of its own, and a time that tests move. */
async function harness(derive: DeriveKey = deriveKey) {
  const folder = await mkdtemp(join(tmpdir(), "mco-registry-server-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const time = { skippedMs: 0 };
  const clock = {
    ...systemClock,
    now: () => systemClock.now() + time.skippedMs,
    monotonic: () => systemClock.monotonic() + time.skippedMs,
  };
  const server = registryServer({
    folder,
    files: systemFiles,
    blobs: await blobFolder(folder, clock),
    clock,
    random: systemRandom,
    users,
    deriveKey: derive,
  });
  async function ask(
    method: string,
    target: string,
    {
      body = "",
      headers = {},
      as = "builder",
    }: {
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly as?: string | undefined;
    } = {},
  ) {
    const request: RegistryRequest = {
      method,
      target,
      headers: {
        host: "127.0.0.1:5000",
        ...(as === "" ? {} : { authorization: as.includes(" ") ? as : basic(as) }),
        ...headers,
      },
      body: (async function* () {
        if (body !== "") yield Buffer.from(body);
      })(),
    };
    const { status, headers: answered, body: given } = await server(request, never);
    const parts: Buffer[] = [];
    if (typeof given === "string" || given instanceof Uint8Array) parts.push(Buffer.from(given));
    else for await (const part of given) parts.push(Buffer.from(part));
    return { status, headers: answered, text: Buffer.concat(parts).toString() };
  }
  const codeOf = ({ text: answer }: { text: string }) =>
    (JSON.parse(answer) as { errors: { code: string }[] }).errors[0]?.code;
  const begin = async (path = "os/a") => String((await ask("POST", `/v2/${path}/blobs/uploads/`)).headers["location"]);
  const putBlob = async (contents = text, path = "os/a") =>
    ask("PUT", `${await begin(path)}?digest=${digestOf(Buffer.from(contents))}`, { body: contents });
  const manifest = (...layers: readonly string[]) =>
    JSON.stringify({
      schemaVersion: 2,
      config: { mediaType: "c", digest: digestOf(Buffer.from("{}")), size: 2 },
      layers: layers.map((layer) => ({ mediaType: "l", digest: digestOf(Buffer.from(layer)), size: layer.length })),
    });
  const putImage = async (tag: string, ...layers: readonly string[]) => {
    for (const contents of ["{}", ...layers]) await putBlob(contents);
    return ask("PUT", `/v2/os/a/manifests/${tag}`, {
      body: manifest(...layers),
      headers: { "content-type": "application/vnd.oci.image.manifest.v1+json" },
    });
  };
  return { folder, server, time, ask, codeOf, begin, putBlob, putImage, manifest };
}

describe("the embedded registry", () => {
  test("an upload arrives in consecutive parts, and counts only under its own digest", async () => {
    const { ask, begin, codeOf } = await harness();
    const place = await begin();
    expect(await ask("PATCH", place, { body: text.slice(0, 5) })).toMatchObject({
      status: 202,
      headers: { range: "0-4" },
    });
    expect(await ask("GET", place)).toMatchObject({ status: 204, headers: { range: "0-4" } });
    expect(await ask("PATCH", place, { body: "x", headers: { "content-range": "9-9" } })).toMatchObject({
      status: 416,
    });
    expect(await ask("PATCH", place, { body: text.slice(5, 9), headers: { "content-range": "5-8" } })).toMatchObject({
      status: 202,
    });
    expect(await ask("PUT", `${place}?digest=${digest}`, { body: text.slice(9) })).toMatchObject({
      status: 201,
      headers: { "docker-content-digest": digest },
    });
    expect(await ask("GET", `/v2/os/a/blobs/${digest}`)).toMatchObject({ status: 200, text });
    const wrong = await ask("PUT", `${await begin()}?digest=${digest}`, { body: "other" });
    expect([wrong.status, codeOf(wrong)]).toEqual([400, "DIGEST_INVALID"]);
    expect((await ask("PATCH", place, { body: "x" })).status).toBe(404);
    expect((await ask("POST", `/v2/os/a/blobs/uploads/?digest=${digest}`, { body: text })).status).toBe(201);
  });

  test("bytes that arrive after the digest was compared get into no blob [registry-server-24]", async () => {
    const { folder, server, ask, begin } = await harness();
    const place = await begin();
    const gate = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    const slow = server(
      {
        method: "PATCH",
        target: place,
        headers: { host: "127.0.0.1:5000", authorization: basic("builder") },
        body: (async function* () {
          yield Buffer.from(text);
          began.resolve();
          await gate.promise;
          yield Buffer.from("and what nobody compared");
        })(),
      },
      never,
    );
    await began.promise;
    for (const [method, query] of [
      ["PUT", `?digest=${digest}`],
      ["PATCH", ""],
      ["DELETE", ""],
    ] as const)
      expect((await ask(method, `${place}${query}`)).status).toBe(409);
    gate.resolve();
    expect((await slow).status).toBe(202);
    const ended = await ask("PUT", `${place}?digest=${digest}`);
    expect(ended.status).toBe(400);
    expect(await ask("GET", `/v2/os/a/blobs/${digest}`)).toMatchObject({ status: 404 });
    expect(await readdir(join(folder, "uploads"))).toEqual([]);
  });

  test("of two ends of one upload, one makes the blob [registry-server-25]", async () => {
    const { ask, begin } = await harness();
    const place = await begin();
    const answers = await Promise.all(
      [1, 2, 3].map(async () => (await ask("PUT", `${place}?digest=${digest}`, { body: text })).status),
    );
    // One that comes when the upload has ended finds none.
    expect(answers.filter((status) => status !== 409 && status !== 404)).toEqual([201]);
    expect(await ask("GET", `/v2/os/a/blobs/${digest}`)).toMatchObject({ status: 200, text });
    expect((await ask("PUT", `${place}?digest=${digest}`, { body: text })).status).toBe(404);
  });

  test.for([
    { range: "bytes=5-", status: 206, body: text.slice(5) },
    { range: "bytes=0-3", status: 206, body: text.slice(0, 4) },
    { range: "bytes=5-9999", status: 206, body: text.slice(5) },
    { range: "bytes=9999-", status: 416, body: "" },
    { range: "bytes=9-5", status: 416, body: "" },
    { range: "bytes=-5", status: 200, body: text },
    { range: "lines=1-2", status: 200, body: text },
  ])("$range is answered with $status", async ({ range, status, body }) => {
    const { ask, putBlob } = await harness();
    await putBlob();
    expect(await ask("GET", `/v2/os/a/blobs/${digest}`, { headers: { range } })).toMatchObject({ status, text: body });
  });

  test.for([
    "/v2/../../etc/manifests/x",
    "/v2/%2e%2e/%2e%2e/manifests/x",
    "/v2/os/_blobs/manifests/x",
    "/v2/os/a/manifests/..%2fx",
    "/v2/os//a/manifests/x",
    "/v2/OS/manifests/x",
    "/v2/os/a/blobs/sha256:../x",
    "/v2/os/a/blobs/uploads/..%2f..%2fx",
    "/v2/os/a/tags/none",
    "/v2/",
    "/other",
    "/v2/os/a/manifests/%00",
  ])("%s leads nowhere", async (target) => {
    const { ask, folder } = await harness();
    for (const method of ["GET", "PUT", "PATCH", "DELETE"])
      expect((await ask(method, target, { body: "x" })).status, method).toBeOneOf(
        target === "/v2/" && method === "GET"
          ? [200]
          : [200, 400, 404, 405].filter((status) => status !== 200 || target === "/v2/"),
      );
    expect((await readdir(folder)).sort()).toEqual(["blobs", "uploads"]);
  });

  test("a manifest is accepted if its parts exist, its digest matches, and it is not too large", async () => {
    const { ask, codeOf, manifest, putImage } = await harness();
    expect(codeOf(await ask("PUT", "/v2/os/a/manifests/1", { body: manifest("layer") }))).toBe("MANIFEST_BLOB_UNKNOWN");
    expect(codeOf(await ask("PUT", "/v2/os/a/manifests/1", { body: "{}" }))).toBe("MANIFEST_INVALID");
    expect((await putImage("1", "layer")).status).toBe(201);
    expect(codeOf(await ask("PUT", `/v2/os/a/manifests/${digest}`, { body: manifest("layer") }))).toBe(
      "DIGEST_INVALID",
    );
    expect((await ask("PUT", "/v2/os/a/manifests/2", { body: " ".repeat(4 * 1024 * 1024 + 1) })).status).toBe(413);
    const own = digestOf(Buffer.from(manifest("layer")));
    expect(await ask("HEAD", "/v2/os/a/manifests/1", { as: "puller" })).toMatchObject({
      status: 200,
      text: "",
      headers: { "docker-content-digest": own, "content-type": "application/vnd.oci.image.manifest.v1+json" },
    });
    expect(await ask("GET", `/v2/os/a/manifests/${own}`)).toMatchObject({ text: manifest("layer") });
    expect((await ask("GET", `/v2/os/b/manifests/${own}`)).status).toBe(404);
  });

  test("tags are listed in pages, and removed with their digest", async () => {
    const { ask, manifest, putImage } = await harness();
    for (const tag of ["c", "a", "b"]) await putImage(tag, "layer");
    expect(JSON.parse((await ask("GET", "/v2/os/a/tags/list?n=2")).text)).toEqual({ name: "os/a", tags: ["a", "b"] });
    expect(JSON.parse((await ask("GET", "/v2/os/a/tags/list?n=2&last=b")).text)).toEqual({ name: "os/a", tags: ["c"] });
    expect((await ask("DELETE", `/v2/os/a/manifests/${digestOf(Buffer.from(manifest("layer")))}`)).status).toBe(202);
    expect(JSON.parse((await ask("GET", "/v2/os/a/tags/list")).text)).toEqual({ name: "os/a", tags: [] });
    expect((await ask("GET", "/v2/os/none/tags/list")).status).toBe(404);
  });

  test("a pull-only user cannot push or delete, with a password or with a token that requests more", async () => {
    const { ask, putBlob } = await harness();
    await putBlob();
    expect((await ask("POST", "/v2/os/a/blobs/uploads/", { as: "puller" })).status).toBe(403);
    expect((await ask("DELETE", `/v2/os/a/blobs/${digest}`, { as: "puller" })).status).toBe(403);
    const { token } = JSON.parse(
      (await ask("GET", "/token?scope=repository:os/a:pull,push,delete", { as: "puller" })).text,
    ) as { token: string };
    expect((await ask("GET", `/v2/os/a/blobs/${digest}`, { as: `Bearer ${token}` })).status).toBe(200);
    const asked = await ask("POST", "/v2/os/a/blobs/uploads/", { as: `Bearer ${token}` });
    expect([asked.status, [asked.headers["www-authenticate"]].flat()[0]]).toEqual([
      401,
      'Bearer realm="https://127.0.0.1:5000/token",service="mco-registry",scope="repository:os/a:pull,push"',
    ]);
    expect((await ask("GET", `/v2/os/b/blobs/${digest}`, { as: `Bearer ${token}` })).status).toBe(401);
  });

  test("an anonymous client gets nothing, and a token is valid for five minutes", async () => {
    const { ask, time } = await harness();
    for (const as of ["", basic("builder", "wr0ng"), basic("nobody"), "Bearer none", "Basic %%%"])
      expect((await ask("GET", "/v2/", { as })).status, as).toBe(401);
    expect((await ask("GET", "/token", { as: "" })).status).toBe(401);
    const { token } = JSON.parse((await ask("GET", "/token?scope=repository:os/a:pull")).text) as { token: string };
    expect((await ask("GET", "/v2/", { as: `Bearer ${token}` })).status).toBe(200);
    time.skippedMs = 301_000;
    expect((await ask("GET", "/v2/", { as: `Bearer ${token}` })).status).toBe(401);
  });

  test("an invalid host never appears in an answer", async () => {
    const { ask } = await harness();
    const { headers } = await ask("GET", "/v2/", { as: "", headers: { host: 'evil"\r\nx: y' } });
    expect([headers["www-authenticate"]].flat().join(" ")).not.toContain("evil");
  });

  test("a blob is mounted only for users who may read its repository", async () => {
    const { ask, putBlob } = await harness();
    await putBlob();
    const mount = (from: string, as = "builder") =>
      ask("POST", `/v2/os/b/blobs/uploads/?mount=${digest}&from=${from}`, { as });
    expect((await mount("os/none")).status).toBe(202);
    expect((await mount("../os/a")).status).toBe(202);
    const { token } = JSON.parse((await ask("GET", "/token?scope=repository:os/b:pull,push")).text) as {
      token: string;
    };
    expect((await mount("os/a", `Bearer ${token}`)).status).toBe(202);
    expect((await ask("HEAD", `/v2/os/b/blobs/${digest}`)).status).toBe(404);
    expect((await mount("os/a")).status).toBe(201);
    expect((await ask("HEAD", `/v2/os/b/blobs/${digest}`)).status).toBe(200);
  });

  test("while the folder holds a refusal, pushes are refused with its text, and pulls are not", async () => {
    const { ask, begin, folder, putBlob } = await harness();
    await putBlob();
    const place = await begin();
    await writeFile(join(folder, "refuse-pushes"), "503 being maintained\n");
    for (const refused of [
      await ask("POST", "/v2/os/a/blobs/uploads/"),
      await ask("PUT", `${place}?digest=${digest}`, { body: text }),
      await ask("PUT", "/v2/os/a/manifests/1", { body: "{}" }),
    ])
      expect([refused.status, JSON.parse(refused.text)]).toEqual([
        503,
        { errors: [{ code: "UNAVAILABLE", message: "being maintained" }] },
      ]);
    expect((await ask("GET", `/v2/os/a/blobs/${digest}`)).status).toBe(200);
    await rm(join(folder, "refuse-pushes"));
    expect((await ask("POST", "/v2/os/a/blobs/uploads/")).status).toBe(202);
  });

  test("old unreferenced blobs and abandoned uploads are removed, and the rest stays", async () => {
    const { ask, begin, folder, putBlob, putImage, server, time } = await harness();
    await putImage("1", "layer");
    await putBlob("orphan");
    await begin();
    await server.collectGarbage();
    expect((await ask("HEAD", `/v2/os/a/blobs/${digestOf(Buffer.from("orphan"))}`)).status).toBe(200);
    time.skippedMs = 3_700_000;
    expect((await ask("HEAD", `/v2/os/a/blobs/${digestOf(Buffer.from("orphan"))}`)).status).toBe(200);
    await server.collectGarbage();
    expect(
      (await ask("HEAD", `/v2/os/a/blobs/${digestOf(Buffer.from("orphan"))}`)).status,
      "somebody has just asked for it",
    ).toBe(200);
    time.skippedMs = 7_400_000;
    await server.collectGarbage();
    expect((await ask("HEAD", `/v2/os/a/blobs/${digestOf(Buffer.from("orphan"))}`)).status).toBe(404);
    expect((await ask("HEAD", `/v2/os/a/blobs/${digestOf(Buffer.from("layer"))}`)).status).toBe(200);
    expect((await ask("GET", "/v2/os/a/manifests/1")).status).toBe(200);
    expect(await readdir(join(folder, "uploads"))).toEqual([]);
  });

  test("stored content matches its digest, even after the process was killed during an upload", async () => {
    const { ask, begin, folder } = await harness();
    const place = await begin();
    await ask("PATCH", place, { body: text });
    const again = registryServer({
      folder,
      files: systemFiles,
      blobs: await blobFolder(folder, systemClock),
      clock: systemClock,
      random: systemRandom,
      users,
      deriveKey,
    });
    await utimes(join(folder, "uploads", place.slice(place.lastIndexOf("/") + 1)), 0, 0);
    expect(
      (
        await again(
          {
            method: "HEAD",
            target: `/v2/os/a/blobs/${digest}`,
            headers: { authorization: basic("builder") },
            body: (async function* () {})(),
          },
          never,
        )
      ).status,
    ).toBe(404);
    await again.collectGarbage();
    expect(await readdir(join(folder, "uploads"))).toEqual([]);
  });
});

describe("users of a registry", () => {
  test("a password is stored only as a hash with its own salt", async () => {
    expect(users[0]?.password).not.toBe(users[1]?.password);
    const check = passwordCheck(users, deriveKey);
    const unknown = { verdict: "unknown" };
    // Before its password was shown, and afterwards.
    for (const _ of [1, 2]) {
      expect(await check("builder", "pW")).toEqual(unknown);
      expect(await check("none", "pw")).toEqual(unknown);
      expect(await check("builder", "")).toEqual(unknown);
      expect(await check("builder", "pw")).toEqual({ verdict: "user", user: users[0] });
    }
    expect(await check("puller", "pw")).toEqual({ verdict: "user", user: users[1] });
  });

  test("[registry-server-26] wrong passwords hold up nobody: few are checked at once, and none of a user who is known", async () => {
    let [begun, underWay, most] = [0, 0, 0];
    const open = Promise.withResolvers<void>();
    const { ask, codeOf } = await harness(async (...given) => {
      begun += 1;
      underWay += 1;
      most = Math.max(most, underWay);
      await open.promise;
      underWay -= 1;
      return deriveKey(...given);
    });
    const guess = (user: string, i: number) => ask("GET", "/v2/", { as: basic(user, `wrong${i}`) });
    const strangers = Array.from({ length: 200 }, (_, i) => guess(`stranger${i}`, i));
    const guessers = Array.from({ length: 200 }, (_, i) => guess("builder", i));
    // One of each waits for the other; what is beyond the bound is answered at once.
    const refused = await Promise.race([guessers.at(-1), strangers.at(-1)]);
    expect([refused?.status, refused === undefined ? "" : codeOf(refused)]).toEqual([429, "TOOMANYREQUESTS"]);
    open.resolve();
    const answers = await Promise.all([...strangers, ...guessers]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401, 429]));
    expect(most).toBeLessThanOrEqual(2);
    expect(begun).toBeLessThan(50);
    expect((await ask("GET", "/v2/")).status).toBe(200);
    const before = begun;
    const later = await Promise.all(Array.from({ length: 200 }, (_, i) => guess("builder", i)));
    expect([new Set(later.map(({ status }) => status)), begun]).toEqual([new Set([401]), before]);
  });

  test("[registry-server-27] a password that nobody can guess is compared at once, before it was ever shown and beside any number of guesses", async () => {
    const password = Buffer.from(systemRandom.bytes(18)).toString("base64url");
    const stored = hashRandomPassword(password, systemRandom);
    expect(stored).toMatch(/^sha256:[0-9a-f]{32}:[0-9a-f]{64}$/);
    const [user] = readUsers(JSON.stringify({ users: [{ name: "builder", password: stored, may: ["pull"] }] }));
    if (user === undefined) throw new Error("there is no user");
    const check = passwordCheck([user], () => Promise.reject(new Error("a key was derived")));
    const guesses = Array.from({ length: 200 }, (_, i) => check("builder", `wrong${i}`));
    expect(await check("builder", password)).toEqual({ verdict: "user", user });
    expect(new Set((await Promise.all(guesses)).map(({ verdict }) => verdict))).toEqual(new Set(["unknown"]));
  });

  test.for([
    "{",
    "{}",
    '{"users":[{}]}',
    '{"users":[{"name":"a","password":"plain","may":[]}]}',
    '{"users":[{"name":"a b","password":"x","may":[]}]}',
    `{"users":[{"name":"a","password":"scrypt:14:${"0".repeat(32)}:${"0".repeat(64)}","may":["all"]}]}`,
  ])("a file that is none is refused, and nothing of it repeated: %s", (file) => {
    expect(() => readUsers(file)).toThrow(expect.objectContaining({ code: "MCO_REGISTRY_USERS_INVALID" }));
  });
});
