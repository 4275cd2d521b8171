/** Writes the files that are made from code: CRDs, the error reference, the rules of merging, the reference of kinds. `--check` only compares. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { definedResources, errorCodes } from "../src/api/index.ts";
import { commands } from "../src/cli/commands.ts";
import { fieldRules, mergeOrder } from "../src/core/merge-fields.ts";
import { fixUps, mergeRules, ruleNameOf } from "../src/ignition/merge-ignition.ts";
import type { StructShape } from "../src/ignition/shape.ts";
import { shapesOf3 } from "../src/ignition/spec-3.ts";

const root = join(import.meta.dirname, "..");
const check = process.argv.includes("--check");

function crds(): Record<string, string> {
  return Object.fromEntries(
    definedResources.map((resource) => {
      const crd = resource.crd();
      return [`install/crds/${crd.metadata.name}.yaml`, `# Generated from src/api by hack/generate.ts.\n${stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false })}`];
    }),
  );
}

function errors(): string {
  const rows = Object.entries(errorCodes)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { meaning, remedy }]) => `| \`${code}\` | ${meaning} | ${remedy} |`);
  return `# Failures\n\nEvery failure carries one of these codes; a code never changes its meaning. Generated from \`src/api/errors.ts\`.\n\n| code | what it means | what to do |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
}

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly required?: readonly string[];
}

function fields(node: Node, path: string, depth: number): readonly string[] {
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const here = `${path}.${name}`;
    const type = child.enum === undefined ? (child.type === "array" ? `[${child.items?.type ?? ""}]` : (child.type ?? "integer or string")) : child.enum.map((value) => `\`${value}\``).join(", ");
    const required = node.required?.includes(name) === true ? "yes" : "";
    const row = `| \`${here}\` | ${type} | ${required} | ${child.description ?? ""} |`;
    return depth === 0 ? [row] : [row, ...fields(child, here, depth - 1), ...(child.items === undefined ? [] : fields(child.items, `${here}[]`, depth - 1))];
  });
}

function kinds(): string {
  const sections = definedResources.map((resource) => {
    const properties = (resource.schema as unknown as Node).properties ?? {};
    const rows = ["spec", "status"].flatMap((part) => (properties[part] === undefined ? [] : fields(properties[part], part, 3)));
    return `## ${resource.kind}\n\n\`${resource.apiVersion}\`, \`${resource.plural}\`. ${resource.description}\n\n| field | type | required | meaning |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return `# Kinds\n\nGenerated from \`src/api\`.\n\n${sections.join("\n")}`;
}

function cli(): string {
  const entries = Object.entries(commands).map(([name, { kind, usage, summary, details }]) => `## mco ${name}\n\n${summary}.${kind === "process" ? " (A process of the suite.)" : ""}\n\n\`\`\`\nmco ${name} ${usage}\n${details === undefined ? "" : `\n${details}\n`}\`\`\`\n`);
  return `# Commands\n\nGenerated from \`src/cli/commands.ts\`. Exit codes: 0 fine, 1 failed, 64 the command line is not understood; \`plan\`: 0 nothing would change, 2 something would, 1 it cannot be applied.\n\n${entries.join("\n")}`;
}

function merge(): string {
  const fields = Object.entries(fieldRules).map(([field, { rule }]) => `| \`${field}\` | ${rule} |`);
  const kinds = Object.entries(mergeRules).map(([name, { fields: which, rule }]) => `| ${name} | ${which} | ${rule} |`);
  const when = { before: "before each config but the first is merged", after: "after it", end: "at the end" };
  const around = fixUps.map(({ rule, when: moment }) => `| ${when[moment]} | ${rule} |`);
  const rows = (shape: StructShape, path: string): readonly string[] =>
    [...shape.fields].flatMap(([name, field]) => {
      const here = path === "" ? name : `${path}.${name}`;
      const key = field.kind === "list" && field.merge.by === "key" ? field.merge.key : "";
      const group = field.kind === "list" && field.merge.by === "key" && field.merge.group !== undefined ? `${field.merge.group}` : "";
      const row = `| \`${here}\` | ${ruleNameOf(field)} | ${key} | ${group} |`;
      const below = field.kind === "struct" ? rows(field, here) : field.kind === "list" && field.of.kind === "struct" ? rows(field.of, `${here}[]`) : [];
      return [row, ...below];
    });
  return [
    "# How MachineConfigs merge",
    "Generated from the tables that the code runs: `src/core/merge-fields.ts`, `src/ignition/merge-ignition.ts` and `src/ignition/spec-3.ts`. `mco blame` tells for one field of one pool what came of them.",
    "## Order\n\nA pool's MachineConfigs are merged in this order, in each group by the bytes of their names; what later ones say wins.",
    mergeOrder.map(({ who }, i) => `${i + 1}. ${who}`).join("\n"),
    `## Fields of a MachineConfig\n\n| field | rule |\n| --- | --- |\n${fields.join("\n")}\n| \`config\` | as below |`,
    "## The Ignition config\n\nEvery config is brought to spec 3.5 first. The first one is taken as it is; each further one is merged into what there is.",
    `| rule | fields | what becomes of them |\n| --- | --- | --- |\n${kinds.join("\n")}`,
    `What MachineConfigs add to Ignition's own merge:\n\n| when | rule |\n| --- | --- |\n${around.join("\n")}`,
    `## Field by field\n\nLists of one group may not hold the same key: a file takes a folder or link of the same path away.\n\n| field | rule | key | group |\n| --- | --- | --- | --- |\n${rows(shapesOf3[5], "").join("\n")}`,
  ].join("\n\n") + "\n";
}

const wanted: Record<string, string> = { ...crds(), "docs/errors.md": errors(), "docs/merge.md": merge(), "docs/reference/kinds.md": kinds(), "docs/reference/commands.md": cli() };
const stale: string[] = [];
for (const [path, text] of Object.entries(wanted)) {
  const file = join(root, path);
  if (existsSync(file) && readFileSync(file, "utf8") === text) continue;
  stale.push(path);
  if (check) continue;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
const crdFolder = join(root, "install/crds");
for (const name of existsSync(crdFolder) ? readdirSync(crdFolder) : []) {
  const path = `install/crds/${name}`;
  if (path in wanted) continue;
  stale.push(path);
  if (!check) rmSync(join(root, path));
}
if (check && stale.length > 0) {
  process.stderr.write(`out of date: ${stale.join(", ")}\nrun 'make generate' and commit the result\n`);
  process.exit(1);
}
process.stdout.write(check ? "" : `written: ${stale.length === 0 ? "nothing was out of date" : stale.join(", ")}\n`);
