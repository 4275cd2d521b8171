import type { KubeObject, ParsedSelector, ResourceDefinition } from "./contract.ts";
import { isList, isObject, textAt } from "./json-values.ts";
import { own } from "../../../api/schema/own.ts";

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

/** What a label must be for an object to be selected. */
interface Requirement {
  readonly key: string;
  readonly operator: "in" | "notIn" | "exists" | "absent" | "greater" | "less";
  readonly values: readonly string[];
}

/**
 * Parses a label selector as it stands in a request (`app=x,tier in (a,b),!old`).
 * `requires` names the labels that must have one exact value, for indexes. Texts of errors:
 * kubernetes/apimachinery pkg/labels/selector.go (master).
 */
export function parseLabelSelector(text: string): ParsedSelector<Labels> {
  const parsed = parseRequirements(text);
  return typeof parsed === "string"
    ? {
        verdict: "invalid",
        message: /'end of string'$|after ','$/.test(parsed) ? parsed : `unable to parse requirement: ${parsed}`,
      }
    : selecting(parsed);
}

/**
 * Makes a matcher of a LabelSelector object (`matchLabels`, `matchExpressions`). An empty object selects
 * everything, an absent one nothing.
 */
export function compileLabelSelector(selector: unknown): ParsedSelector<Labels> {
  if (!isObject(selector)) return { verdict: "valid", matches: () => false };
  const requirements: Requirement[] = [];
  if (isObject(selector["matchLabels"])) {
    for (const [key, value] of Object.entries(selector["matchLabels"]))
      requirements.push({ key, operator: "in", values: [String(value)] });
  }
  for (const expression of isList(selector["matchExpressions"]) ? selector["matchExpressions"] : []) {
    const key = textAt(expression, "key");
    const operator = own(operators, textAt(expression, "operator"));
    if (operator === undefined) {
      return {
        verdict: "invalid",
        message: `${JSON.stringify(textAt(expression, "operator"))} is not a valid label selector operator`,
      };
    }
    const given = isObject(expression) ? expression["values"] : undefined;
    const values = isList(given) ? given.map(String) : [];
    const needsValues = operator === "in" || operator === "notIn";
    if (needsValues && values.length === 0) {
      return {
        verdict: "invalid",
        message: "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
      };
    }
    if (!needsValues && values.length > 0) {
      return {
        verdict: "invalid",
        message: "values: Invalid value: values set must be empty for exists and does not exist",
      };
    }
    requirements.push({ key, operator, values });
  }
  return selecting(requirements);
}

/** Whether a LabelSelector object selects `labels`. An invalid selector selects nothing. */
export function labelSelectorMatches(selector: unknown, labels: Labels | undefined): boolean {
  const compiled = compileLabelSelector(selector);
  return compiled.verdict === "valid" && compiled.matches(labels ?? {});
}

/**
 * A LabelSelector object in the form that requests and columns use (`app=x,tier in (a,b)`); `<none>` when it is empty.
 */
export function printLabelSelector(selector: unknown): string {
  if (!isObject(selector)) return "<none>";
  const parts: string[] = [];
  if (isObject(selector["matchLabels"])) {
    for (const key of Object.keys(selector["matchLabels"]).toSorted())
      parts.push(`${key}=${String(selector["matchLabels"][key])}`);
  }
  for (const expression of isList(selector["matchExpressions"]) ? selector["matchExpressions"] : []) {
    const key = textAt(expression, "key");
    const given = isObject(expression) ? expression["values"] : undefined;
    const values = (isList(given) ? given.map(String) : []).toSorted().join(",");
    const operator = textAt(expression, "operator");
    if (operator === "In") parts.push(`${key} in (${values})`);
    else if (operator === "NotIn") parts.push(`${key} notin (${values})`);
    else if (operator === "DoesNotExist") parts.push(`!${key}`);
    else parts.push(key);
  }
  return parts.length === 0 ? "<none>" : parts.join(",");
}

/**
 * Parses a field selector (`spec.nodeName=a,status.phase!=Running`) for one kind. Fields other than metadata.name,
 * metadata.namespace and the kind's own are refused, as Kubernetes does.
 */
export function parseFieldSelector(
  text: string,
  definition: Pick<ResourceDefinition, "custom" | "namespaced" | "selectableFields">,
): ParsedSelector<KubeObject> {
  const terms = splitFieldTerms(text);
  if (typeof terms === "string") return { verdict: "invalid", message: terms };
  // Each field is read once, whatever number of terms names it.
  const tests = new Map<string, { read: (object: KubeObject) => string; is: Set<string>; isNot: Set<string> }>();
  const requires: Record<string, string> = {};
  for (const { field, equal, value } of terms) {
    const read = fieldReader(field, definition);
    if (read === undefined) return { verdict: "invalid", message: unknownField(field, definition) };
    const test = tests.get(field) ?? { read, is: new Set(), isNot: new Set() };
    tests.set(field, test);
    (equal ? test.is : test.isNot).add(value);
    if (equal) requires[field] = value;
  }
  const all = [...tests.values()];
  const matches = (object: KubeObject): boolean =>
    all.every(({ read, is, isNot }) => {
      const value = read(object);
      return !isNot.has(value) && (is.size === 0 || (is.size === 1 && is.has(value)));
    });
  return { verdict: "valid", matches, requires };
}

/**
 * The fields for which a field selector demands one exact value, with these values. Nothing of a selector that cannot be
 * parsed, or that demands two values of one field: it says nothing about what is selected.
 */
export function demandedFields(text: string): Readonly<Record<string, string>> {
  const terms = splitFieldTerms(text);
  if (typeof terms === "string") return {};
  const demanded = new Map<string, string>();
  for (const { field, equal, value } of terms) {
    if (!equal) continue;
    if ((demanded.get(field) ?? value) !== value) return {};
    demanded.set(field, value);
  }
  return Object.fromEntries(demanded);
}

const operators: Readonly<Record<string, Requirement["operator"]>> = {
  In: "in",
  NotIn: "notIn",
  Exists: "exists",
  DoesNotExist: "absent",
};

/** All that is required of one label. */
interface LabelTest {
  /** Whether an object without the label is selected, if nothing else speaks against it. */
  mayBeAbsent: boolean;
  mustBeAbsent: boolean;
  /** `undefined`: any value. */
  allowed: ReadonlySet<string> | undefined;
  /** `undefined`: none. */
  refused: Set<string> | undefined;
  above: number;
  below: number;
}

/**
 * The requirements, joined by label: an object is compared with those on its own labels only, so that the time of a long
 * list is in proportion to what is listed, whatever the selector is like. The real server has no limit of terms.
 */
function selecting(requirements: readonly Requirement[]): ParsedSelector<Labels> {
  const requires: Record<string, string> = {};
  const tests = new Map<string, LabelTest>();
  for (const { key, operator, values } of requirements) {
    const [value] = values;
    if (operator === "in" && values.length === 1 && value !== undefined) requires[key] = value;
    let test = tests.get(key);
    if (test === undefined) {
      test = {
        mayBeAbsent: true,
        mustBeAbsent: false,
        allowed: undefined,
        refused: undefined,
        above: -Infinity,
        below: Infinity,
      };
      tests.set(key, test);
    }
    demand(test, operator, values);
  }
  const needed = [...tests].filter(([, { mayBeAbsent }]) => !mayBeAbsent);
  for (const [key] of needed) tests.delete(key);
  // Thousands of watches may judge an object with thousands of labels: each label is looked at once.
  const matches = (labels: Labels): boolean => {
    const count = countOf(labels);
    if (count < needed.length) return false;
    for (const [key, test] of needed)
      if (!Object.hasOwn(labels, key) || !satisfies(labels[key] ?? "", test)) return false;
    if (tests.size <= count) {
      for (const [key, test] of tests)
        if (Object.hasOwn(labels, key) && !satisfies(labels[key] ?? "", test)) return false;
      return true;
    }
    return Object.keys(labels).every((key) => {
      const test = tests.get(key);
      return test === undefined || satisfies(labels[key] ?? "", test);
    });
  };
  return { verdict: "valid", matches, requires };
}

const counts = new WeakMap<Labels, number>();

/**
 * How many labels there are. Those of a stored object never change, and hundreds of watches may ask for them at each change:
 * to count tens of thousands takes longer than to look for a few.
 */
function countOf(labels: Labels): number {
  let count = counts.get(labels);
  if (count === undefined) counts.set(labels, (count = Object.keys(labels).length));
  return count;
}

/** Adds a requirement to those on the same label. */
function demand(test: LabelTest, operator: Requirement["operator"], values: readonly string[]): void {
  if (operator !== "notIn" && operator !== "absent") test.mayBeAbsent = false;
  const limit = Number(values[0]);
  switch (operator) {
    case "in": {
      const { allowed } = test;
      test.allowed = new Set(allowed === undefined ? values : values.filter((value) => allowed.has(value)));
      return;
    }
    case "notIn":
      test.refused ??= new Set();
      for (const value of values) test.refused.add(value);
      return;
    case "exists":
      return;
    case "absent":
      test.mustBeAbsent = true;
      return;
    case "greater":
      test.above = Math.max(test.above, limit);
      return;
    case "less":
      test.below = Math.min(test.below, limit);
  }
}

/** Whether a label may have a value. */
function satisfies(value: string, { mustBeAbsent, allowed, refused, above, below }: LabelTest): boolean {
  if (mustBeAbsent || refused?.has(value) === true || allowed?.has(value) === false) return false;
  if (above === -Infinity && below === Infinity) return true;
  return /^-?\d+$/.test(value) && Number(value) > above && Number(value) < below;
}

/** Words and signs of a selector; whitespace only separates. */
function tokens(text: string): string[] {
  return text.match(/==|!=|[=!,()<>]|[^\s=!,()<>]+/g) ?? [];
}

function parseRequirements(text: string): Requirement[] | string {
  const words = tokens(text);
  const requirements: Requirement[] = [];
  let position = 0;
  const next = (): string => words[position++] ?? "";
  if (words.length === 0) return requirements;
  for (;;) {
    const negated = words[position] === "!";
    if (negated) position++;
    const key = next();
    if (!isWord(key))
      return `found '${key}', expected: ${negated ? "identifier" : "!, identifier, or 'end of string'"}`;
    const problem = labelKeyProblem(key);
    if (problem !== undefined) return `<nil>: Invalid value: ${JSON.stringify(key)}: ${problem}`;
    if (negated) requirements.push({ key, operator: "absent", values: [] });
    else {
      const operator = words[position] ?? "";
      if (operator === "" || operator === ",") requirements.push({ key, operator: "exists", values: [] });
      else {
        position++;
        const read = readValues(operator, words, position);
        if (typeof read === "string") return read;
        for (const value of read.values) {
          const wrong = labelValueProblem(value);
          if (wrong !== undefined) return `values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${wrong}`;
        }
        requirements.push({ key, operator: read.operator, values: read.values });
        position = read.position;
      }
    }
    const separator = next();
    if (separator === "") return requirements;
    if (separator !== ",") return `found '${separator}', expected: ',' or 'end of string'`;
    if (position >= words.length) return "found '', expected: identifier after ','";
  }
}

function readValues(
  operator: string,
  words: readonly string[],
  from: number,
): { operator: Requirement["operator"]; values: string[]; position: number } | string {
  let position = from;
  if (operator === "=" || operator === "==" || operator === "!=" || operator === ">" || operator === "<") {
    const word = words[position];
    const value = word !== undefined && isWord(word) ? word : "";
    if (value !== "") position++;
    else if (word !== undefined && word !== ",") return `found '${word}', expected: identifier`;
    if (operator === ">" || operator === "<") {
      if (!/^-?\d+$/.test(value))
        return `values[0]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`;
      return { operator: operator === ">" ? "greater" : "less", values: [value], position };
    }
    return { operator: operator === "!=" ? "notIn" : "in", values: [value], position };
  }
  if (operator !== "in" && operator !== "notin") return `found '${operator}', expected: in, notin, =, ==, !=, gt, lt`;
  if (words[position] !== "(") return `found '${words[position] ?? ""}' expected: '('`;
  position++;
  const values: string[] = [];
  let expectValue = true;
  for (;;) {
    const word = words[position++];
    if (word === undefined) return "found '', expected: ',' or ')'";
    if (word === ")") {
      if (expectValue) values.push("");
      return { operator: operator === "in" ? "in" : "notIn", values, position };
    }
    if (word === ",") {
      if (expectValue) values.push("");
      expectValue = true;
    } else if (expectValue && isWord(word)) {
      values.push(word);
      expectValue = false;
    } else return `found '${word}', expected: ',' or ')'`;
  }
}

function isWord(word: string): boolean {
  return word !== "" && !/^(?:==|!=|[=!,()<>])$/.test(word);
}

function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  const name = key.slice(slash + 1);
  if (slash === 0) return "prefix part must be non-empty";
  if (/^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/.test(name) && name.length <= 63) return undefined;
  return "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
}

function labelValueProblem(value: string): string | undefined {
  if (value.length > 63) return "must be no more than 63 bytes";
  if (/^(?:(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/.test(value)) return undefined;
  return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

interface FieldTerm {
  readonly field: string;
  readonly equal: boolean;
  readonly value: string;
}

/** Commas and equals signs in values are escaped with a backslash. */
function splitFieldTerms(text: string): FieldTerm[] | string {
  const terms: FieldTerm[] = [];
  for (const [part] of text.matchAll(/(?:\\.|[^,\\])+/g)) {
    const split = /^((?:\\.|[^=!\\])*)(!=|==|=)((?:\\.|[^\\])*)$/.exec(part);
    if (split === null) return `invalid selector: '${text}'; can't understand '${part}'`;
    const [, field = "", operator = "", value = ""] = split;
    if (/(?<!\\)=/.test(value)) return `invalid field selector: invalid unescaped sequence "="`;
    terms.push({ field: field.trim(), equal: operator !== "!=", value: value.replaceAll(/\\(.)/g, "$1") });
  }
  return terms;
}

function fieldReader(
  field: string,
  definition: Pick<ResourceDefinition, "selectableFields" | "namespaced">,
): ((object: KubeObject) => string) | undefined {
  if (field === "metadata.name") return (object) => object.metadata.name ?? "";
  if (field === "metadata.namespace" && definition.namespaced) return (object) => object.metadata.namespace ?? "";
  return Object.hasOwn(definition.selectableFields, field) ? definition.selectableFields[field] : undefined;
}

function unknownField(
  field: string,
  { custom, selectableFields }: Pick<ResourceDefinition, "selectableFields" | "custom">,
): string {
  if (custom || Object.keys(selectableFields).length > 0) return `field label not supported: ${field}`;
  return `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
}
