import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Modules that are CommonJS inside the bundle still ask for `require`. */
const banner =
  'import { createRequire as createRequireForBundle } from "node:module"; const require = createRequireForBundle(import.meta.url);';

/**
 * Writes this program as a bundle below `folder` and returns its path. One entry with chunks: a process loads only what
 * its command needs.
 */
export async function writeBundle(folder: string): Promise<string> {
  const own = fileURLToPath(import.meta.url);
  const fresh = `${folder}.new`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { recursive: true });
  const esbuild = await import("esbuild");
  await esbuild.build({
    entryPoints: [{ in: join(own, "..", "main.ts"), out: "mco" }],
    outdir: resolve(fresh),
    // Names of chunks depend on the paths of sources: relative to the tree, they are the same wherever it lies.
    absWorkingDir: resolve(own, "../../.."),
    preserveSymlinks: true,
    // The settings of tsconfig.json that matter here: an image is built without that file.
    tsconfigRaw: { compilerOptions: { target: "es2024", verbatimModuleSyntax: true } },
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    external: ["esbuild"],
    banner: { js: banner },
    legalComments: "none",
    logLevel: "silent",
    minifySyntax: true,
    minifyWhitespace: true,
  });
  // Its service is a process of 200 MiB that otherwise lives as long as this one.
  await esbuild.stop();
  await writeFile(join(fresh, "package.json"), '{"type":"module"}\n');
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
  return join(folder, "mco.mjs");
}
