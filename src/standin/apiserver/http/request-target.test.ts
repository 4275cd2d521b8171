import { describe, expect, test } from "vitest";
import { parseTarget } from "./request-target.ts";

describe("parseTarget", () => {
  test.for([
    { line: "GET /api/v1/pods", is: "list /v1 pods" },
    { line: "GET /api/v1/namespaces/a/pods/b", is: "get /v1 pods a/b" },
    { line: "GET /api/v1/namespaces/a/pods?watch=1", is: "watch /v1 pods a/" },
    { line: "GET /api/v1/namespaces/a/pods/b?watch=1", is: "get /v1 pods a/b" },
    { line: "GET /api/v1/namespaces/a/pods?watch=false", is: "list /v1 pods a/" },
    { line: "POST /api/v1/namespaces/a/pods/b/eviction", is: "create /v1 pods/eviction a/b" },
    { line: "GET /api/v1/namespaces/a", is: "get /v1 namespaces a/a" },
    { line: "PUT /api/v1/namespaces/a/finalize", is: "update /v1 namespaces/finalize a/a" },
    { line: "GET /api/v1/namespaces/a/configmaps", is: "list /v1 configmaps a/" },
    { line: "DELETE /apis/apps/v1/namespaces/a/deployments", is: "deletecollection apps/v1 deployments a/" },
    { line: "PATCH /apis/apps/v1/namespaces/a/deployments/d/scale", is: "patch apps/v1 deployments/scale a/d" },
    { line: "GET /apis/apps/v1", is: "path /apis/apps/v1" },
    { line: "GET /api", is: "path /api" },
    { line: "GET /version?x=y", is: "path /version" },
    { line: "OPTIONS /api/v1/pods", is: "path /api/v1/pods" },
    { line: "GET /api/v1/pods/a/b/c", is: "path /api/v1/pods/a/b/c" },
    { line: "GET /api/v1/namespaces/a/configmaps/x%20y", is: "get /v1 configmaps a/x y" },
    { line: "GET /api/v1/%E0%A4%A", is: "refused 400" },
  ])("$line is $is", ({ line, is }) => {
    const [method = "", target = ""] = line.split(" ");
    const parsed = parseTarget(method, target);
    if (!("form" in parsed)) expect(`refused ${parsed.code}`).toBe(is);
    else if (parsed.form === "path") expect(`path ${parsed.path}`).toBe(is);
    else {
      const where = parsed.namespace === "" && parsed.name === "" ? "" : ` ${parsed.namespace}/${parsed.name}`;
      expect(
        `${parsed.verb} ${parsed.group}/${parsed.version} ${parsed.resource}${parsed.subresource === "" ? "" : `/${parsed.subresource}`}${where}`,
      ).toBe(is);
    }
  });
});
