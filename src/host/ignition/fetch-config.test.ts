import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { McoError } from "../../api/errors.ts";
import { decodeContents, encodeDataUrl } from "../../ignition/index.ts";
import { clockFrom } from "../../ports/clock.ts";
import type { Download, Downloaded } from "../../ports/download.ts";
import { silentLogger } from "../../ports/logger.ts";
import { systemRandom } from "../../ports/node/index.ts";
import { fetchConfig } from "./fetch-config.ts";

const never = new AbortController().signal;
const version = "3.5.0";
const config = (more: { readonly ignition?: object; readonly storage?: object } = {}) => ({
  ...more,
  ignition: { version, ...more.ignition },
});
const from = (url: string, more: object = {}) => ({ source: url, ...more });
const answer = (status: number, body: string | Uint8Array | object = ""): Downloaded => ({
  status,
  headers: {},
  body:
    typeof body === "string"
      ? new TextEncoder().encode(body)
      : body instanceof Uint8Array
        ? body
        : new TextEncoder().encode(JSON.stringify(body)),
});

type ResponseCache = Readonly<Record<string, readonly (Downloaded | Error)[]>>;

/** Servers that give each answer once, the last one for ever; and a clock on which every wait is over at once. */
function harness(answers: ResponseCache) {
  const asked: Download[] = [];
  const troubles: string[] = [];
  let now = 0;
  const given = new Map<string, number>();
  const clock = clockFrom({
    now: () => now,
    monotonic: () => now,
    after(ms, run) {
      const due = now + ms;
      let cancelled = false;
      setImmediate(function later() {
        if (cancelled) return;
        // Only waits move time: a deadline passes when enough of them are over.
        if (ms <= 6_000) now = Math.max(now, due);
        if (now >= due) run();
        else setImmediate(later);
      });
      return () => {
        cancelled = true;
      };
    },
  });
  const parts = {
    clock,
    random: systemRandom,
    log: silentLogger,
    userAgent: "test",
    onTrouble: (reason: string) => troubles.push(reason),
    download(what: Download) {
      asked.push(what);
      const list = answers[what.url] ?? [answer(404)];
      const at = given.get(what.url) ?? 0;
      given.set(what.url, at + 1);
      const next = list[Math.min(at, list.length - 1)] ?? answer(404);
      return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
    },
  };
  return { asked, troubles, fetch: (pointer: unknown) => fetchConfig(pointer, parts, never), now: () => now };
}

async function refusalOf(work: Promise<unknown>): Promise<McoError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof McoError)) throw new Error(`no refusal: ${String(error)}`);
  return error;
}

describe("fetchConfig", () => {
  test("follows a pointer with its headers and authorities, and asks for the newest version", async () => {
    const { fetch, asked } = harness({
      "https://c/worker": [
        answer(200, config({ storage: { files: [{ path: "/etc/a", contents: from("data:,a") }] } })),
      ],
    });
    const fetched = await fetch(
      config({
        ignition: {
          config: {
            merge: [from("https://c/worker", { httpHeaders: [{ name: "Authorization", value: "Bearer x.y" }] })],
          },
          security: { tls: { certificateAuthorities: [from(encodeDataUrl("CA"))] } },
        },
      }),
    );
    expect(fetched).toEqual({
      ignition: { version },
      storage: { files: [{ path: "/etc/a", contents: { source: "data:,a" } }] },
    });
    expect(asked[0]).toMatchObject({
      headers: {
        authorization: "Bearer x.y",
        accept: "application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1",
        "accept-encoding": "identity",
      },
      authorities: ["CA"],
      headersTimeoutMs: 10_000,
    });
  });

  test("brings what files need, and leaves nothing to fetch", async () => {
    const { fetch } = harness({ "http://f/one": [answer(200, "one")], "http://f/two": [answer(200, gzipSync("two"))] });
    const { storage } = await fetch(
      config({
        storage: {
          files: [
            {
              path: "/etc/a",
              contents: from("http://f/one"),
              append: [
                from("http://f/two", {
                  compression: "gzip",
                  verification: { hash: "sha256-3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3" },
                }),
              ],
            },
          ],
        },
      }),
    );
    const [file] = storage?.files ?? [];
    const text = (resource: Parameters<typeof decodeContents>[0]) => {
      const contents = decodeContents(resource);
      return contents.verdict === "decoded" ? new TextDecoder().decode(contents.bytes) : contents.reason;
    };
    expect([text(file?.contents), text(file?.append?.[0])]).toEqual(["one", "two"]);
  });

  test("asks again for what cannot be answered now, with growing waits, and says why", async () => {
    const { fetch, asked, troubles, now } = harness({
      "https://c/w": [
        new Error("connect ECONNREFUSED"),
        answer(503, { message: "not ready" }),
        answer(500),
        answer(200, config()),
      ],
    });
    await fetch(config({ ignition: { config: { replace: from("https://c/w") } } }));
    expect(asked).toHaveLength(4);
    expect(troubles).toEqual(["connect ECONNREFUSED", "HTTP 503: not ready", "HTTP 500"]);
    // 0.2 + 0.4 + 0.8 s, each a tenth more or less.
    expect(now()).toBeGreaterThan(1_200);
    expect(now()).toBeLessThan(1_600);
  });

  test.for([
    { status: 401, body: { message: "unauthorized" }, reason: "HTTP 401: unauthorized" },
    { status: 404, body: "", reason: "HTTP 404" },
    {
      status: 400,
      body: { message: "storage.files[0].mode: 3.4.0 keeps it" },
      reason: "HTTP 400: storage.files[0].mode: 3.4.0 keeps it",
    },
  ])("takes $status for an answer", async ({ status, body, reason }) => {
    const { fetch, asked } = harness({ "https://c/w": [answer(status, body)] });
    const error = await refusalOf(fetch(config({ ignition: { config: { merge: [from("https://c/w")] } } })));
    expect([error.code, error.facts["reason"], asked.length]).toEqual(["MCO_IGNITION_FETCH_FAILED", reason, 1]);
  });

  test("gives up when the time is over that the configuration allows", async () => {
    const { fetch, troubles } = harness({ "https://c/w": [answer(503)] });
    const error = await refusalOf(
      fetch(config({ ignition: { timeouts: { httpTotal: 20 }, config: { merge: [from("https://c/w")] } } })),
    );
    expect(error.code).toBe("MCO_IGNITION_FETCH_FAILED");
    expect(troubles.length).toBeGreaterThan(3);
  });

  test.for([
    {
      title: "contents with another hash",
      body: "other",
      more: { verification: { hash: `sha512-${"0".repeat(128)}` } },
      code: "MCO_IGNITION_FETCH_FAILED",
    },
    {
      title: "contents that are not compressed as they say",
      body: "plain",
      more: { compression: "gzip" },
      code: "MCO_IGNITION_FETCH_FAILED",
    },
  ])("refuses $title", async ({ body, more, code }) => {
    const { fetch } = harness({ "http://f/x": [answer(200, body)] });
    expect(
      (await refusalOf(fetch(config({ storage: { files: [{ path: "/etc/a", contents: from("http://f/x", more) }] } }))))
        .code,
    ).toBe(code);
  });

  test.for([
    { title: "a configuration that is no JSON", body: "<html>" },
    {
      title: "a configuration of an unknown version",
      body: JSON.stringify({ ignition: { version: "9.0.0" } }),
    },
    {
      title: "configurations that refer to one another in a ring",
      body: JSON.stringify(config({ ignition: { config: { merge: [from("https://c/w")] } } })),
    },
  ])("refuses $title", async ({ body }) => {
    const { fetch } = harness({ "https://c/w": [answer(200, body)] });
    expect((await refusalOf(fetch(config({ ignition: { config: { merge: [from("https://c/w")] } } })))).code).toBe(
      "MCO_IGNITION_REFUSED",
    );
  });

  test("what a child says counts before what its parent says, and a replacement before both", async () => {
    const child = config({ storage: { files: [{ path: "/etc/a", mode: 0o600, contents: from("data:,child") }] } });
    const parent = { storage: { files: [{ path: "/etc/a", mode: 0o644, contents: from("data:,parent") }] } };
    const merged = await harness({ "https://c/w": [answer(200, child)] }).fetch({
      ignition: { version, config: { merge: [from("https://c/w")] } },
      ...parent,
    });
    expect(merged.storage?.files).toEqual([{ path: "/etc/a", mode: 0o600, contents: { source: "data:,child" } }]);
    const replaced = await harness({ "https://c/w": [answer(200, config())] }).fetch({
      ignition: { version, config: { replace: from("https://c/w") } },
      ...parent,
    });
    expect(replaced).toEqual({ ignition: { version } });
  });
});
