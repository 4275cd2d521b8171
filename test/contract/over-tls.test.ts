import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Api } from "./api-target.ts";
import { contractCases } from "./cases.ts";
import { tlsTarget, type TlsTarget } from "./tls-target.ts";

describe("the API server over TLS, on SQLite", () => {
  let target: TlsTarget;
  let count = 0;
  beforeAll(async () => {
    target = await tlsTarget();
  });
  afterAll(() => target.close());

  test.for([...contractCases])("$title", async ({ run }) => {
    const api = new Api(target);
    const namespace = `case-${count++}`;
    const made = await api.post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    expect(made.status, made.text).toBe(201);
    await run(api, namespace);
  });
});
