import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { withoutEnd } from "../../core/text/without-end.ts";
import type { HttpRequest, HttpResponse } from "../../ports/http.ts";
import type { Catalog } from "./schema/kinds/catalog.ts";
import { acceptedTypes } from "./http/representation.ts";
import type { ResourceDefinition } from "./schema/contract.ts";
import {
  aggregatedDiscovery,
  type DiscoveryForm,
  legacyGroupOf,
  legacyGroups,
  legacyResources,
  legacyVersions,
} from "./schema/kinds/discovery.ts";
import { openApiDocuments, type OpenApiDocuments } from "./schema/kinds/openapi.ts";
import { jsonResponse, methodNotAllowed } from "./schema/status.ts";

/** The documents that clients read first: discovery, OpenAPI, version, health. */
export interface ApiDocuments {
  /** `undefined`: no such document. */
  answer(request: HttpRequest, path: string): HttpResponse | undefined;
}

/** The Kubernetes release whose behaviour is served; clients compare it with their own. */
const version = {
  major: "1",
  minor: "32",
  gitVersion: "v1.32.4+mco",
  gitCommit: "0000000000000000000000000000000000000000",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "none",
  compiler: "none",
  platform: "linux/amd64",
};

/** Clients ask with an `@`, which is no media type: the real server answers with a dot, too. */
const openApiV2Type = {
  asked: "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
  answered: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
};
/**
 * OpenAPI v2 with no definitions in it. kubectl requests it when a file holds a List, whose items it then leaves to the
 * server to validate; without any v2 document it refuses the file. Message openapi.v2.Document of google/gnostic-models
 * openapiv2/OpenAPIv2.proto (main): 1 swagger, 2 info (1 title, 2 version), 8 paths, 9 definitions.
 */
const openApiV2 = {
  json: { swagger: "2.0", info: { title: "Kubernetes", version: "v1.32.4" }, paths: {}, definitions: {} },
  protobuf: Uint8Array.of(
    0x0a,
    3,
    ...ascii("2.0"),
    0x12,
    21,
    0x0a,
    10,
    ...ascii("Kubernetes"),
    0x12,
    7,
    ...ascii("v1.32.4"),
    0x42,
    0,
    0x4a,
    0,
  ),
};

function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

const healthPaths = ["/healthz", "/livez", "/readyz"];

/** Documents are made on demand, and again when the served kinds have changed. */
export function apiDocuments(catalog: Catalog): ApiDocuments {
  let generation = -1;
  let texts = new Map<string, { readonly text: string; readonly etag: string }>();
  let openapi: OpenApiDocuments | undefined;

  function definitions(): readonly ResourceDefinition[] {
    if (generation !== catalog.generation()) {
      generation = catalog.generation();
      texts = new Map();
      openapi = undefined;
    }
    return catalog.definitions();
  }

  function tagged(
    request: HttpRequest,
    key: string,
    contentType: string,
    make: (definitions: readonly ResourceDefinition[]) => unknown,
  ): HttpResponse | undefined {
    const served = definitions();
    let known = texts.get(key);
    if (known === undefined) {
      const document = make(served);
      if (document === undefined) return undefined;
      const text = typeof document === "string" ? document : `${JSON.stringify(document)}\n`;
      // Of the content, not of a count: clients keep it over restarts of this server.
      known = { text, etag: `"${bytesToHex(sha256(new TextEncoder().encode(text))).toUpperCase()}"` };
      texts.set(key, known);
    }
    const headers = { "content-type": contentType, etag: known.etag, vary: "Accept" };
    if (request.headers["if-none-match"] === known.etag) return { status: 304, headers, body: "" };
    return { status: 200, headers, body: known.text };
  }

  function discovery(request: HttpRequest, path: "core" | "groups"): HttpResponse | undefined {
    const form = discoveryForm(request.headers["accept"]);
    if (form !== "legacy") {
      const contentType = `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`;
      return tagged(request, `${path}|${form}`, contentType, (served) => aggregatedDiscovery(served, path, form));
    }
    // Nobody is told an address that another caller named.
    if (path === "core") return jsonResponse(200, legacyVersions(request.headers["host"] ?? "127.0.0.1"));
    return tagged(request, `${path}|legacy`, "application/json", legacyGroups);
  }

  return {
    answer(request, rawPath) {
      if (request.method !== "GET" && request.method !== "HEAD") return methodNotAllowed().response();
      const path = rawPath.length > 1 ? withoutEnd(rawPath, "/") : rawPath;
      const [, root, group, groupVersion, more] = path.split("/");
      if (healthPaths.some((one) => path === one || path.startsWith(`${one}/`)))
        return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: "ok" };
      if (path === "/version") return jsonResponse(200, version);
      if (path === "/")
        return jsonResponse(200, { paths: ["/api", "/api/v1", "/apis", ...healthPaths, "/openapi/v3", "/version"] });
      if (path === "/api") return discovery(request, "core");
      if (path === "/apis") return discovery(request, "groups");
      if (root === "api" && group !== undefined && groupVersion === undefined)
        return tagged(request, path, "application/json", (served) => legacyResources(served, "", group));
      if (root === "apis" && group !== undefined && more === undefined) {
        return tagged(request, path, "application/json", (served) =>
          groupVersion === undefined ? legacyGroupOf(served, group) : legacyResources(served, group, groupVersion),
        );
      }
      if (path === "/openapi/v2") {
        const wantsProtobuf = acceptedTypes(request.headers["accept"])[0]?.type === openApiV2Type.asked;
        return wantsProtobuf
          ? { status: 200, headers: { "content-type": openApiV2Type.answered }, body: openApiV2.protobuf }
          : jsonResponse(200, openApiV2.json);
      }
      if (path === "/openapi/v3" || path.startsWith("/openapi/v3/")) {
        const served = definitions();
        openapi ??= openApiDocuments(served);
        if (path === "/openapi/v3") return jsonResponse(200, openapi.index);
        const found = openapi;
        return tagged(request, path, "application/json", () => found.document(path.slice("/openapi/v3/".length))?.text);
      }
      return undefined;
    },
  };
}

/** The first form of discovery in the Accept header that is served. */
function discoveryForm(accept: string | undefined): DiscoveryForm | "legacy" {
  for (const { type, parameters } of acceptedTypes(accept)) {
    if (type !== "application/json" && type !== "*/*") continue;
    if (parameters["as"] === undefined) return "legacy";
    const asked = parameters["v"];
    if (
      parameters["as"] === "APIGroupDiscoveryList" &&
      parameters["g"] === "apidiscovery.k8s.io" &&
      (asked === "v2" || asked === "v2beta1")
    )
      return asked;
  }
  return "legacy";
}
