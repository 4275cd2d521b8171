import { describe, test } from "vitest";
import { Api } from "./api-target.ts";
import { contractCases } from "./cases.ts";
import { expect } from "vitest";
import { inProcessTarget } from "./in-process-target.ts";

describe("the API server in one process, on the memory store", () => {
  const target = inProcessTarget();
  let count = 0;
  test.for([...contractCases])("$title", async ({ run }) => {
    const api = new Api(target);
    const namespace = `case-${count++}`;
    const made = await api.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    expect(made.status, made.text).toBe(201);
    await run(api, namespace);
  });
});
