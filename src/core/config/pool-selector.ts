import { type LabelSelector, selectorIsEmpty, selectorMatches } from "../../api/schema/object.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** A problem of a pool's selector; `field` is its place below the selector. */
export interface SelectorProblem {
  readonly is: "empty" | "malformed";
  readonly field: string;
  readonly reason: string;
  readonly remedy: string;
}

/** Keys of one selector, and values in all of its lists: each node and each MachineConfig is compared with them. */
const mostKeys = 64;
const mostValues = 4096;

/** Names and values of labels: k8s.io/apimachinery pkg/util/validation/validation.go (v0.34). */
const namePattern = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const prefixPattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const isName = (text: string) => text.length <= 63 && namePattern.test(text);

function isLabelKey(key: string): boolean {
  if (key.length > 317) return false;
  const [name = "", prefix, ...more] = key.split("/").toReversed();
  return (
    isName(name) && more.length === 0 && (prefix === undefined || (prefix.length <= 253 && prefixPattern.test(prefix)))
  );
}

const isLabelValue = (value: string) => value === "" || isName(value);

/**
 * Why a pool selects nothing by a selector; `undefined`: it selects what the selector matches. A selector that Kubernetes
 * cannot read (k8s.io/apimachinery pkg/labels, v0.34) is malformed, and so is one with very many terms. The API server
 * judges none of this for a pool, which is a custom resource.
 */
export const selectorProblem = readOncePerObject(judge);

/** Whether a pool takes an object with these labels. A selector that is empty or malformed takes none. */
export const poolSelects = (
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean => selector !== undefined && selectorProblem(selector) === undefined && selectorMatches(selector, labels);

function judge(selector: LabelSelector): SelectorProblem | undefined {
  if (selectorIsEmpty(selector)) return { is: "empty", field: "", reason: "is empty", remedy: "name a label" };
  const malformed = (field: string, reason: string, remedy: string): SelectorProblem => ({
    is: "malformed",
    field,
    reason,
    remedy,
  });
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const keys = Object.keys(matchLabels).length + matchExpressions.length;
  if (keys > mostKeys)
    return malformed(
      "",
      `has ${keys} terms, and at most ${mostKeys} are compared`,
      "give the objects a label of their own",
    );
  const values = matchExpressions.reduce((sum, { values: of = [] }) => sum + of.length, 0);
  if (values > mostValues)
    return malformed(
      "",
      `lists ${values} values, and at most ${mostValues} are compared`,
      "give the objects a label of their own",
    );
  for (const [key, value] of Object.entries(matchLabels)) {
    if (!isLabelKey(key)) return malformed(".matchLabels", "has a key that no label can have", keyRemedy);
    if (!isLabelValue(value)) return malformed(".matchLabels", "has a value that no label can have", valueRemedy);
  }
  for (const [i, { key, operator, values: of = [] }] of matchExpressions.entries()) {
    const field = `.matchExpressions[${i}]`;
    if (!isLabelKey(key)) return malformed(`${field}.key`, "is no key that a label can have", keyRemedy);
    const takesValues = operator === "In" || operator === "NotIn";
    if (!takesValues && operator !== "Exists" && operator !== "DoesNotExist")
      return malformed(`${field}.operator`, "is no operator", "write In, NotIn, Exists or DoesNotExist");
    if (takesValues !== of.length > 0)
      return malformed(
        `${field}.values`,
        takesValues ? `is empty, and ${operator} takes one value at least` : `is given, and ${operator} takes none`,
        takesValues ? "name the values" : "leave it out",
      );
    const wrong = of.findIndex((value) => !isLabelValue(value));
    if (wrong >= 0) return malformed(`${field}.values[${wrong}]`, "is no value that a label can have", valueRemedy);
  }
  return undefined;
}

const keyRemedy = "write a name of at most 63 letters, digits, -, _ and ., after a domain and a slash if need be";
const valueRemedy = "write at most 63 letters, digits, -, _ and .";
