import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Container, Pod } from "../../../api/foreign/kubernetes.ts";
import { createKubeClient } from "../../../kube/kube-client.ts";
import { systemFiles } from "../../../ports/node/index.ts";
import { Kernel } from "../../../../test/simulation/kernel.ts";
import { resolveInRoot } from "../../../host/directory/root-folder.ts";
import { countWork } from "../../../../test/support/count-work.ts";
import { PodPlaces } from "./pod-places.ts";
import { pathProblem } from "./pod-problem.ts";
import { type HeldToken, mostVolumeBytes, writeVolumes, podFieldOf } from "./pod-volumes.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "mco-volumes-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "n", uid: "u" },
  spec: {
    containers: [{ name: "c", volumeMounts: [{ name: "account", mountPath: "/sa" }] }],
    volumes: [
      {
        name: "account",
        projected: {
          sources: [
            { serviceAccountToken: { path: "token", expirationSeconds: 3600 } },
            { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
          ],
        },
      },
    ],
  },
} as unknown as Pod;

/** Volumes of a pod on a server that gives tokens a life of `lifeMs` and counts them. */
function start(lifeMs: number) {
  const kernel = new Kernel(3);
  const server = { tokens: 0, ca: "A" };
  const kube = createKubeClient({
    transport: async ({ method }) =>
      method === "POST"
        ? {
            status: 201,
            headers: {},
            body: JSON.stringify({
              status: {
                token: `token-${(server.tokens += 1)}`,
                expirationTimestamp: new Date(kernel.clock.now() + lifeMs).toISOString(),
              },
            }),
          }
        : { status: 200, headers: {}, body: JSON.stringify({ data: { "ca.crt": server.ca } }) },
    clock: kernel.clock,
    random: kernel.random,
    userAgent: "test",
  });
  const tokens = new Map<string, HeldToken>();
  const below = (root: string, path: string) => resolveInRoot(root, path, {}, true);
  const locate = { below, onMachine: (path: string) => below("/", path) };
  const places = new PodPlaces(pod, { podsFolder: folder, locate });
  const write = () => writeVolumes(pod, places, { kube, files: systemFiles, clock: kernel.clock, tokens });
  const read = (name: string) => readFileSync(join(places.root, "sa", name), "utf8");
  function pass(ms: number) {
    kernel.schedule(ms, "time passes", () => undefined);
    return kernel.run({ until: () => false, maxMs: ms });
  }
  return { server, write, read, pass };
}

test("a token is replaced after four fifths of its lifetime", async () => {
  const { write, read, pass } = start(3_600_000);
  expect(await write()).toBe(2_880_000);
  await pass(2_000_000);
  expect(await write()).toBe(880_000);
  expect(read("token")).toBe("token-1");
  await pass(880_000);
  await write();
  expect(read("token")).toBe("token-2");
});

test("a pod has no label but its own, whatever it asks for [pod-volumes-1]", () => {
  const of: Pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", labels: { app: "a" } } };
  const labelOf = (key: string) => podFieldOf(of, `metadata.labels['${key}']`);
  expect([labelOf("app"), labelOf("constructor")]).toEqual(["a", ""]);
});

test("new authorities reach the pod at the next pass, without a new token", async () => {
  const { server, write, read } = start(3_600_000);
  await write();
  server.ca = "A+B";
  await write();
  expect([read("ca.crt"), server.tokens]).toEqual(["A+B", 1]);
});

test("even a short-lived token is not requested all the time", async () => {
  expect(await start(10).write()).toBe(1000);
});

/** Writes the volumes of a pod whose ConfigMaps all hold `data`; gives what was written, in bytes and in paths. */
async function written(
  data: Readonly<Record<string, string>>,
  spec: object,
  inNamespace = "n",
  targets: string[] = [],
): Promise<{ readonly bytes: number; readonly paths: readonly string[]; readonly problem: string | undefined }> {
  const paths: string[] = [];
  let bytes = 0;
  const files = {
    ...systemFiles,
    read: () => Promise.resolve(undefined),
    makeDirectory: (path: string) => Promise.resolve(void paths.push(path)),
    write: (path: string, contents: string | Uint8Array) => {
      if (path.endsWith("/volumes.json")) return Promise.resolve();
      paths.push(path);
      bytes += contents.length;
      return Promise.resolve();
    },
  };
  const kernel = new Kernel(3);
  const kube = createKubeClient({
    transport: ({ target }) => {
      targets.push(target);
      return Promise.resolve({ status: 200, headers: {}, body: JSON.stringify({ data }) });
    },
    clock: kernel.clock,
    random: kernel.random,
    userAgent: "test",
  });
  const of = { ...pod, metadata: { ...pod.metadata, namespace: inNamespace }, spec } as unknown as Pod;
  const below = (root: string, path: string) => Promise.resolve(path === "" || path === "/" ? root : `${root}/${path}`);
  const places = new PodPlaces(of, {
    podsFolder: folder,
    locate: { below, onMachine: (path) => Promise.resolve(path) },
  });
  const problem = await writeVolumes(of, places, { kube, files, clock: kernel.clock, tokens: new Map() }).then(
    () => undefined,
    (error: unknown) => (error as { readonly code?: string }).code,
  );
  return { bytes, paths, problem };
}
const numbered = <T>(length: number, each: (i: number) => T): T[] => Array.from({ length }, (_, i) => each(i));
const mountedAt = (count: number) => [
  { name: "c", volumeMounts: numbered(count, (i) => ({ name: "v", mountPath: `/m${i}` })) },
];
const configured = (more: object = {}) => [{ name: "v", configMap: { name: "x", ...more } }];
const tooLarge = { bytes: 0, paths: [], problem: "MCO_POD_VOLUMES_TOO_LARGE" };

test("[cluster-pods-10] no pod multiplies a ConfigMap by its mounts, its items, or the folders above them", async () => {
  const mebibyte = { a: "x".repeat(1 << 20) };
  expect(await written(mebibyte, { volumes: configured(), containers: mountedAt(200) })).toEqual(tooLarge);
  // The same volume in one place of several containers is there once.
  const [container] = mountedAt(1);
  const shared = { volumes: configured(), containers: numbered(20, (i) => ({ ...container, name: `c${i}` })) };
  expect(await written(mebibyte, shared)).toMatchObject({ bytes: 1 << 20, problem: undefined });
  // Many volumes, many items, and many sources of one ConfigMap.
  const names = numbered(20, (i) => `v${i}`);
  const volumes = names.map((name) => ({ name, configMap: { name: "x" } }));
  const everywhere = [{ name: "c", volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) }];
  expect(await written(mebibyte, { volumes, containers: everywhere })).toEqual(tooLarge);
  const items = numbered(20, (i) => ({ key: "a", path: `p${i}` }));
  expect(await written(mebibyte, { volumes: configured({ items }), containers: mountedAt(1) })).toEqual(tooLarge);
  const sources = numbered(20, (i) => ({ configMap: { name: "x", items: [{ key: "a", path: `p${i}` }] } }));
  const projected = [{ name: "v", projected: { sources } }];
  expect(await written(mebibyte, { volumes: projected, containers: mountedAt(1) })).toEqual(tooLarge);
  // Files without contents, and folders, take space, too.
  const many = Object.fromEntries(numbered(1000, (i) => [`k${i}`, ""]));
  expect(await written(many, { volumes: configured(), containers: mountedAt(10) })).toEqual(tooLarge);
  const deep = numbered(5, (i) => ({ name: "v", mountPath: `/m${i}${"/d".repeat(500)}` }));
  const empty = [{ name: "v", emptyDir: {} }];
  expect(await written({}, { volumes: empty, containers: [{ name: "c", volumeMounts: deep }] })).toEqual(tooLarge);
});

test("[cluster-pods-11] a build of the suite gets the largest configuration that an image may hold", async () => {
  const names = numbered(52, (i) => `v${i}`);
  const spec = {
    volumes: names.map((name) => ({ name, configMap: { name: "piece" } })),
    containers: ["pull", "steps", "push"].map((name) => ({
      name,
      volumeMounts: names.map((volume) => ({ name: volume, mountPath: `/run/mco-build/content/${volume}` })),
    })),
  };
  const piece = { layer: "x".repeat(640 * 1024) };
  expect(await written(piece, spec, "openshift-machine-config-builds")).toMatchObject({
    bytes: 52 * 640 * 1024,
    problem: undefined,
  });
  expect(52 * 640 * 1024).toBeGreaterThan(32 * 1024 * 1024);
  expect(await written(piece, spec)).toEqual(tooLarge);
  expect(mostVolumeBytes).toEqual({ ofSuite: 64 << 20, ofOthers: 8 << 20 });
});

test("[cluster-pods-23] however many sources name a ConfigMap or Secret, it is read once in a pass, and all of it counts", async () => {
  const absent = { items: [{ key: "absent", path: "x" }] };
  const same = numbered(500, (i) =>
    i % 2 === 0 ? { configMap: { name: "x", ...absent } } : { secret: { name: "x", ...absent } },
  );
  const projected = (sources: readonly object[]) => ({
    volumes: [{ name: "v", projected: { sources } }, ...configured()],
    containers: mountedAt(1),
  });
  const once: string[] = [];
  expect(await written({ a: btoa("x") }, projected(same), "n", once)).toMatchObject({ problem: undefined });
  expect(once.sort()).toEqual(["/api/v1/namespaces/n/configmaps/x", "/api/v1/namespaces/n/secrets/x"]);
  // Nothing of these is written, and reading them takes a machine's time.
  const many: string[] = [];
  const mebibyte = { a: "x".repeat(1 << 20) };
  const others = numbered(500, (i) => ({ configMap: { name: `x${i}`, ...absent } }));
  expect(await written(mebibyte, projected(others), "n", many)).toEqual(tooLarge);
  expect(many).toHaveLength(8);
});

/** Volumes of a pod in the real file system, whose ConfigMaps and Secrets hold what `data` says at the time. */
function onDisk(spec: object) {
  const server: { data: Readonly<Record<string, string>> | undefined } = { data: undefined };
  const kernel = new Kernel(3);
  const kube = createKubeClient({
    transport: () =>
      Promise.resolve(
        server.data === undefined
          ? { status: 404, headers: {}, body: JSON.stringify({ kind: "Status", reason: "NotFound", code: 404 }) }
          : { status: 200, headers: {}, body: JSON.stringify({ data: server.data }) },
      ),
    clock: kernel.clock,
    random: kernel.random,
    userAgent: "test",
  });
  // Nothing here survives a power cut, and none waits for the disk.
  const files = {
    ...systemFiles,
    write: async (path: string, contents: string | Uint8Array) => {
      await systemFiles.makeDirectory(dirname(path));
      writeFileSync(path, contents);
    },
  };
  const of = { ...pod, spec } as unknown as Pod;
  const below = (root: string, path: string) => resolveInRoot(root, path, {}, true);
  const places = new PodPlaces(of, { podsFolder: folder, locate: { below, onMachine: (path) => below("/", path) } });
  const write = async (data: Readonly<Record<string, string>> | undefined, mountsOf?: readonly Container[]) => {
    server.data = data;
    const options = { kube, files, clock: kernel.clock, tokens: new Map<string, HeldToken>() };
    await writeVolumes(of, places, mountsOf === undefined ? options : { ...options, mountsOf });
  };
  const holds = () =>
    readdirSync(places.root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(places.root.length))
      .sort();
  return { write, holds, root: places.root };
}

test("[cluster-pods-16] what a volume no longer has is gone from the disk, whatever else its folder holds", async () => {
  const { write, holds, root } = onDisk({
    volumes: [...configured(), { name: "e", emptyDir: {} }],
    containers: [
      ...mountedAt(8),
      {
        name: "other",
        volumeMounts: [{ name: "e", mountPath: "/m0/own" }, ...numbered(1, () => ({ name: "v", mountPath: "/m0" }))],
      },
    ],
  });
  for (let round = 0; round < 4; round += 1) {
    await write({ [`k${round}`]: "x".repeat(50_000), always: "a" });
    if (round === 0) writeFileSync(join(root, "m0/own/kept"), "of the pod");
    const files = numbered(8, (i) => [`/m${i}/always`, `/m${i}/k${round}`]).flat();
    expect(holds()).toEqual([...files, "/m0/own/kept"].sort());
  }
  await write({});
  expect(holds()).toEqual(["/m0/own/kept"]);
  await write({ own: "x" }).catch(() => undefined);
  await write({ after: "x" });
  expect(holds()).toEqual([...numbered(8, (i) => `/m${i}/after`), "/m0/own/kept"].sort());
});

test("[cluster-pods-17] a Secret that is gone, and what a container that has ended mounted, leave no file", async () => {
  const secret = { name: "v", secret: { secretName: "s", optional: true, items: [{ key: "a", path: "deep/er/a" }] } };
  const map = { name: "w", configMap: { name: "x" } };
  const first = { name: "first", volumeMounts: [{ name: "w", mountPath: "/first/w" }] };
  const then = { name: "then", volumeMounts: [{ name: "v", mountPath: "/then" }] };
  const { write, holds, root } = onDisk({ volumes: [secret, map], initContainers: [first], containers: [then] });
  await write({ a: btoa("word") }, [first as Container]);
  expect(holds()).toEqual(["/first/w/a"]);
  await write({ a: btoa("word") }, [then as Container]);
  expect(holds()).toEqual(["/then/deep/er/a"]);
  await write(undefined, [then as Container]);
  expect(holds()).toEqual([]);
  expect(readdirSync(root)).toEqual(["then"]);
  expect(readdirSync(join(root, "then"))).toEqual([]);
});

test("[cluster-pods-18] the folders of a pod are counted over all of its containers, those that run first as well", async () => {
  const deep = numbered(5, (i) => ({ name: "v", mountPath: `/m${i}${"/d".repeat(500)}` }));
  const spec = (count: number) => ({
    volumes: [{ name: "v", emptyDir: {} }],
    initContainers: deep.slice(0, count).map((mount, i) => ({ name: `i${i}`, volumeMounts: [mount] })),
    containers: [{ name: "c", volumeMounts: [] }],
  });
  expect(await written({}, spec(5))).toEqual(tooLarge);
  expect(await written({}, spec(3))).toMatchObject({ problem: undefined });
});

test("[cluster-pods-12] the paths of a pod are judged in time in proportion to their number", async () => {
  const of = (count: number) =>
    ({
      ...pod,
      spec: {
        volumes: [{ name: "v", hostPath: { path: "/tmp" } }],
        containers: mountedAt(count),
      },
    }) as unknown as Pod;
  const work = async (count: number) => {
    const given = of(count);
    expect(pathProblem(given)).toBeUndefined();
    return countWork(() => pathProblem(given));
  };
  expect(await work(4000)).toBeLessThan(4000 * 100);
  expect(await work(4000)).toBeLessThan((await work(2000)) * 3);
});

test("[cluster-pods-13] items find their keys in time in proportion to both", async () => {
  const data = Object.fromEntries(numbered(1000, (i) => [`k${i}`, ""]));
  const items = numbered(1000, (i) => ({ key: `q${i}`, path: "a" }));
  let reads = 0;
  const counted = items.map((item) =>
    Object.defineProperty({ ...item }, "key", { get: () => ((reads += 1), item.key) }),
  );
  const made = await written(data, { volumes: configured({ items: counted }), containers: mountedAt(1) });
  expect(made).toMatchObject({ bytes: 0, problem: undefined });
  expect(reads).toBeLessThan(10 * items.length);
});

test("[cluster-pods-14] a path in or behind a folder of the machine is found, however many others there are", () => {
  const judged = (mounts: readonly (readonly [name: string, mountPath: string])[], message?: string) =>
    pathProblem({
      ...pod,
      spec: {
        volumes: [
          { name: "h", hostPath: { path: "/tmp" } },
          { name: "e", emptyDir: {} },
        ],
        containers: [
          {
            name: "c",
            volumeMounts: mounts.map(([name, mountPath]) => ({ name, mountPath })),
            ...(message === undefined ? {} : { terminationMessagePath: message }),
          },
        ],
      },
    } as unknown as Pod);
  const others = ["/a", "/a-b", "/a.b", "/a/", "/b/c", "/z"].map((path) => ["h", path] as const);
  expect(judged([...others, ["e", "/ab"], ["e", "/b"], ["e", "/b/cd"]], "/b/d")).toBeUndefined();
  for (const path of ["/a/x", "/a", "/a-b/x/y", "/z/./q", "/b//c"])
    expect(judged([...others, ["e", path]])).toBe(`${path} lies in a folder of the machine`);
  expect(judged([...others, ["h", "/b/c/d"]])).toBe("/b/c/d lies in a folder of the machine");
  expect(judged(others, "/b/c/log")).toBe("/b/c/log lies in a folder of the machine");
  expect(
    judged([
      ["h", "/"],
      ["e", "/x"],
    ]),
  ).toBe("/x lies in a folder of the machine");
  expect(judged([["e", `/${"x".repeat(2000)}`]])).toBe(
    `the path /${"x".repeat(63)}… has 2001 characters, and may have 1024`,
  );
});
