import {
  type Document,
  LineCounter,
  type Node,
  type ParseOptions,
  type SchemaOptions,
  type Scalar,
  type ScalarTag,
  type Tags,
  type YAMLMap,
  YAMLParseError,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  parseAllDocuments,
  parseDocument,
  visit,
} from "yaml";

/** Go knows no base 60, dates or sets, and writes octal numbers as YAML 1.2 does, too. */
const absent = ["intTime", "floatTime", "timestamp", "binary", "omap", "pairs", "set"];
const newOctal: ScalarTag = {
  identify: () => false,
  default: true,
  tag: "tag:yaml.org,2002:int",
  format: "OCT",
  test: /^[-+]?0o[0-7]+$/,
  resolve: (text) => Number(text.replace(/^[-+]/, "")) * (text.startsWith("-") ? -1 : 1),
};
const tags = (all: Tags): Tags => [
  newOctal,
  ...all
    .filter((tag) => !absent.some((name) => tag === name || (typeof tag === "object" && nameOf(tag) === name)))
    .map((tag) => (typeof tag === "object" && nameOf(tag) === "float" ? withDigits(tag as ScalarTag) : tag)),
];

/** Go takes `.`, `e3` and `._5` for texts. Source: go.yaml.in/yaml/v2 resolve.go (v2). */
const beginsWithDigit = String.raw`(?=[-+]?[0-9]|[-+]\._*[0-9]|\.[0-9][^_]*$)`;
const withDigits = (tag: ScalarTag): ScalarTag =>
  tag.test?.source.includes("[0-9]") === true
    ? { ...tag, test: new RegExp(`${beginsWithDigit}(?:${tag.test.source})`) }
    : tag;
const nameOf = (tag: { readonly tag: string; readonly format?: string }): string => {
  const name = tag.tag.replace("tag:yaml.org,2002:", "");
  return tag.format === "TIME" ? `${name}Time` : name;
};

/**
 * The parser would compare each key with all others; {@link faultsOf} looks for keys that stand there twice. And for each error
 * and warning it would copy and search the whole line, in time that is the square of its length; {@link locate} does not.
 */
const options: ParseOptions & SchemaOptions & { version: "1.1" } = {
  version: "1.1",
  customTags: tags,
  uniqueKeys: false,
  prettyErrors: false,
};

/** The parser looks for the anchor of each alias among all anchors and aliases before it. */
const mostAliasSteps = 4_000_000;

/**
 * Nodes that the parser may make once more for aliases and merges. It makes what `<<` merges once more for each, with what that
 * merges: forty lines can stand for a billion nodes.
 */
const mostAliasedNodes = 100_000;

/** Tags that both readers resolve in the same way. */
const sharedTags = new Set(["str", "int", "bool", "map", "seq"].map((name) => `tag:yaml.org,2002:${name}`));

/** Our parser leaves a scalar a text where the tag does not fit it. */
const typeByTag = new Map([
  ["tag:yaml.org,2002:int", "number"],
  ["tag:yaml.org,2002:bool", "boolean"],
]);

/**
 * What the reader of Kubernetes refuses in a text or takes for a line break. It may begin with a byte order mark.
 * Source: yaml/go-yaml readerc.go (v2).
 */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const unprintable = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\p{Surrogate}|\r(?!\n)/u;

/** Whether a text has a character that the reader of Kubernetes refuses, or takes for a line break. */
export const hasUnprintable = (text: string): boolean => unprintable.test(text);

/**
 * Reads YAML as kubectl and kube-apiserver do (go.yaml.in/yaml/v2 below sigs.k8s.io/yaml). A document that they refuse, or
 * that might mean something else to them, has an error among `errors`.
 */
export function kubernetesYaml(text: string, lineCounter = new LineCounter()): Document.Parsed {
  const document = parseDocument(text, { ...options, lineCounter });
  locate(document, lineCounter);
  check(text, [document], lineCounter);
  cutAtEnd(text, document);
  return document;
}

const repeated = "a key stands there twice";

/**
 * The value of a text that a lenient program of Kubernetes reads, as the kubelet its configuration: what stands later
 * under the same key wins. `undefined`: it is refused, or might mean something else to that program.
 */
export function lenientKubernetesYaml(text: string): { readonly value: unknown } | undefined {
  const document = kubernetesYaml(text);
  if (document.errors.some(({ message }) => !message.startsWith(repeated))) return undefined;
  return { value: document.toJS({ maxAliasCount: -1 }) as unknown };
}

/**
 * A document to change and to write again, with its comments, as YAML 1.2 has it: whoever wrote it reads it so. A key that
 * stands there twice is among its `errors`.
 */
export function editableYaml(text: string): Document.Parsed {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false, lineCounter });
  visit(document, {
    Map: (_, map) => {
      const second = repeatedKey(map);
      if (second !== undefined) add(document, { at: second.range?.[0] ?? 0, message: repeated }, lineCounter);
    },
  });
  return document;
}

/**
 * All documents of a text, as kubectl reads them from a file: it separates at lines that begin with three dashes, and reads of
 * each part one document. See {@link kubernetesYaml}.
 */
export function kubernetesYamlDocuments(text: string, lineCounter = new LineCounter()): readonly Document.Parsed[] {
  const parsed = parseAllDocuments(text, { ...options, lineCounter });
  const faults = faultsBetweenDocuments(text);
  const documents = Array.from(parsed as readonly Document.Parsed[]);
  if (documents.length === 0 && faults.length > 0) documents.push(parseDocument("", options));
  for (const document of documents) locate(document, lineCounter);
  check(text, documents, lineCounter);
  for (const fault of faults) {
    const holder = documents.find(({ range }) => fault.at < range[2]) ?? documents.at(-1);
    if (holder !== undefined) add(holder, fault, lineCounter);
  }
  // kubectl drops what stands behind the dashes, and ends a document at dashes within a text.
  const dashes = /^---(?![ \t]*(?:#.*)?\r?$)/m.exec(text);
  const [first] = documents;
  if (dashes !== null && first !== undefined)
    add(first, { at: dashes.index, message: "text stands behind ---" }, lineCounter);
  return documents;
}

/** A line that is neither blank nor a comment. */
const contentLine = /^[\ufeff \t]*[^\s#\ufeff]/m;
const documentEnd = /^\ufeff?\.\.\.(?=\s|$)/m;

/**
 * Lines between documents that YAML reads and kubectl does not: a document behind `...`, and directives, which `---`
 * cuts from their document. Source: k8s.io/apimachinery pkg/util/yaml/decoder.go (v0.34), YAMLReader.
 */
function faultsBetweenDocuments(text: string): readonly Fault[] {
  const faults: Fault[] = [];
  // A file that begins like JSON is read as JSON first, which knows no such line.
  const isLikeJson = /^\s*\{/.test(text);
  let at = 0;
  for (const part of text.split(/^(?=---)/m)) {
    const body =
      at > 0 || part.startsWith("---") ? part.replace(/^---.*/, (dashes) => " ".repeat(dashes.length)) : part;
    const first = contentLine.exec(body);
    if (first?.[0].endsWith("%") === true)
      faults.push({ at: at + first.index, message: "a directive stands before ---, where kubectl ends a document" });
    const end = documentEnd.exec(body);
    if (end !== null) {
      const [before, behind] = [body.slice(0, end.index), body.slice(end.index + end[0].length)];
      const next = contentLine.exec(behind);
      if (isLikeJson) faults.push({ at: at + end.index, message: "... stands behind JSON" });
      else if (!contentLine.test(before)) faults.push({ at: at + end.index, message: "... stands before a document" });
      else if (next !== null)
        faults.push({
          at: at + end.index + end[0].length + next.index,
          message: "text follows ..., and kubectl reads nothing more before ---",
        });
    }
    at += part.length;
  }
  return faults;
}

/** Says of each error of the parser in which line and column it is. */
function locate({ errors }: Document.Parsed, lineCounter: LineCounter): void {
  for (const error of errors) {
    const [at, end] = error.pos;
    if (at === -1) continue;
    const place = lineCounter.linePos(at);
    error.linePos = [place, lineCounter.linePos(end)];
    error.message += ` at line ${place.line}, column ${place.col}`;
  }
}

/** What is wrong, and the offset in the text. */
interface Fault {
  readonly at: number;
  readonly message: string;
}

function add(document: Document.Parsed, { at, message }: Fault, lineCounter: LineCounter): void {
  const error = new YAMLParseError([at, at + 1], "IMPOSSIBLE", message);
  error.linePos = [lineCounter.linePos(at)];
  document.errors.push(error);
}

/** Adds to each document what Go would refuse in it or read otherwise. */
function check(text: string, documents: readonly Document.Parsed[], lineCounter: LineCounter): void {
  const holderOf = (at: number) => documents.find(({ range }) => at < range[2]) ?? documents.at(-1);
  const bad = unprintable.exec(text.replace(/^\ufeff/, " "));
  const isParsed = documents.every(({ errors }) => errors.length === 0);
  for (const fault of [
    ...(bad === null ? [] : [{ at: bad.index, message: "a character must be escaped" }]),
    ...(isParsed ? faultsOutsideTexts(text, documents) : []),
  ]) {
    const holder = holderOf(fault.at);
    if (holder !== undefined) add(holder, fault, lineCounter);
  }
  const isJson = isJsonText(text);
  for (const document of documents) {
    if (document.errors.length > 0) continue;
    for (const fault of [...faultsOf(document), ...faultsOfTexts(text, document, isJson)])
      add(document, fault, lineCounter);
  }
}

function lastScalar(document: Document.Parsed): Scalar | undefined {
  let last: Scalar | undefined;
  visit(document, { Scalar: (_, scalar) => void (last = scalar) });
  return last;
}

/** Forms that one reader takes and the other refuses, or reads otherwise. */
const dividedForms = [
  // A tab where a token begins, or alone on the last line: a blank to one reader and an error to the other.
  { pattern: /(?<=^ *(?:[-?:](?: *))*)\t(?=[\t ]*(?:[^\s#]|$(?![\r\n])))/gm, message: "a tab is no indentation" },
  // After a dash, and on a line of blanks, a tab is an error wherever it stands.
  { pattern: /(?<=^ *)\t(?=[\t ]*(?:#.*)?$)/gm, message: "a tab stands on a line of blanks" },
  { pattern: /(?<=^ *(?:[-?] *)+)\t/gm, message: "a tab stands behind a dash" },
  { pattern: /(?<=^ *):(?=\s|$)/gm, message: "a value stands on another line than its key" },
  { pattern: /(?<=[[{,]\s*)\?/g, message: "a text in brackets begins with a question mark" },
];

/** The first divided form of each kind that stands outside of quotes, and of blocks behind their first line. */
function faultsOutsideTexts(text: string, documents: readonly Document.Parsed[]): readonly Fault[] {
  const found = dividedForms
    .flatMap(({ pattern, message }) => [...text.matchAll(pattern)].map(({ index }) => ({ at: index, message })))
    .toSorted((one, other) => one.at - other.at);
  if (found.length === 0) return [];
  const ranges = documents.flatMap((document) => rangesOfTexts(text, document));
  let i = 0;
  const outside = found.filter(({ at }) => {
    while ((ranges[i]?.[1] ?? Infinity) <= at) i += 1;
    return at <= (ranges[i]?.[0] ?? Infinity);
  });
  return dividedForms.flatMap(({ message }) => outside.find((one) => one.message === message) ?? []);
}

/** Escapes in double quotes that Go refuses, of which JSON has both. */
const dividedEscape = /^(?:\/|u[dD][89a-fA-F])/;

/** Whether a text is JSON, whose escapes Go reads where it reads JSON first. */
function isJsonText(text: string): boolean {
  if (!/^\s*\{/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The lines of blanks that begin at an offset. */
function blankLinesAt(text: string, at: number): string {
  const lines = /(?:[ \t]*\r?\n)*(?:[ \t]*$)?/y;
  lines.lastIndex = at;
  return lines.exec(text)?.[0] ?? "";
}

/** The quoted texts and blocks that Go refuses, or reads otherwise. */
function faultsOfTexts(text: string, document: Document.Parsed, isJson: boolean): readonly Fault[] {
  const faults: Fault[] = [];
  visit(document, {
    Scalar: (_, { type, range }) => {
      if (range == null) return;
      const [at, end] = range;
      if (type === "QUOTE_DOUBLE" && !isJson) {
        const source = text.slice(at, end);
        for (const { index, 1: escape = "" } of source.matchAll(/\\(u[\da-fA-F]{4}|\r?\n[ \t]*\r?\n|[^])/g))
          if (dividedEscape.test(escape) || /\n[^]*\n/.test(escape))
            return void faults.push({
              at: at + index,
              message: "an escape in double quotes that Kubernetes refuses, or reads otherwise",
            });
      } else if (type?.startsWith("BLOCK") === true && /^[|>][-+]?[1-9]/.test(text.slice(at, at + 3))) {
        const header = text.indexOf("\n", at);
        const last = header + text.slice(header, end).trimEnd().length;
        const lastEnd = last <= header ? header : text.indexOf("\n", last);
        if (header !== -1 && lastEnd !== -1 && /[ \t]/.test(blankLinesAt(text, lastEnd + 1)))
          faults.push({ at, message: "a block with an indentation indicator ends with lines of blanks" });
      }
      return undefined;
    },
  });
  return faults;
}

function rangesOfTexts(text: string, document: Document.Parsed): readonly (readonly [number, number])[] {
  const ranges: (readonly [number, number])[] = [];
  visit(document, {
    Scalar: (_, { type, range }) => {
      if (range == null || type === "PLAIN") return;
      const [start, end] = range;
      // Behind the header and the first line that is not blank.
      const head =
        type?.startsWith("BLOCK") === true ? /^[^\n]*\n(?:[\t ]*\r?\n)*[^\n]*/.exec(text.slice(start, end)) : null;
      ranges.push([start + (head?.[0].length ?? 0), end]);
    },
  });
  return ranges;
}

/** Go adds no line end to a text that the end of its document cuts off; kubectl adds one to the last line of a file. */
function cutAtEnd(text: string, document: Document.Parsed): void {
  const last = /[\r\n]$/.test(text) ? undefined : lastScalar(document);
  if (last?.type?.startsWith("BLOCK") === true && typeof last.value === "string" && last.range?.[1] === text.length)
    last.value = last.value.replace(/\n$/, "");
}

function faultsOf(document: Document.Parsed): readonly Fault[] {
  const faults: Fault[] = [];
  const refuse = (at: number, message: string) => faults.push({ at, message });
  const { explicit, version } = document.directives.yaml;
  if (explicit === true && version !== "1.1") refuse(0, `it is YAML ${version}, and Kubernetes reads 1.1`);
  const others = anchorsOfOthers(document);
  const references = { aliases: 0, anchors: 0 };
  /** Where the nodes of anchors end. */
  const ends = new Map<string, number>();
  visit(document, {
    Node: (key, node) => {
      const at = node.range?.[0] ?? 0;
      if (isAlias(node)) {
        references.aliases += 1;
        if ((ends.get(node.source) ?? Infinity) > at) refuse(at, "Unresolved alias: no anchor stands before it");
      }
      const isKey = key === "key";
      const { tag, anchor } = node as { readonly tag?: string; readonly anchor?: string };
      if (tag !== undefined && !sharedTags.has(tag)) refuse(at, "it has a tag that is not supported");
      if (anchor !== undefined) {
        references.anchors += 1;
        ends.set(anchor, node.range?.[1] ?? Infinity);
      }
      if (anchor !== undefined && !/^[\w-]+$/.test(anchor))
        refuse(at, "an anchor has other characters than letters and digits");
      const problem = isScalar(node) ? problemOfScalar(node, isKey) : isKey ? "a key is no text" : undefined;
      if (problem !== undefined) refuse(at, problem);
      if (isColonInFlow(node)) refuse(at, "a text in brackets begins with a colon");
      if (!isMap(node)) return;
      const merge = problemOfMerge(node, others);
      if (merge !== undefined) refuse(at, merge);
      const second = repeatedKey(node);
      if (second !== undefined) refuse(second.range?.[0] ?? at, repeated);
    },
    Pair: (_, { key }) => {
      if (!isNode(key)) refuse(0, "a key is missing");
    },
  });
  if (references.aliases * (references.aliases + references.anchors) > mostAliasSteps)
    refuse(0, "it has too many aliases");
  else if (aliasedNodes(document) > mostAliasedNodes) refuse(0, "its aliases and merges expand to too many nodes");
  return faults;
}

/** The nodes that a node holds, and those that the parser makes once more for its aliases and merges. */
interface Weight {
  readonly size: number;
  readonly again: number;
}

/** How many nodes the parser makes once more for the aliases and merges of a document, those within them counted. */
function aliasedNodes({ contents }: Document.Parsed): number {
  const weights = new Map<string, Weight>();
  const weigh = (node: unknown): Weight => {
    if (isAlias(node)) {
      const { size, again } = weights.get(node.source) ?? { size: 0, again: 0 };
      return { size: 1 + size, again: size + again };
    }
    const parts = isPair(node) ? [node.key, node.value] : isCollection(node) ? node.items : [];
    let size = isPair(node) ? 0 : 1;
    let again = 0;
    for (const part of parts) {
      const weight = weigh(part);
      size += weight.size;
      again += weight.again + (isMerge(node) ? weight.size : 0);
    }
    if (isNode(node) && node.anchor !== undefined) weights.set(node.anchor, { size, again });
    return { size, again };
  };
  return weigh(contents).again;
}

/** Whether a pair brings the keys of another object into its own. */
const isMerge = (node: unknown): boolean =>
  isPair(node) && isScalar(node.key) && node.key.source === "<<" && node.key.type === "PLAIN";

/** The first key that stands in its object before. */
function repeatedKey({ items }: YAMLMap): Scalar | undefined {
  const seen = new Set<string>();
  for (const { key } of items) {
    if (!isScalar(key)) continue;
    if (seen.has(String(key.value))) return key;
    seen.add(String(key.value));
  }
  return undefined;
}

/** Anchors that also stand at something else than an object. */
function anchorsOfOthers(document: Document.Parsed): ReadonlySet<string> {
  const anchors = new Set<string>();
  visit(document, {
    Value: (_, node) => {
      if (node.anchor !== undefined && !isMap(node)) anchors.add(node.anchor);
    },
  });
  return anchors;
}

/** To Go, what stands later wins; to our parser, what stands in the object itself. */
function problemOfMerge(node: YAMLMap, others: ReadonlySet<string>): string | undefined {
  const place = node.items.findIndex(isMerge);
  if (place > 0) return "<< does not stand first in its object";
  const value = node.items[place]?.value;
  const isObject = (one: unknown) => isMap(one) || (isAlias(one) && !others.has(one.source));
  return place < 0 || isObject(value) || (isSeq(value) && value.items.every(isObject))
    ? undefined
    : "<< has neither an object nor a list of objects";
}

/** Go ends such a text at the colon. */
function isColonInFlow(node: Node): boolean {
  if (!isCollection(node) || node.flow !== true) return false;
  return node.items.some((item) => {
    const scalars: readonly unknown[] = isPair(item) ? [item.key, item.value] : [item];
    return scalars.some((one) => isScalar(one) && one.type === "PLAIN" && one.source?.startsWith(":") === true);
  });
}

function problemOfScalar({ value, source, tag }: Scalar, isKey: boolean): string | undefined {
  const type = tag === undefined ? undefined : typeByTag.get(tag);
  if (type !== undefined && typeof value !== type) return "its tag is that of another type";
  if (typeof value === "number" && !Number.isFinite(value)) return "a number is out of range";
  if (typeof value === "string" && !value.isWellFormed()) return "a character is incomplete";
  if (isKey && value === null) return "a key is empty";
  if (isKey && typeof value === "number" && String(value) !== source) return "a key is a number in a form of its own";
  return undefined;
}
