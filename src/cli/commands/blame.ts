import { type Blame, type BlameQuestion, blame } from "../../core/preview/blame.ts";
import { maskText, shortKey } from "../../core/text/mask-secrets.ts";
import { renderInputsOf } from "../../core/preview/plan-cluster.ts";
import { renderPool } from "../../core/render/render-pool.ts";
import { readArguments, usageError } from "../arguments.ts";
import { objectsFrom, poolsAsked, sourceOptions } from "../cluster-objects.ts";
import { exitCodes } from "../exit-codes.ts";
import { processIo } from "../io.ts";

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(
    args,
    {
      ...sourceOptions,
      pool: { type: "string", multiple: true },
      unit: { type: "string" },
      karg: { type: "string" },
      user: { type: "string" },
      field: { type: "string" },
      json: { type: "boolean" },
    },
    { positionals: true },
  );
  const questions: readonly BlameQuestion[] = [
    ...positionals.map((path): BlameQuestion => ({ about: "path", path })),
    ...(values.unit === undefined ? [] : [{ about: "unit", name: values.unit } as const]),
    ...(values.karg === undefined ? [] : [{ about: "kernelArgument", argument: values.karg } as const]),
    ...(values.user === undefined ? [] : [{ about: "user", name: values.user } as const]),
    ...(values.field === undefined ? [] : [{ about: "field", field: values.field } as const]),
  ];
  const [question] = questions;
  if (question === undefined || questions.length > 1)
    throw usageError("name exactly one of: PATH, --unit NAME, --karg ARGUMENT, --user NAME, --field NAME");
  if (question.about === "path" && !question.path.startsWith("/"))
    throw usageError(`PATH must be absolute, not "${question.path}"`);
  const objects = await objectsFrom(values, "blame");
  const answers = poolsAsked(objects, values.pool ?? []).map((pool) => {
    const result = renderPool(renderInputsOf(pool, objects));
    const name = pool.metadata.name;
    if (result.verdict === "refused") return { pool: name, verdict: "refused" as const, refusals: result.refusals };
    return {
      pool: name,
      verdict: "rendered" as const,
      rendered: result.config.metadata.name,
      origins: blame(result, question).map(masked),
    };
  });

  if (values.json === true)
    processIo().out(`${JSON.stringify({ apiVersion: "cli.mco/v1", kind: "Blame", question, pools: answers })}\n`);
  else {
    const lines = answers.flatMap((answer) =>
      answer.verdict === "refused"
        ? answer.refusals.map(({ reason }) => `pool ${answer.pool}: would not render: ${reason}`)
        : answer.origins.length === 0
          ? []
          : [`pool ${answer.pool}: ${answer.rendered}`, ...answer.origins.flatMap(describe)],
    );
    if (lines.length > 0) processIo().out(`${lines.join("\n")}\n`);
  }
  const found = answers.some((answer) => answer.verdict === "rendered" && answer.origins.length > 0);
  if (!found && values.json !== true) processIo().err("mco blame: no MachineConfig sets it\n");
  return found ? exitCodes.ok : exitCodes.failed;
}

/** Keys and arguments are names here, and may hold secrets. */
function masked(one: Blame): Blame {
  if (one.kind !== "sshKey")
    return {
      ...one,
      name: maskText(one.name),
      overrode: one.overrode.map((other) => ({ ...other, field: maskText(other.field) })),
    };
  const [user = "", ...key] = one.name.split(": ");
  return { ...one, name: `${user}: ${shortKey(key.join(": "))}` };
}

function describe({ contributors, fields, from, kind, name, overrode }: Blame): readonly string[] {
  const others = contributors.filter((member) => member !== from);
  const lines = [`  ${kind} ${name}`, `    from ${from}${others.length === 0 ? "" : `, after ${others.join(", ")}`}`];
  const isMixed = new Set(Object.values(fields)).size > 1;
  if (isMixed) for (const [field, member] of Object.entries(fields)) lines.push(`    ${field}: ${member}`);
  for (const { by, field, member } of overrode) lines.push(`    ${by} overrides the ${field} of ${member}`);
  return lines;
}
