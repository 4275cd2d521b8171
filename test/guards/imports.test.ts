import { expect, test } from "vitest";
import { layerOf, sourceFiles } from "./source-files.ts";

const inner = ["api", "ignition", "core", "ports"];
const outside = [...inner, "kube", "host", "registry"];

/**
 * Which layer may import which: imports point down the layers, and neither drivers nor processes know each other. The
 * doors of the stand-in, the files directly in its folder, are the layer `standin`; its rooms are layers of their own.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  api: [],
  ignition: ["api"],
  core: ["api", "ignition"],
  ports: ["api"],
  kube: inner,
  host: inner,
  registry: inner,
  operator: outside,
  controller: outside,
  daemon: outside,
  state: outside,
  "os-builder": outside,
  "build-image": outside,
  server: outside,
  "standin/apiserver": inner,
  "standin/registry": [...inner, "registry"],
  "standin/cluster": [...outside, "standin/apiserver", "standin/registry"],
  standin: ["standin/apiserver", "standin/registry", "standin/cluster"],
  cli: [...outside, "operator", "controller", "daemon", "state", "os-builder", "build-image", "server", "standin"],
};

/** Folders that hold drivers: only the composition root and their own layer may name them. */
const driverFolders = [
  "src/ports/node/",
  "src/host/directory/",
  "src/host/rpm-ostree/",
  "src/host/memory/",
  "src/kube/node/",
  "src/registry/node/",
  "src/standin/apiserver/node/",
  "src/standin/registry/node/",
];

test("imports point down the layers, and components do not import each other [guards-imports-1]", () => {
  const offences = sourceFiles().flatMap((file) => {
    const layer = layerOf(file.path);
    const allowed = mayImport[layer];
    if (allowed === undefined) return [`${file.path}: the layer "${layer}" is not in the table`];
    return file.imports
      .filter(({ resolved }) => resolved.startsWith("src/"))
      .map(({ resolved }) => ({ resolved, imported: layerOf(resolved) }))
      .filter(({ imported }) => imported !== layer && !allowed.includes(imported))
      .map(({ resolved }) => `${file.path} imports ${resolved}`);
  });
  expect(offences).toEqual([]);
});

/** The composition root, and the doors through which it reaches those of the stand-in. */
const choosing = ["cli", "standin"];

test("the doors of the stand-in hold nothing of their own [guards-imports-3]", () => {
  const doors = sourceFiles().filter(({ path }) => layerOf(path) === "standin");
  expect(doors.length).toBeGreaterThan(0);
  const withoutExports = ({ code }: { readonly code: string }) =>
    code.replaceAll(/^export (?:type )?\{[^}]*\} from *;?\s*;/gm, "").trim();
  expect(doors.filter((door) => withoutExports(door) !== "").map(({ path }) => path)).toEqual([]);
});

test("only the composition root chooses drivers", () => {
  const offences = sourceFiles().flatMap((file) =>
    file.imports
      .filter(({ resolved }) => driverFolders.some((folder) => resolved.startsWith(folder)))
      .filter(({ resolved }) => !choosing.includes(layerOf(file.path)) && layerOf(file.path) !== layerOf(resolved))
      .map(({ resolved }) => `${file.path} names the driver ${resolved}`),
  );
  expect(offences).toEqual([]);
});

test("the daemon imports neither certificate libraries nor the API server", () => {
  const files = new Map(sourceFiles().map((file) => [file.path, file]));
  const reached = new Set<string>();
  const visit = (path: string) => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const { resolved, typeOnly } of files.get(path)?.imports ?? [])
      if (!typeOnly && resolved !== "") visit(resolved);
  };
  visit("src/cli/commands/daemon.ts");
  expect(
    [...reached].filter(
      (path) =>
        path.startsWith("src/standin/apiserver/") ||
        path === "@peculiar/x509" ||
        path === "reflect-metadata" ||
        path === "esbuild",
    ),
  ).toEqual([]);
});

/** Parts of libraries that take the square of some inputs, and the one place that gives them none of these. */
const readers = [
  {
    names: /\b(?:parse|parseDocument|parseAllDocuments|Parser|Composer)\b|\*/,
    of: "yaml",
    by: ["src/core/text/kubernetes-yaml.ts"],
  },
  // Contents that give nothing cost it ten seconds a mebibyte: src/ignition/inflate.ts reads them.
  { names: /\b\w*(?:unzip|unzlib|inflate|decompress)\w*\b|\*/i, of: "fflate", by: [] },
] as const;

test.for(readers)(
  "what $of reads, others read by the place that sees to it [guards-imports-2]",
  ({ names, of, by }) => {
    const importing = new RegExp(`(?:^|\\n)import ([^;"]*?) from "${of}"`, "g");
    const isReading = (text: string) => [...text.matchAll(importing)].some(([, imported = ""]) => names.test(imported));
    expect(isReading(`import { gunzipSync, parse } from "${of}";\n`)).toBe(true);
    expect(isReading(`import { stringify, gzipSync } from "${of}";\n`)).toBe(false);
    expect(
      sourceFiles()
        .filter(({ text }) => isReading(text))
        .map(({ path }) => path),
    ).toEqual(by);
  },
);
