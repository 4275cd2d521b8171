import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../api/kinds/controller-config.ts";
import type { MachineConfig } from "../api/kinds/machine-config.ts";
import type { ServedVersion } from "../ignition/convert-ignition.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock } from "../ports/node/system-clock.ts";
import { type CachedAnswer, ResponseCache } from "./response-cache.ts";
import type { ConfigSource, PoolLookup } from "./config-source.ts";

const placeholder = `credential-${"0".repeat(48)}`;

const settings = {
  apiVersion: "v1",
  kind: "ControllerConfig",
  metadata: { name: "c" },
  spec: { kubeAPIServerServingCAData: "" },
} as unknown as ControllerConfig;

/** Pools as a test says. */
class FakeSource implements ConfigSource {
  readonly mode = "cluster";
  readonly looks = new Map<string, PoolLookup>();
  readonly #listeners = new Set<() => void>();

  set(pool: string, text: string, more: { readonly version?: string; readonly config?: unknown } = {}): void {
    const config = more.config ?? {
      ignition: { version: "3.4.0" },
      storage: { files: [{ path: "/etc/a", contents: { source: `data:,${text}` } }] },
    };
    const machineConfig = {
      apiVersion: "v1",
      kind: "MachineConfig",
      metadata: { name: `rendered-${pool}` },
      spec: { config },
    } as unknown as MachineConfig;
    this.looks.set(pool, {
      verdict: "snapshot",
      snapshot: {
        config: `rendered-${pool}`,
        because: "",
        version: more.version ?? text,
        placeholder,
        inputs: {
          machineConfig,
          controllerConfig: settings,
          image: undefined,
          kubeconfig: `user: ${placeholder}`,
          registryCertificates: new Map(),
          mode: "cluster",
        },
      },
    });
    this.changed();
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  missing() {
    return [];
  }

  pools() {
    return [...this.looks.keys()];
  }

  pool(name: string): PoolLookup {
    return this.looks.get(name) ?? { verdict: "absent" };
  }

  onChange(listener: () => void) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

interface Harness {
  readonly source: FakeSource;
  readonly answers: ResponseCache;
  /** What was made, in order. */
  readonly made: string[];
  /** Resolves when so many were made. */
  count(least: number): Promise<void>;
}

function harness(mostBytes?: number): Harness {
  const made: string[] = [];
  const waiting = new Set<{ readonly least: number; readonly resolve: () => void }>();
  const source = new FakeSource();
  const answers = new ResponseCache({
    source,
    clock: systemClock,
    log: silentLogger,
    ...(mostBytes === undefined ? {} : { mostBytes }),
    onRender(pool, version) {
      made.push(`${pool} ${version}`);
      for (const one of waiting) if (made.length >= one.least) one.resolve();
    },
  });
  return {
    source,
    answers,
    made,
    count: (least) =>
      made.length >= least ? Promise.resolve() : new Promise((resolve) => waiting.add({ least, resolve })),
  };
}

const textOf = (answer: CachedAnswer) =>
  answer.verdict === "answer" ? Buffer.concat(answer.identity.bodyWith("own")).toString() : answer.verdict;

describe("prepared answers", () => {
  test("are made once for any number of concurrent requests [server-answers-2]", async () => {
    const { source, answers, made } = harness();
    source.set("worker", "one");
    const all = await Promise.all(Array.from({ length: 100 }, () => answers.of("worker", "3.5.0")));
    expect(made).toEqual(["worker 3.5.0"]);
    expect(new Set(all.map((answer) => (answer.verdict === "answer" ? answer.identity : answer))).size).toBe(1);
  });

  test("are made in advance: the newest version, and those requested before [server-answers-3]", async () => {
    const { source, answers, made, count } = harness();
    const stopping = new AbortController();
    source.set("worker", "one");
    answers.run(stopping.signal);
    await count(1);
    await answers.of("worker", "2.2.0");
    source.set("worker", "two");
    await count(4);
    expect(made.toSorted()).toEqual(["worker 2.2.0", "worker 2.2.0", "worker 3.5.0", "worker 3.5.0"]);
    await answers.of("worker", "2.2.0");
    expect(made.length).toBe(4);
    stopping.abort();
  });

  test("are never outdated: a request after a change gets the new content [server-answers-1]", async () => {
    const { source, answers } = harness();
    source.set("worker", "one");
    expect(textOf(await answers.of("worker", "3.5.0"))).toContain("data:,one");
    source.set("worker", "two");
    expect(textOf(await answers.of("worker", "3.5.0"))).toContain("data:,two");
  });

  test("hold the credential of each client, packed or not, for the same tag [server-answers-4]", async () => {
    const { source, answers } = harness();
    source.set("worker", "one");
    const answer = await answers.of("worker", "3.5.0");
    if (answer.verdict !== "answer") throw new Error(answer.verdict);
    const { identity, gzip } = answer;
    // Of any length: a token is as long as its signer makes it.
    for (const credential of ["", "a.b.c", "x".repeat(70_000)]) {
      const plain = Buffer.concat(identity.bodyWith(credential)).toString();
      expect(plain).toContain(`user%3A%20${credential}"`);
      expect(plain).not.toContain(placeholder);
      expect(gunzipSync(Buffer.concat(gzip.bodyWith(credential))).toString()).toBe(plain);
    }
    expect([identity.etag, gzip.etag].every((tag) => tag.startsWith('W/"'))).toBe(true);
  });

  test("stay within their memory limit: the least recently used are removed [server-answers-5]", async () => {
    const { source, answers, made } = harness(8000);
    const versions: readonly ServedVersion[] = ["3.5.0", "3.4.0", "3.3.0", "3.2.0"];
    for (let index = 0; index < 10; index += 1) source.set(`pool-${index}`, `text-${index}`);
    for (const version of versions)
      for (let index = 0; index < 10; index += 1) await answers.of(`pool-${index}`, version);
    expect(answers.bytes).toBeLessThanOrEqual(8000);
    expect(answers.bytes).toBeGreaterThan(0);
    const before = made.length;
    await answers.of("pool-9", "3.2.0");
    expect(made.length).toBe(before);
    await answers.of("pool-0", "3.5.0");
    expect(made.length).toBe(before + 1);
  });

  test("one that exceeds the limit is served but not cached [server-answers-6]", async () => {
    const { source, answers } = harness(100);
    source.set("worker", "one");
    expect(textOf(await answers.of("worker", "3.5.0"))).toContain("data:,one");
    expect([answers.bytes, answers.size]).toEqual([0, 0]);
  });

  test("are removed with their pool [server-answers-7]", async () => {
    const { source, answers, count } = harness();
    const stopping = new AbortController();
    source.set("infra", "one");
    source.set("worker", "one");
    answers.run(stopping.signal);
    await count(2);
    source.looks.delete("infra");
    source.set("worker", "two");
    await count(3);
    expect((await answers.of("infra", "3.5.0")).verdict).toBe("absent");
    expect(answers.size).toBe(1);
    stopping.abort();
  });

  test("a pool that cannot be served does not block others [server-answers-8]", async () => {
    const { source, answers } = harness();
    const stopping = new AbortController();
    source.set("bad", "one", { config: { ignition: { version: "9.9.9" } } });
    source.set("worker", "one");
    answers.run(stopping.signal);
    expect((await answers.of("bad", "3.5.0")).verdict).toBe("invalid");
    expect((await answers.of("worker", "3.5.0")).verdict).toBe("answer");
    expect([...answers.unready()]).toEqual([["bad", "CannotRender"]]);
    stopping.abort();
  });
});
