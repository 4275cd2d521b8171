import { describe, expect, test } from "vitest";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { type JoinQuestion, bindingStay, othersIn, placeFor, reservedFor } from "./join-places.ts";

const now = Date.parse("2026-01-01T12:00:00Z");
const later = "2026-01-01T12:30:00Z";
const place = (name: string, spec: Partial<JoinPlace["spec"]> = {}): JoinPlace =>
  ({ metadata: { name }, spec: { pool: "worker", expiresAt: later, ...spec } }) as JoinPlace;
const binding = (name: string, spec: Partial<NodeBinding["spec"]> = {}): NodeBinding =>
  ({
    metadata: { name },
    spec: { pool: "worker", publicKey: "a".repeat(64), expiresAt: later, ...spec },
  }) as NodeBinding;
const token = (spec: Partial<ProvisioningToken["spec"]>): ProvisioningToken =>
  ({ metadata: { name: "t" }, spec: { pool: "master", tokenHash: "", ...spec } }) as ProvisioningToken;
const question: JoinQuestion = {
  name: "w0",
  pool: "worker",
  places: [],
  tokens: [],
  bindings: [],
  taken: new Set(),
  now,
};

describe("a place", () => {
  test.for<{ title: string; more: Partial<JoinQuestion>; takes: string | undefined }>([
    { title: "is needed", more: {}, takes: undefined },
    { title: "of the pool is taken", more: { places: [place("a")] }, takes: "a" },
    { title: "of another pool is not", more: { places: [place("a", { pool: "master" })] }, takes: undefined },
    {
      title: "that ends first is taken first",
      more: { places: [place("a"), place("b", { expiresAt: "2026-01-01T12:10:00Z" })] },
      takes: "b",
    },
    {
      title: "that is over is none",
      more: { places: [place("a", { expiresAt: "2026-01-01T12:00:00Z" })] },
      takes: undefined,
    },
    {
      title: "that a binding took is none",
      more: { places: [place("a")], bindings: [binding("w1", { place: "a" })] },
      takes: undefined,
    },
    {
      title: "that was taken a moment ago is none",
      more: { places: [place("a")], taken: new Set(["a"]) },
      takes: undefined,
    },
    { title: "held for the name comes first", more: { places: [place("a"), place("b", { node: "w0" })] }, takes: "b" },
    { title: "held for another name is none", more: { places: [place("b", { node: "w1" })] }, takes: undefined },
  ])("$title", ({ more, takes }) => {
    expect(placeFor({ ...question, ...more })?.metadata.name).toBe(takes);
  });
});

describe("a name is held", () => {
  test.for<{ title: string; more: Partial<JoinQuestion>; by: string | undefined }>([
    { title: "by nobody", more: { tokens: [token({})] }, by: undefined },
    { title: "by a token that names it", more: { tokens: [token({ node: "w0" })] }, by: "master" },
    {
      title: "not by one that has ended",
      more: { tokens: [token({ node: "w0", expiresAt: "2026-01-01T11:00:00Z" })] },
      by: undefined,
    },
    { title: "by a place that names it", more: { places: [place("a", { pool: "master", node: "w0" })] }, by: "master" },
    { title: "not against its own pool", more: { tokens: [token({ node: "w0", pool: "worker" })] }, by: undefined },
  ])("$title", ({ more, by }) => {
    expect(reservedFor({ ...question, ...more })).toBe(by);
  });
});

test("names and addresses of Services, of the API server and of other nodes belong to somebody else", () => {
  const owners = {
    nodes: [
      { name: "w0", addresses: ["10.0.0.1"] },
      { name: "w1", addresses: ["10.0.0.2", "w1.example"] },
    ],
    bindings: [binding("w0", { addresses: ["10.0.0.1"] }), binding("w2", { addresses: ["10.0.0.3"] })],
    services: new Map([["10.96.0.1", "default/kubernetes"]]),
    apiServer: ["api.example", "10.0.0.100"],
  };
  expect(othersIn("w0", ["w0", "10.0.0.1", "10.0.0.9"], owners)).toEqual([]);
  expect(othersIn("w0", ["10.96.0.1", "10.0.0.100", "w1", "w1.example", "10.0.0.2", "10.0.0.3"], owners)).toEqual([
    "10.96.0.1 is an address of the Service default/kubernetes",
    "10.0.0.100 is the API server",
    "w1 belongs to the node w1 as well",
    "w1.example belongs to the node w1 as well",
    "10.0.0.2 belongs to the node w1 as well",
    "10.0.0.3 belongs to the node w2 as well",
  ]);
});

describe("a binding", () => {
  test.for([
    {
      title: "waits for its machine",
      of: binding("w0"),
      node: undefined,
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "notes the Node that its machine became",
      of: binding("w0"),
      node: "u1",
      is: { verdict: "registered", nodeUID: "u1" },
    },
    {
      title: "stays with its Node, whatever ends",
      of: binding("w0", { nodeUID: "u1", expiresAt: "2025-01-01T00:00:00Z" }),
      node: "u1",
      is: { verdict: "stays", until: undefined },
    },
    { title: "goes with its Node", of: binding("w0", { nodeUID: "u1" }), node: undefined, is: { verdict: "goes" } },
    {
      title: "goes where another Node has the name",
      of: binding("w0", { nodeUID: "u1" }),
      node: "u2",
      is: { verdict: "goes" },
    },
    {
      title: "goes when its certificate ended and nobody came",
      of: binding("w0", { expiresAt: "2026-01-01T12:00:00Z" }),
      node: undefined,
      is: { verdict: "goes" },
    },
  ])("$title", ({ of, node, is }) => {
    expect(bindingStay(of, node, now)).toEqual(is);
  });
});
