import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export const root = join(import.meta.dirname, "../..");

export interface SourceFile {
  /** Relative to the repository, for example `src/kube/leader.ts`. */
  readonly path: string;
  readonly text: string;
  /** Code with comments and string literals blanked out, line by line as it was. */
  readonly code: string;
  /** Relative specifiers, resolved to paths of the repository; packages as they are written. */
  readonly imports: readonly { readonly specifier: string; readonly resolved: string; readonly typeOnly: boolean }[];
}

const blank = (match: string) => match.replaceAll(/[^\n]/g, " ");

/** Every source file of the suite but its tests. */
export function sourceFiles(): readonly SourceFile[] {
  return globSync("src/**/*.ts", { cwd: root })
    .filter((path) => !path.endsWith(".test.ts"))
    .sort()
    .map((path) => {
      const text = readFileSync(join(root, path), "utf8");
      const imports = [
        ...text.matchAll(
          /(?:^|\n)\s*(import|export)(\s+type)?[^;"']*?from\s+"([^"]+)"|import\("([^"]+)"\)|(?:^|\n)import\s+"([^"]+)"/g,
        ),
      ].map((match) => {
        const specifier = match[3] ?? match[4] ?? match[5] ?? "";
        return {
          specifier,
          resolved: specifier.startsWith(".") ? relative(root, join(root, dirname(path), specifier)) : specifier,
          typeOnly: match[2] !== undefined,
        };
      });
      const code = text
        .replaceAll(/\/\*[\s\S]*?\*\//g, blank)
        .replaceAll(/(^|[^:"'`\\])\/\/[^\n]*/g, (match, before: string) => before + blank(match.slice(before.length)))
        .replaceAll(/"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g, blank);
      return { path, text, code, imports };
    });
}

/** Top folder below src; in the stand-in, with its room. */
export function layerOf(path: string): string {
  const [, layer = "", room = "", ...rest] = path.split("/");
  return layer === "standin" && rest.length > 0 ? `${layer}/${room}` : layer;
}
