import { describe, expect, test } from "vitest";
import { heldClock } from "../../test/support/held-clock.ts";
import { McoError } from "../api/errors.ts";
import { configServersKey } from "../api/names.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { Download, Downloaded } from "../ports/download.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemRandom } from "../ports/node/index.ts";
import { deliveredConfigs } from "./delivered-configs.ts";

const never = new AbortController().signal;
const config = (name: string) => ({ kind: "MachineConfig", metadata: { name }, spec: {} });
const answer = (status: number, body: unknown): Downloaded => ({
  status,
  headers: {},
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});
const refused = (status: number, reason: string, message: string) => answer(status, { error: { reason, message } });

/** A reader before servers that answer as `answers` says, one answer for each request. */
function reader(
  answers: (url: string, request: number) => Downloaded | Error,
  map: Readonly<Record<string, string>> | undefined = {
    "ca-bundle.crt": "PEM",
    [configServersKey]: "https://192.0.2.1:22623\nhttps://192.0.2.2:22623",
  },
  token: string | undefined = "t0ken\n",
) {
  const clock = heldClock();
  const asked: Download[] = [];
  const read = deliveredConfigs({
    clock,
    random: systemRandom,
    log: silentLogger,
    files: { readText: () => Promise.resolve(token) },
    tokenPath: "/run/token",
    download(what) {
      asked.push(what);
      const given = answers(what.url, asked.length);
      return given instanceof Error ? Promise.reject(given) : Promise.resolve(given);
    },
  });
  const kube = {
    get: () => Promise.resolve(map === undefined ? undefined : { metadata: { name: "m" }, data: map }),
  } as unknown as KubeClient;
  /** Reads, and lets time pass while the reader waits. */
  const readNow = async (name: string) => {
    let isDone = false;
    const reading = read(name, kube, never).finally(() => (isDone = true));
    reading.catch(() => undefined);
    for (let turn = 0; !isDone && turn < 200; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      clock.pass(500);
    }
    return reading;
  };
  return { asked, readNow };
}

describe("a configuration", () => {
  test("is read with the machine's token from a server that the cluster's authority signed [delivered-configs-1]", async () => {
    const { asked, readNow } = reader(() => answer(200, config("x")));
    expect((await readNow("x"))?.metadata.name).toBe("x");
    expect(asked).toEqual([
      expect.objectContaining({
        url: expect.stringMatching(/^https:\/\/192\.0\.2\.[12]:22623\/machineconfigs\/x$/) as string,
        headers: expect.objectContaining({ authorization: "Bearer t0ken" }) as object,
        authorities: ["PEM"],
        onlyAuthorities: true,
      }),
    ]);
  });

  test("is read from another server if one is unavailable [delivered-configs-2]", async () => {
    const { asked, readNow } = reader((_url, request) =>
      request === 1 ? new Error("connect ECONNREFUSED") : answer(200, config("x")),
    );
    expect((await readNow("x"))?.metadata.name).toBe("x");
    expect(new Set(asked.map(({ url }) => url)).size).toBe(2);
  });

  test("is requested again while it is not delivered yet [delivered-configs-3]", async () => {
    const { asked, readNow } = reader((_url, request) =>
      request <= 4 ? refused(403, "NotYours", "x is not given") : answer(200, config("x")),
    );
    expect((await readNow("x"))?.metadata.name).toBe("x");
    expect(asked.length).toBe(5);
  });

  test("that does not exist is undefined [delivered-configs-4]", async () => {
    const { readNow } = reader(() => refused(404, "NotFound", "there is no x"));
    expect(await readNow("x")).toBeUndefined();
  });

  test.each([
    [
      "each server and its answer",
      undefined,
      "t",
      ["https://192.0.2.1:22623: HTTP 503 Unavailable: away", "https://192.0.2.2:22623: HTTP 503"],
    ],
    ["that no server is known", {}, "t", ["names no config server yet"]],
    ["that there is no token", undefined, "", ["there is no token in /run/token"]],
  ])("that is not delivered within a minute names %s [delivered-configs-5]", async (_what, map, token, words) => {
    const { readNow } = reader(() => refused(503, "Unavailable", "away"), map, token);
    const error = await readNow("x").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(McoError);
    expect((error as McoError).code).toBe("MCO_CONFIG_NOT_DELIVERED");
    for (const word of words) expect((error as McoError).message).toContain(word);
    expect((error as McoError).message).not.toContain("t0ken");
  });

  test.each([
    ["another configuration", answer(200, config("y"))],
    ["no MachineConfig", answer(200, { kind: "Secret", metadata: { name: "x" } })],
    ["no JSON", answer(200, "<html>")],
    ["nothing", answer(200, "null")],
  ])("is not taken from an answer that is %s [delivered-configs-6]", async (_what, given) => {
    const { readNow } = reader(() => given);
    await expect(readNow("x")).rejects.toThrow("the answer is not the configuration that was asked for");
  });
});
