/**
 * Answers reference cases: reads one JSON object per line from standard input, in the format of
 * test/vectors/cases.jsonl.gz or config-cases.jsonl.gz, and writes one answer per line, in the format of
 * expected.jsonl.gz or config-expected.jsonl.gz.
 */
import { stdin, stdout } from "node:process";
import { type ReferenceCase, answerCase } from "../test/vectors/answer-case.ts";
import { type ConfigCase, answerConfigCase } from "../test/vectors/answer-config-case.ts";

/** Lines end at LF only: texts of the cases hold U+2028 and U+2029, at which node:readline would cut. */
async function* linesOf(input: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of input) {
    let pending = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (let end = pending.indexOf(10); end >= 0; end = pending.indexOf(10)) {
      yield pending.toString("utf8", 0, end);
      pending = pending.subarray(end + 1);
    }
    rest = pending;
  }
  yield rest.toString("utf8");
}

const configKinds: ReadonlySet<string> = new Set(["kubelet", "crio", "registries", "validate-kubelet"]);

for await (const line of linesOf(stdin)) {
  if (line.trim() === "") continue;
  const one = JSON.parse(line) as ReferenceCase | ConfigCase;
  const answer = configKinds.has(one.op) ? answerConfigCase(one as ConfigCase) : answerCase(one as ReferenceCase);
  if (!stdout.write(`${JSON.stringify(answer)}\n`)) await new Promise((resolve) => stdout.once("drain", resolve));
}
