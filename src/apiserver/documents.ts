import type { HttpRequest, HttpResponse } from "../ports/http.ts";
import type { Catalog } from "./catalog.ts";
import { jsonResponse } from "./status.ts";
export interface ApiDocuments { answer(request: HttpRequest, path: string): HttpResponse | undefined }
export function apiDocuments(_catalog: Catalog): ApiDocuments {
  return { answer(_request, path) {
    if (path === "/healthz") return { status: 200, headers: {}, body: "ok" };
    if (path === "/version") return jsonResponse(200, { major: "1", minor: "32" });
    return undefined;
  } };
}
