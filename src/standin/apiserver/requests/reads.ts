import { decodeBase64Url, encodeBase64Url } from "../http/base64url.ts";
import type { HttpRequest, HttpResponse } from "../../../ports/http.ts";
import { type Engine, keyInStore } from "./engine.ts";
import { inVersion } from "../schema/event-conversion.ts";
import type { Interest, LiveEvent, LiveObject } from "../storage/live-objects.ts";
import {
  contentType,
  type Format,
  inTurns,
  longestTextCharacters,
  negotiate,
  objectResponse,
  type Sized,
} from "../http/representation.ts";
import { isTrue, type ResourceTarget } from "../http/request-target.ts";
import { isObject } from "../schema/json-values.ts";
import { parseFieldSelector, parseLabelSelector } from "../schema/selectors.ts";
import { forbidden } from "../schema/field-errors.ts";
import {
  badRequest,
  expired,
  invalid,
  notFound,
  Refusal,
  tooLargeRevision,
  tooManyRequests,
  unforeseen,
} from "../schema/status.ts";
import { defaultBacklog, WatchStream } from "../http/watch-stream.ts";
import type { Served } from "../schema/contract.ts";
import type { CallerExchange, Exchange } from "../access/exchange.ts";

/** GET of one object. */
export function getObject(
  engine: Engine,
  served: Served,
  target: ResourceTarget,
  request: HttpRequest,
): HttpResponse | Refusal {
  const format = negotiate(request.headers["accept"], target.query);
  if (format instanceof Refusal) return format;
  const live = engine.live.get(keyInStore(served, target));
  if (live === undefined) return notFound(served.definition, target.name);
  const asked = revisionOf(target.query.get("resourceVersion"));
  if (asked instanceof Refusal) return unforeseen(asked.status.message ?? "");
  if (asked !== undefined && asked > engine.live.revision()) return tooLargeRevision(asked, engine.live.revision());
  return objectResponse(200, engine.show.object(served, live, format), format);
}

interface Selection {
  readonly matches: (live: LiveObject) => boolean;
  /** Without selectors everything matches, so that a list can state how many items remain. */
  readonly everything: boolean;
  readonly interest: Interest;
}

/** Reads labelSelector and fieldSelector of a request. */
export function selectionOf(served: Served, target: ResourceTarget): Selection | Refusal {
  const { definition } = served;
  const labelText = target.query.get("labelSelector") ?? "";
  const fieldText = target.query.get("fieldSelector") ?? "";
  const labels = labelText === "" ? undefined : parseLabelSelector(labelText);
  if (labels?.verdict === "invalid") return badRequest(labels.message);
  const fields = fieldText === "" ? undefined : parseFieldSelector(fieldText, definition);
  if (fields?.verdict === "invalid") return badRequest(fields.message);
  const requires = fields?.requires ?? {};
  const name = requires["metadata.name"];
  const namespace =
    target.namespace !== "" ? target.namespace : definition.namespaced ? requires["metadata.namespace"] : "";
  const nodeName = requires["spec.nodeName"];
  return {
    everything: labels === undefined && fields === undefined,
    matches: ({ key, object }) =>
      (target.namespace === "" || !definition.namespaced || key.namespace === target.namespace) &&
      (labels === undefined || labels.matches(object.metadata.labels ?? {})) &&
      (fields === undefined || fields.matches(inVersion(object, served.apiVersion))),
    interest: {
      resource: served.stored,
      // Objects of the whole cluster have an empty namespace, which is no narrower than the resource.
      ...(namespace === undefined || (namespace === "" && name === undefined) ? {} : { namespace }),
      ...(name === undefined || namespace === undefined ? {} : { name }),
      ...(nodeName === undefined ? {} : { nodeName }),
    },
  };
}

/** Objects that are looked at in one turn: a few milliseconds. */
const objectsOfOneTurn = 2_000;

/** LIST, with pages that all show the same revision. */
export async function listObjects(
  engine: Engine,
  served: Served,
  target: ResourceTarget,
  request: HttpRequest,
  turn: () => Promise<void>,
): Promise<HttpResponse | Refusal> {
  const { query } = target;
  const format = negotiate(request.headers["accept"], query);
  if (format instanceof Refusal) return format;
  const selection = selectionOf(served, target);
  if (selection instanceof Refusal) return selection;
  const asked = revisionOf(query.get("resourceVersion"));
  if (asked instanceof Refusal) return badRequest(`invalid resource version: ${asked.status.message ?? ""}`);
  const match = query.get("resourceVersionMatch");
  const problems = [
    ...(match !== null && asked === undefined
      ? [forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided")]
      : []),
    ...(match === "Exact" && asked === 0
      ? [forbidden("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')]
      : []),
    ...(query.get("sendInitialEvents") === null
      ? []
      : [forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")]),
  ];
  if (problems.length > 0) return invalid({ group: "meta.k8s.io", kind: "ListOptions" }, "", problems);
  if (match !== null && match !== "Exact" && match !== "NotOlderThan")
    return invalidListOptions(
      "resourceVersionMatch",
      "FieldValueNotSupported",
      `Unsupported value: "${match}": supported values: "Exact", "NotOlderThan", ""`,
    );

  const asksFor = Number(query.get("limit") ?? 0);
  if (!Number.isSafeInteger(asksFor) || asksFor < 0)
    return badRequest(`strconv.ParseInt: parsing ${JSON.stringify(query.get("limit") ?? "")}: invalid syntax`);
  // A list that names one object contains only that object, and has no further pages: `k8s.io/apiserver
  // pkg/registry/generic/registry/store.go (v0.34)` ListPredicate.
  const limit =
    selection.interest.name !== undefined && (target.namespace !== "" || !served.definition.namespaced) ? 0 : asksFor;
  const token = query.get("continue") ?? "";
  const from = token === "" ? undefined : readContinue(token);
  if (from instanceof Refusal) return from;
  if (from !== undefined && asked !== undefined && asked !== 0)
    return badRequest("specifying resource version is not allowed when using continue");

  const current = engine.live.revision();
  if (asked !== undefined && asked > current) return tooLargeRevision(asked, current);
  const exact = from?.revision ?? (match === "Exact" && asked !== undefined ? asked : undefined);
  const namespace = served.definition.namespaced && target.namespace !== "" ? target.namespace : undefined;
  const all =
    exact === undefined
      ? engine.live.list(served.stored, namespace)
      : engine.live.listAt(served.stored, namespace, exact);
  if (all === "compacted") {
    return from === undefined
      ? expired(`The resourceVersion for the provided list is too old.`)
      : expired(
          "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        );
  }
  const revision = exact ?? current;

  const items: LiveObject[] = [];
  let last: LiveObject | undefined;
  let more = false;
  let passed = 0;
  for (const live of all) {
    passed += 1;
    // What is listed was there when the list began: nothing changes these objects.
    if (passed % objectsOfOneTurn === 0) await turn();
    if (from !== undefined && `${live.key.namespace}/${live.key.name}` <= from.start) continue;
    // Whether one of the rest is selected is not known before the next page.
    if (limit > 0 && items.length === limit) {
      more = true;
      break;
    }
    if (!selection.everything && !selection.matches(live)) continue;
    items.push(live);
    last = live;
  }
  const metadata = {
    resourceVersion: String(revision),
    ...(more && last !== undefined
      ? { continue: writeContinue(revision, `${last.key.namespace}/${last.key.name}`) }
      : {}),
    ...(more && selection.everything ? { remainingItemCount: all.length - passed + 1 } : {}),
  };
  const list = isTooLong(items) ? undefined : await engine.show.list(served, items, metadata, format, turn);
  return list === undefined
    ? tooLongFor("the list is too long for one answer: ask for it in pages, with limit=500")
    : objectResponse(200, list, format);
}

/** Whether a list has no answer in one text, whatever is shown of its items. */
export const isTooLong = (items: readonly Sized[]): boolean =>
  items.reduce((sum, { json }) => sum + json.length, 0) > longestTextCharacters;

const tooLongFor = (message: string): Refusal => new Refusal(413, "RequestEntityTooLarge", message);

function invalidListOptions(field: string, reason: string, message: string): Refusal {
  return new Refusal(422, "Invalid", `ListOptions.meta.k8s.io "" is invalid: ${field}: ${message}`, {
    group: "meta.k8s.io",
    kind: "ListOptions",
    causes: [{ reason, message, field }],
  });
}

function revisionOf(text: string | null): number | undefined | Refusal {
  if (text === null || text === "") return undefined;
  if (!/^\d{1,15}$/.test(text))
    return badRequest(
      `resourceVersion: Invalid value: ${JSON.stringify(text)}: strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`,
    );
  return Number(text);
}

function writeContinue(revision: number, start: string): string {
  return encodeBase64Url(JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start }));
}

function readContinue(token: string): { readonly revision: number; readonly start: string } | Refusal {
  const refused = badRequest("invalid continue token: continue key is not valid: it is no JSON in base64");
  const text = decodeBase64Url(token);
  if (text === undefined) return refused;
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || typeof value["rv"] !== "number" || typeof value["start"] !== "string") return refused;
    return { revision: value["rv"], start: value["start"] };
  } catch {
    return refused;
  }
}

/** How often a watch that asked for bookmarks gets one. */
const bookmarkEveryMs = 60_000;
/** A watch without `timeoutSeconds` ends after 30 to 60 minutes, as the real server's do. */
const defaultWatchSeconds = 1_800;
/** No watch outlives those by much: its caller may have lost the rights that it began with. */
const mostWatchSeconds = 2 * defaultWatchSeconds;

/** Watches end by themselves, within an hour. */
const retryAfterSeconds = 30;

/** Of what a watch missed: as much as is kept of the objects themselves. Beyond that, it is told to list. */
const longestMissedCharacters = 128 * 1024 * 1024;

/** WATCH: from a revision, or from the objects that there are. */
export async function watchObjects(
  engine: Engine,
  served: Served,
  target: ResourceTarget,
  request: HttpRequest,
  { signal, turn, share }: Pick<CallerExchange, "signal" | "turn" | "share">,
): Promise<HttpResponse | Refusal> {
  const { query } = target;
  const negotiated = negotiate(request.headers["accept"], query);
  if (negotiated instanceof Refusal) return negotiated;
  // Each event is a line of JSON, whatever the caller reads otherwise.
  const format: Format = { ...negotiated, encoding: "json" };
  const selection = selectionOf(served, target);
  if (selection instanceof Refusal) return selection;
  const asked = revisionOf(query.get("resourceVersion"));
  if (asked instanceof Refusal) return unforeseen(asked.status.message ?? "");
  const bookmarks = isTrue(query.get("allowWatchBookmarks"));
  const sendInitial = query.get("sendInitialEvents");
  if (sendInitial !== null && query.get("resourceVersionMatch") !== "NotOlderThan") {
    return invalidListOptions(
      "resourceVersionMatch",
      "FieldValueForbidden",
      "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    );
  }
  const timeoutSeconds = Number(query.get("timeoutSeconds") ?? 0);
  if (!Number.isFinite(timeoutSeconds) || timeoutSeconds < 0)
    return badRequest(`invalid timeoutSeconds: ${query.get("timeoutSeconds") ?? ""}`);

  const characters = (query.get("labelSelector") ?? "").length + (query.get("fieldSelector") ?? "").length;
  const giveBack = engine.selectors.take(share, characters);
  if (giveBack === undefined)
    return tooManyRequests(
      "the selectors of open watches take too much memory: watch with a shorter labelSelector or fieldSelector, or end other watches first",
      retryAfterSeconds,
    );
  const cancels: (() => void)[] = [giveBack];
  const backlog = engine.watchBacklog ?? defaultBacklog;
  const stream = new WatchStream({ share, backlog, unread: engine.unread }, () => {
    engine.watches.delete(stream);
    for (const cancel of cancels) cancel();
  });
  const answer: HttpResponse = {
    status: 200,
    headers: { "content-type": contentType(format), "cache-control": "no-cache, private" },
    body: stream,
  };

  const encoding = `${served.apiVersion}|${format.as}|${format.rowObject}`;
  const send = (event: LiveEvent): string => {
    const is = event.type !== "DELETED" && selection.matches(event.live);
    const was = event.previous === undefined ? event.type !== "ADDED" : selection.matches(event.previous);
    if (!is && !was) return "";
    if (is) {
      const text = encodedOnce(event, encoding, () => engine.show.object(served, event.live, format));
      const type = event.type === "ADDED" || (event.previous !== undefined && !was) ? "ADDED" : "MODIFIED";
      return `{"type":"${type}","object":${text}}\n`;
    }
    if (event.type === "DELETED" && event.previous === undefined && !selection.matches(event.live)) return "";
    // An object that left the selection is shown as it was, with the revision of its leaving.
    const gone = encodedOnce(event, `gone|${encoding}`, () => engine.show.object(served, leaving(event), format));
    return `{"type":"DELETED","object":${gone}}\n`;
  };

  engine.watches.set(stream, served.stored);
  const onAbort = () => stream.end();
  signal.addEventListener("abort", onAbort, { once: true });
  cancels.push(() => signal.removeEventListener("abort", onAbort));
  if (signal.aborted) stream.end();

  const fromState = sendInitial === null ? asked === undefined || asked === 0 : isTrue(sendInitial);
  const from = fromState ? engine.live.revision() : (asked ?? engine.live.revision());
  let initial = "";
  if (fromState) {
    const namespace = served.definition.namespaced && target.namespace !== "" ? target.namespace : undefined;
    const state = engine.live.list(served.stored, namespace);
    const shown = await shownState(engine, served, state, { selection, format, turn });
    if (shown === undefined) {
      stream.end();
      return tooLongFor(
        "what the watch begins with is too long for one answer: list it in pages, with limit=500, and watch from the resourceVersion of the list",
      );
    }
    initial = shown;
    if (sendInitial !== null && bookmarks)
      initial += `{"type":"BOOKMARK","object":${engine.show.bookmark(served, from, format, { "k8s.io/initial-events-end": "true" })}}\n`;
  }
  // The server or the kind went, or the caller, while the state was shown.
  if (!stream.isOpen) return answer;
  // What happened since is read where all changes are kept, in any number: nothing else happens before the watch hears of it.
  const missed = engine.live.since(selection.interest, from);
  const lines =
    missed === "compacted" || missed.some((event) => isUnclear(event, selection)) ? undefined : linesOf(missed, send);
  if (lines === undefined) {
    const { status } = expired(`too old resource version: ${from} (${engine.live.oldest()})`);
    stream.begin(`${JSON.stringify({ type: "ERROR", object: status })}\n`);
    stream.end();
    return answer;
  }
  stream.begin(initial + lines);
  // Events up to the revision asked for are known to the caller already.
  const since = Math.max(fromState ? 0 : (asked ?? 0), 0);
  cancels.push(
    engine.live.subscribe(selection.interest, (event) => {
      if (event.live.revision <= since) return;
      const line = send(event);
      if (line !== "") stream.push(line);
    }),
  );
  const seconds =
    timeoutSeconds > 0 ? Math.min(timeoutSeconds, mostWatchSeconds) : defaultWatchSeconds * (1 + engine.random.next());
  const bookmark = () =>
    stream.push(`{"type":"BOOKMARK","object":${engine.show.bookmark(served, engine.live.revision(), format)}}\n`);
  cancels.push(
    engine.clock.after(seconds * 1_000, () => {
      if (bookmarks) bookmark();
      stream.end();
    }),
  );
  if (bookmarks) {
    let cancel = () => {};
    const again = () => {
      cancel = engine.clock.after(bookmarkEveryMs, () => {
        bookmark();
        again();
      });
    };
    again();
    cancels.push(() => cancel());
  }
  return answer;
}

/** What a watch begins with, as its lines; `undefined`: it is longer than a text may be. */
async function shownState(
  engine: Engine,
  served: Served,
  state: readonly LiveObject[],
  { selection, format, turn }: { selection: Selection; format: Format; turn: Exchange["turn"] },
): Promise<string | undefined> {
  const chosen: LiveObject[] = [];
  for (const [index, live] of state.entries()) {
    if (index % objectsOfOneTurn === objectsOfOneTurn - 1) await turn();
    if (selection.matches(live)) chosen.push(live);
  }
  if (isTooLong(chosen)) return undefined;
  const line = (live: LiveObject) => `{"type":"ADDED","object":${engine.show.object(served, live, format)}}\n`;
  return (await inTurns(chosen, line, turn))?.join("");
}

/** Lines of events in one text; `undefined`: it is longer than one may be, or than others wait for. */
function linesOf(events: readonly LiveEvent[], send: (event: LiveEvent) => string): string | undefined {
  const lines: string[] = [];
  let characters = 0;
  for (const event of events) {
    const line = send(event);
    characters += line.length;
    if (characters > longestMissedCharacters) return undefined;
    lines.push(line);
  }
  return lines.join("");
}

/**
 * Whether an object that is not selected may have left the selection with an event: what it was before is no longer known. It
 * is not shown as it is now to one who may see only what is selected, such as a node its own pods.
 */
function isUnclear({ type, live, previous }: LiveEvent, { matches }: Selection): boolean {
  return type === "MODIFIED" && previous === undefined && !matches(live);
}

function encodedOnce(event: LiveEvent, key: string, encode: () => string): string {
  let text = event.encoded.get(key);
  if (text === undefined) event.encoded.set(key, (text = encode()));
  return text;
}

function leaving(event: LiveEvent): Pick<LiveObject, "object" | "json"> {
  if (event.type === "DELETED" || event.previous === undefined) return event.live;
  const object = {
    ...event.previous.object,
    metadata: { ...event.previous.object.metadata, resourceVersion: String(event.live.revision) },
  };
  return { object, json: JSON.stringify(object) };
}
