import { stringify } from "yaml";
import type { HttpResponse } from "../../../ports/http.ts";
import { inVersion } from "../schema/event-conversion.ts";
import type { LiveObject } from "../storage/live-objects.ts";
import type { KubeObject, Served } from "../schema/contract.ts";
import { jsonDepth } from "../schema/json-values.ts";
import { notAcceptable, type Refusal } from "../schema/status.ts";

/** The form in which the caller wants objects. */
export interface Format {
  readonly as: "object" | "metadata" | "table";
  /** With `table`: how much of the object each row carries. */
  readonly rowObject: "None" | "Metadata" | "Object";
  readonly encoding: "json" | "yaml";
}

const plain: Format = { as: "object", rowObject: "Metadata", encoding: "json" };

interface AcceptedType {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The media types of an Accept header, best first. */
export function acceptedTypes(header: string | undefined): readonly AcceptedType[] {
  if (header === undefined || header.trim() === "") return [{ type: "*/*", parameters: {} }];
  const accepted = header.split(",").map((clause, order) => {
    const [type = "", ...rest] = clause.split(";").map((part) => part.trim());
    const parameters: Record<string, string> = {};
    for (const parameter of rest) {
      const equals = parameter.indexOf("=");
      if (equals > 0) parameters[parameter.slice(0, equals)] = parameter.slice(equals + 1);
    }
    return { type: type.toLowerCase(), parameters, order, quality: Number(parameters["q"] ?? 1) };
  });
  return accepted.sort((a, b) => b.quality - a.quality || a.order - b.order);
}

const servedTypes = ["application/json", "application/yaml"];

/** Chooses the first form of the Accept header that this server has. */
export function negotiate(accept: string | undefined, query: URLSearchParams): Format | Refusal {
  for (const { type, parameters } of acceptedTypes(accept)) {
    const encoding =
      type === "application/yaml"
        ? "yaml"
        : ["application/json", "*/*", "application/*"].includes(type)
          ? "json"
          : undefined;
    if (encoding === undefined) continue;
    const as = parameters["as"];
    if (as === undefined) return { ...plain, encoding };
    if (parameters["g"] !== "meta.k8s.io" || parameters["v"] !== "v1") continue;
    if (as === "Table") {
      const wanted = query.get("includeObject");
      return { as: "table", encoding, rowObject: wanted === "None" || wanted === "Object" ? wanted : "Metadata" };
    }
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList")
      return { ...plain, as: "metadata", encoding };
  }
  return notAcceptable(servedTypes);
}

/** Writes objects in the forms that callers ask for. `now`: milliseconds since the epoch, for ages in tables. */
export interface Representation {
  object(served: Served, live: Pick<LiveObject, "object" | "json">, format: Format): string;
  /**
   * @param turn waits while others go on: each row of a table takes some time.
   * @returns `undefined`: it is longer than a text may be.
   */
  list(
    served: Served,
    items: readonly LiveObject[],
    metadata: ListMetadata,
    format: Format,
    turn: () => Promise<void>,
  ): Promise<string | undefined>;
  /** A marker of progress in a watch. */
  bookmark(served: Served, revision: number, format: Format, annotations?: Readonly<Record<string, string>>): string;
}

export interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export function representation(now: () => number): Representation {
  function asMetadata(object: KubeObject) {
    return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata };
  }

  function row(served: Served, object: KubeObject, format: Format) {
    const shown = inVersion(object, served.apiVersion);
    return {
      cells: served.definition.table.row(shown, now()),
      ...(format.rowObject === "None"
        ? { object: null }
        : { object: format.rowObject === "Object" ? shown : asMetadata(object) }),
    };
  }

  function tableHead(served: Served, metadata: unknown) {
    return {
      kind: "Table",
      apiVersion: "meta.k8s.io/v1",
      metadata,
      columnDefinitions: served.definition.table.columns,
    };
  }

  function table(served: Served, rows: readonly unknown[], metadata: unknown) {
    return { ...tableHead(served, metadata), rows };
  }

  function json(served: Served, live: Pick<LiveObject, "object" | "json">): string {
    if (live.object.apiVersion === served.apiVersion) return live.json;
    return JSON.stringify(inVersion(live.object, served.apiVersion));
  }

  /** In lists of built-in Go types, items do not name their kind; the list does. */
  function item(served: Served, live: LiveObject): string {
    const whole = json(served, live);
    if (served.definition.custom) return whole;
    const head = `{"apiVersion":${JSON.stringify(served.apiVersion)},"kind":${JSON.stringify(served.definition.kind)},`;
    if (whole.startsWith(head)) return `{${whole.slice(head.length)}`;
    const { apiVersion: _, kind: __, ...rest } = inVersion(live.object, served.apiVersion);
    return JSON.stringify(rest);
  }

  function text(document: unknown, format: Format): string {
    return inEncoding(JSON.stringify(document), format);
  }

  return {
    object(served, live, format) {
      switch (format.as) {
        case "table":
          return text(
            table(served, [row(served, live.object, format)], {
              resourceVersion: live.object.metadata.resourceVersion ?? "",
            }),
            format,
          );
        case "metadata":
          return text(asMetadata(live.object), format);
        case "object":
          return inEncoding(json(served, live), format);
      }
    },
    async list(served, items, metadata, format, turn) {
      const { definition, apiVersion } = served;
      switch (format.as) {
        case "table": {
          const rows = await inTurns(items, ({ object }) => JSON.stringify(row(served, object, format)), turn);
          return rows && inEncoding(listOf(tableHead(served, metadata), "rows", rows), format);
        }
        case "metadata": {
          const head = { kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata };
          const texts = await inTurns(items, ({ object }) => JSON.stringify(asMetadata(object)), turn);
          return texts && inEncoding(listOf(head, "items", texts), format);
        }
        case "object": {
          // Lists of custom objects are written without Go's types, and name a token that there is not.
          const head = {
            kind: definition.listKind,
            apiVersion,
            metadata: definition.custom ? { continue: "", ...metadata } : metadata,
          };
          // Objects are kept encoded: a list is their concatenation.
          const texts = await inTurns(items, (live) => item(served, live), turn);
          return texts && inEncoding(listOf(head, "items", texts), format);
        }
      }
    },
    bookmark(served, revision, format, annotations) {
      const metadata = {
        resourceVersion: String(revision),
        creationTimestamp: null,
        ...(annotations === undefined ? {} : { annotations }),
      };
      const object = { kind: served.definition.kind, apiVersion: served.apiVersion, metadata };
      if (format.as === "metadata")
        return JSON.stringify({ ...object, kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" });
      return JSON.stringify(format.as === "table" ? table(served, [], { resourceVersion: String(revision) }) : object);
    },
  };
}

/** Objects of a list that are shown in one turn, unless they have more characters than that. */
const objectsOfOneTurn = 500;
const charactersOfOneTurn = 4 * 1024 * 1024;
/** The same of what is made of them: a row of a table has its object, and cells of any length. */
const shownOfOneTurn = 2 * charactersOfOneTurn;
/** Half of the longest text that V8 makes. */
export const longestTextCharacters = 256 * 1024 * 1024;

/**
 * Texts of items: the values that they are made of would take several times their memory while the list waits for turns. A
 * list that takes several turns also waits before the first one, so that it holds nothing while it waits for its place.
 *
 * @returns `undefined`: they are longer than a text may be.
 */
export async function inTurns<T extends Sized>(
  items: readonly T[],
  show: (item: T) => string,
  turn: () => Promise<void>,
): Promise<string[] | undefined> {
  const portions = portionsOf(items);
  const shown: string[] = [];
  let [characters, sinceTurn] = [0, 0];
  for (const portion of portions) {
    if (portions.length > 1) await turn();
    sinceTurn = 0;
    for (const item of portion) {
      if (sinceTurn > shownOfOneTurn) {
        await turn();
        sinceTurn = 0;
      }
      const text = show(item);
      characters += text.length;
      if (characters > longestTextCharacters) return undefined;
      sinceTurn += text.length;
      shown.push(text);
    }
  }
  return shown;
}

/** Parts of a list that are each shown in one turn; an item that is longer than a part is one by itself. */
function portionsOf<T extends Sized>(items: readonly T[]): readonly (readonly T[])[] {
  const portions: T[][] = [];
  let portion: T[] = [];
  let characters = 0;
  for (const item of items) {
    const { length } = item.json;
    if (portion.length > 0 && (portion.length === objectsOfOneTurn || characters + length > charactersOfOneTurn)) {
      portions.push(portion);
      portion = [];
      characters = 0;
    }
    portion.push(item);
    characters += length;
  }
  if (portion.length > 0) portions.push(portion);
  return portions;
}

/** An object as it is kept. */
export interface Sized {
  readonly json: { readonly length: number };
}

/** A list whose items are texts already. @param head without them. */
function listOf(head: object, key: "items" | "rows", items: readonly string[]): string {
  return `${JSON.stringify(head).slice(0, -1)},"${key}":[${items.join(",")}]}`;
}

/**
 * Longer texts are answered as JSON, which is YAML too: to print a mebibyte as YAML takes the whole server a second, and fifty
 * times its memory.
 */
const yamlLimitCharacters = 64 * 1024;
/** The same for deeper ones: each line is indented by its depth. */
const yamlLimitDepth = 50;

function inEncoding(json: string, { encoding }: Format): string {
  if (encoding === "json" || json.length > yamlLimitCharacters) return json;
  const value = JSON.parse(json) as unknown;
  return jsonDepth(value) >= yamlLimitDepth ? json : stringify(value);
}

export function contentType(format: Format): string {
  return format.encoding === "yaml" ? "application/yaml" : "application/json";
}

/** One object as an answer. */
export function objectResponse(status: number, text: string, format: Format): HttpResponse {
  return {
    status,
    headers: { "content-type": contentType(format) },
    body: format.encoding === "yaml" ? text : `${text}\n`,
  };
}
