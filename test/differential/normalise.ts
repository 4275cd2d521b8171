import { at, type Json } from "../contract/api-target.ts";
import type { RawRun } from "./run-list.ts";

/** A run with the values that differ between any two servers (ids, times, versions) replaced by their order. */
export interface NormalRun {
  readonly answers: readonly unknown[];
  readonly watches: readonly { readonly kind: string; readonly events: readonly unknown[] }[];
}

const uidPattern = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const timeKeys: ReadonlySet<string> = new Set(["creationTimestamp", "deletionTimestamp", "time"]);

export function normaliseRun(run: RawRun): NormalRun {
  const bodies = [
    ...run.answers.flat().map(({ body }) => body),
    ...run.watches.flatMap(({ events }) => events.map((event) => at(event, "object"))),
  ];
  const versions = new Set<number>();
  const uids = new Map<string, string>();
  for (const object of bodies.flatMap(objectsIn)) {
    const version = at(object, "metadata.resourceVersion");
    if (typeof version === "string" && version !== "") versions.add(Number(version));
    // A version that no answer shows, such as that of a deleted collection's item, may still be named in a refusal.
    const message = at(object, "message");
    const named = typeof message === "string" ? /in record \((\d+)\)/.exec(message)?.[1] : undefined;
    if (named !== undefined) versions.add(Number(named));
    const uid = at(object, "metadata.uid");
    if (typeof uid === "string" && !uids.has(uid)) uids.set(uid, `uid-${uids.size + 1}`);
  }
  const ranks = new Map(
    [...versions].toSorted((a, b) => a - b).map((version, index) => [String(version), `version-${index + 1}`]),
  );

  const text = (value: string): string =>
    value
      // The whole patched object, in Go's order of fields.
      .replace(
        /(patch: |^)Invalid value: (?:".*"|map\[.*\]): (strict decoding error|json: |cannot convert|parsing time)/s,
        "$1Invalid value: <patched>: $2",
      )
      // What changed in a pod is shown as a diff of Go's own types.
      .replace(/(if it was previously negative\))\n.*?(?=\]$|$)/s, "$1")
      // Values of a wrong type are refused in the words of Go's decoders.
      .replace(/(?:json: cannot unmarshal|cannot convert) .*/s, "<wrong type>")
      .replaceAll(uidPattern, (uid) => uids.get(uid) ?? uid)
      // A refusal may come before the name was made, or after.
      .replaceAll(/(?<=\bgen-)(?:[a-z0-9]{5}\b)?(?=[^a-z0-9]|$)/g, "#####")
      .replaceAll(/(?<=[vV]ersion[^0-9]{0,40})\d+/g, (number) => ranks.get(number) ?? number);

  function clean(value: unknown, key: string): unknown {
    if (typeof value === "string") {
      if (timeKeys.has(key) && /^\d{4}-/.test(value)) return "<time>";
      if (key === "resourceVersion") return ranks.get(value) ?? value;
      return text(value);
    }
    if (Array.isArray(value)) {
      const items = value.map((item) => clean(item, ""));
      // Entries are in the order of their times, which may or may not be a second apart.
      return key === "managedFields"
        ? items.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
        : items;
    }
    if (typeof value === "object" && value !== null) {
      const isList = "items" in value;
      return Object.fromEntries(
        Object.entries(value)
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, inner]) => [
            text(name),
            isList && name === "metadata" ? cleanListMeta(inner) : clean(inner, name),
          ]),
      );
    }
    return value;
  }

  /** A list's version depends on the server's progress, and its token on the server. */
  function cleanListMeta(metadata: unknown): unknown {
    return {
      ...(metadata as Json),
      ...(at(metadata, "resourceVersion") === undefined ? {} : { resourceVersion: "<now>" }),
      ...(at(metadata, "continue") === undefined ? {} : { continue: "<token>" }),
    };
  }

  return {
    answers: run.answers.map((answers) =>
      answers.map(({ status, body, warnings }) => ({
        status,
        ...(warnings.length === 0 ? {} : { warnings: warnings.map(text) }),
        body: clean(ordered(body), ""),
      })),
    ),
    watches: run.watches.map(({ kind, events }) => ({
      kind: kind.plural,
      events: events.map((event) => clean(event, "")),
    })),
  };
}

/**
 * Schemas are walked in the order of a Go map, which differs every time: causes are sorted, also in the message, and
 * duplicates removed.
 */
function ordered(body: unknown): unknown {
  const causes = at(body, "details.causes");
  const message = at(body, "message");
  // Which problems of an applied configuration are found before the search ends is random.
  const untyped =
    typeof message === "string" ? /^failed to create typed patch object \(.*?\): /.exec(message)?.[0] : undefined;
  if (untyped !== undefined) return { ...(body as Json), message: `${untyped}<problems>` };
  if (!Array.isArray(causes) || causes.length === 0 || typeof message !== "string") return body;
  // Conflicts with several managers come in the order of a Go map, too (kubernetes-sigs/structured-merge-diff
  // merge/conflict.go, ConflictsFromManagers); their message is sorted.
  if (at(body, "reason") === "Conflict")
    return {
      ...(body as Json),
      details: {
        ...(at(body, "details") as Json),
        causes: causes.toSorted((a, b) => String(at(a, "message")).localeCompare(String(at(b, "message")))),
      },
    };
  const texts = [
    ...new Set(causes.map((cause) => `${String(at(cause, "field"))}: ${String(at(cause, "message"))}`)),
  ].toSorted();
  if (texts.length === 1)
    return { ...(body as Json), details: { ...(at(body, "details") as Json), causes: causes.slice(0, 1) } };
  const head = message.slice(0, message.indexOf("[") + 1);
  const told = texts
    .toSorted((a, b) => b.length - a.length)
    .reduce((rest, one) => rest.replace(one, ""), message.slice(head.length))
    .replaceAll(/[\], ]/g, "");
  if (told !== "") return body;
  return {
    ...(body as Json),
    message: `${head}${texts.join(", ")}]`,
    details: {
      ...(at(body, "details") as Json),
      causes: [...new Map(causes.map((cause): [string, unknown] => [JSON.stringify(cause), cause]))]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([, cause]) => cause),
    },
  };
}

/** The objects of an answer: itself, or its items. */
function objectsIn(body: unknown): readonly unknown[] {
  const items = at(body, "items");
  return Array.isArray(items) ? items : [body];
}
