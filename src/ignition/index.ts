export { canonical, equalValues } from "./canonical.ts";
export { type ConvertedIgnition, type ServedVersion, convertIgnition, servedVersions } from "./convert-ignition.ts";
export {
  type Contents,
  type DataUrl,
  bytesOf,
  decodeContents,
  defaultMaxBytes,
  defaultMaxTotalBytes,
  encodeBase64,
  encodeDataUrl,
  parseDataUrl,
  textOf,
} from "./data-url.ts";
export { type HeldContents, type HeldText, contentsReader, heldText, mostTextCharacters } from "./held-contents.ts";
export {
  type MergeMember,
  type Merged,
  type MergedFrom,
  type OriginKind,
  mergeIgnition,
  mergeTwo,
  traceOrigins,
} from "./merge-ignition.ts";
export {
  type ParsedIgnition,
  judgeIgnition,
  parseIgnition,
  readIgnition,
  supportedVersions,
} from "./parse-ignition.ts";
export { type Problem, sentenceOf } from "./problem.ts";
export * from "./types.ts";
