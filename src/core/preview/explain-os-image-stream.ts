import type { OSImageStream } from "../../api/kinds/os-image-stream.ts";
import { timestampOf } from "../../api/schema/object.ts";
import type { Facts } from "../pool/pool-queries.ts";
import { type StreamOfPool, problemsOfStreams, streamOfPool } from "../render/os-streams.ts";
import { type Explanation, section } from "./explanation.ts";
import { shellWord } from "../text/shell-word.ts";

const sourceOf: Readonly<Record<Extract<StreamOfPool, { verdict: "stream" }>["from"], string>> = {
  pool: "its own spec.osImageStream",
  worker: "as the worker pool does",
  default: "the default",
};

function followed(found: StreamOfPool): string {
  switch (found.verdict) {
    case "none":
      return "the OS image of the ControllerConfig";
    case "unknown":
      return `${found.name}, which does not exist: it keeps its configuration`;
    case "stream":
      return `${found.stream.name} (${sourceOf[found.from]})`;
  }
}

/** The streams of the cluster, which pool follows which, and what could not be read. */
export function explainOSImageStream(stream: OSImageStream, facts: Facts): Explanation {
  const { spec, status, metadata } = stream;
  const streams = status?.availableStreams ?? [];
  const names = facts.members.pools().map((pool) => pool.metadata.name);
  const pools = facts.members.pools().map((pool) => {
    const found = streamOfPool(pool, facts.members.pools(), stream);
    const runs = pool.status?.osImageStream?.name;
    const all = runs === undefined ? "" : `; every machine of it runs ${runs}`;
    return { name: pool.metadata.name, found, line: `${pool.metadata.name}: ${followed(found)}${all}` };
  });
  const problems = problemsOfStreams(stream);
  const lost = pools.filter(({ found }) => found.verdict === "unknown").map(({ name }) => name);
  const isWrong = status !== undefined && spec.defaultStream !== status.defaultStream;
  return {
    subject: `osimagestream/${metadata.name}`,
    asOf: timestampOf(facts.now),
    freshness: "Fresh",
    reason: status === undefined ? "NoStreams" : problems.length > 0 || lost.length > 0 ? "Incomplete" : "Available",
    headline:
      status === undefined
        ? "No stream is known: machines get the OS image of the ControllerConfig."
        : `${streams.length === 1 ? "There is 1 OS image stream" : `There are ${streams.length} OS image streams`}; pools that name none follow ${status.defaultStream}.`,
    sections: [
      ...section(
        "Streams",
        streams.map(({ name, osImage, osExtensionsImage }) => `${name}: ${osImage}, extensions ${osExtensionsImage}`),
      ),
      ...section("Pools", names.length === 0 ? [] : pools.map(({ line }) => line)),
      ...section("Not read", problems),
    ],
    next:
      status === undefined ? ["the controller reads the images of the release and writes status.availableStreams"] : [],
    todo: [
      ...(isWrong
        ? [
            `name one of the streams in spec.defaultStream: kubectl patch osimagestream ${metadata.name} --type merge -p ${shellWord(JSON.stringify({ spec: { defaultStream: status.defaultStream } }))}`,
          ]
        : []),
      ...lost.map(
        (name) => `name one of the streams in spec.osImageStream of the pool ${name}, or take the field away`,
      ),
      ...(problems.length > 0 && !isWrong ? ["correct what could not be read; it is tried again by itself"] : []),
    ],
  };
}
