import { describe, expect, test } from "vitest";
import { silentLogger } from "../ports/logger.ts";
import { admissionHandler, admissionPath } from "./admission-handler.ts";

const handle = admissionHandler({ log: silentLogger });
interface Answer {
  readonly uid: string;
  readonly allowed: boolean;
  readonly warnings?: readonly string[];
  readonly status?: { readonly message: string; readonly code: number; readonly details: { readonly causes: readonly { readonly field: string; readonly message: string }[] } };
}

async function send(body: unknown, target = `${admissionPath}?timeout=5s`, method = "POST") {
  const response = await handle({ method, target, headers: {}, body: typeof body === "string" ? body : JSON.stringify(body) }, undefined, new AbortController().signal);
  return { status: response.status, text: typeof response.body === "string" ? response.body : "" };
}

async function review(kind: string, object: object, oldObject?: object): Promise<Answer> {
  const { status, text } = await send({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request: { uid: "u", kind: { group: "machineconfiguration.openshift.io", kind }, object, oldObject: oldObject ?? null } });
  expect(status).toBe(200);
  return (JSON.parse(text) as { response: Answer }).response;
}

const config = (spec: object, metadata: object = {}) => ({ metadata: { name: "99-x", labels: { "machineconfiguration.openshift.io/role": "worker" }, ...metadata }, spec });
const ignition = (storage: object) => ({ config: { ignition: { version: "3.4.0" }, storage } });

describe("admission of MachineConfigs", () => {
  test("a good one passes without a word", async () => {
    expect(await review("MachineConfig", config(ignition({ files: [{ path: "/etc/a", mode: 420, contents: { source: "data:,x" } }] })))).toEqual({ uid: "u", allowed: true });
  });

  test("an invalid one is refused with field, reason and remedy", async () => {
    const answer = await review("MachineConfig", config(ignition({ files: [{ path: "etc/relative" }] })));
    expect(answer.allowed).toBe(false);
    expect(answer.status).toMatchObject({ code: 422, reason: "Invalid" });
    expect(answer.status?.message).toMatch(/^MachineConfig 99-x is invalid: spec\.config\.storage\.files\[0\]\.path: /);
    expect(answer.status?.details).toMatchObject({ kind: "MachineConfig", name: "99-x" });
    expect(answer.status?.details.causes[0]?.field).toBe("spec.config.storage.files[0].path");
  });

  test("what renders and then does not do what one expects is warned of", async () => {
    const answer = await review("MachineConfig", config(ignition({ files: [{ path: "/etc/a", append: [{ source: "data:,x" }] }] })));
    expect(answer.allowed).toBe(true);
    expect(answer.warnings?.[0]).toContain("spec.config.storage.files[0].append");
  });

  test("an invalid one that was stored before may still be labelled and deleted, but not get another invalid spec", async () => {
    const bad = config({ kernelType: "fast" });
    expect((await review("MachineConfig", config({ kernelType: "fast" }, { labels: { a: "b" } }), bad)).allowed).toBe(true);
    expect((await review("MachineConfig", config({ kernelType: "faster" }), bad)).allowed).toBe(false);
  });
});

describe("admission of pools", () => {
  const pool = (spec: object) => ({ metadata: { name: "infra" }, spec });
  test("empty selectors are refused", async () => {
    const answer = await review("MachineConfigPool", pool({ machineConfigSelector: {}, nodeSelector: { matchLabels: {} } }));
    expect(answer.status?.details.causes.map(({ field }) => field)).toEqual(["spec.machineConfigSelector", "spec.nodeSelector"]);
  });
  test("missing ones are warned of", async () => {
    const answer = await review("MachineConfigPool", pool({}));
    expect([answer.allowed, answer.warnings?.length]).toEqual([true, 2]);
  });
});

test.for([
  { title: "other paths are not found", body: {}, target: "/elsewhere", method: "POST", status: 404 },
  { title: "reviews are posted", body: "", target: admissionPath, method: "GET", status: 405 },
  { title: "what is no JSON is refused", body: "{", target: admissionPath, method: "POST", status: 400 },
  { title: "what is no review is refused", body: { apiVersion: "v1" }, target: admissionPath, method: "POST", status: 400 },
  { title: "a probe is answered", body: "", target: "/readyz", method: "GET", status: 200 },
])("$title", async ({ body, target, method, status }) => {
  expect((await send(body, target, method)).status).toBe(status);
});
