import { describe, expect, test } from "vitest";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import {
  type BindingStay,
  type BoundNode,
  type JoinQuestion,
  bindingStay,
  othersIn,
  placeFor,
  reservedFor,
} from "./join-places.ts";

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

test("a name that a token of the same pool holds is taken with its own place alone [attack-joining-20]", () => {
  const held = { ...question, tokens: [token({ pool: "worker", node: "w0" })], places: [place("any")] };
  expect(placeFor(held)).toBeUndefined();
  expect(placeFor({ ...held, name: "w1" })?.metadata.name).toBe("any");
  expect(placeFor({ ...held, places: [place("any"), place("own", { node: "w0" })] })?.metadata.name).toBe("own");
  const over = token({ pool: "worker", node: "w0", expiresAt: "2026-01-01T11:00:00Z" });
  expect(placeFor({ ...held, tokens: [over] })?.metadata.name).toBe("any");
  expect(reservedFor({ ...held, pool: "worker" })).toBeUndefined();
});

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
    {
      title: "whose use was given back is none",
      more: {
        places: [place("a")],
        tokens: [{ ...token({ pool: "worker" }), status: { uses: 0, withdrawnPlaces: ["a"] } }],
      },
      takes: undefined,
    },
    {
      title: "reserved for the name comes first",
      more: { places: [place("a"), place("b", { node: "w0" })] },
      takes: "b",
    },
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

test("names and addresses of Services, of the API server and of other nodes have other owners", () => {
  const owners = {
    nodes: [
      { name: "w0", addresses: ["10.0.0.1"] },
      { name: "w1", addresses: ["10.0.0.2", "w1.example"] },
    ],
    bindings: [binding("w0", { addresses: ["10.0.0.1"] }), binding("w2", { addresses: ["10.0.0.3"] })],
    services: new Map([["10.96.0.1", "default/kubernetes"]]),
    externalAddresses: new Map<string, string>(),
    own: [],
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

test("a host belongs to its owner however its name is written [attack-joining-5]", () => {
  const owners = {
    nodes: [{ name: "w1", addresses: ["w1.example"] }],
    bindings: [],
    services: new Map<string, string>(),
    externalAddresses: new Map<string, string>(),
    own: [],
    apiServer: ["api-int.example.com"],
  };
  expect(othersIn("api-int", ["api-int.EXAMPLE.com", "api-int.example.com.", "W1.example", "w1."], owners)).toEqual([
    "api-int.EXAMPLE.com is the API server",
    "api-int.example.com. is the API server",
    "W1.example belongs to the node w1 as well",
    "w1. belongs to the node w1 as well",
  ]);
});

describe("the claim of another", () => {
  const mine = "10.0.0.1";
  const owners = {
    own: [mine],
    nodes: [
      { name: "w0", addresses: [mine, "w0"] },
      { name: "w1", addresses: ["10.0.0.2", "w0", mine, "10.0.0.7"] },
      { name: "m0", addresses: ["10.0.0.5"] },
    ],
    bindings: [binding("w0", { addresses: [mine] }), binding("w1", { addresses: ["10.0.0.2"] })],
    services: new Map<string, string>(),
    externalAddresses: new Map([
      [mine, "shop/front"],
      ["10.0.0.8", "shop/front"],
    ]),
    apiServer: [],
  };

  test("takes no name and no recorded address from a node [attack-joining-6]", () => {
    expect(othersIn("w0", ["w0", mine], owners)).toEqual([]);
    expect(othersIn("w0", ["10.0.0.5", "10.0.0.7", "10.0.0.8"], owners)).toEqual([
      "10.0.0.5 belongs to the node m0 as well",
      "10.0.0.7 belongs to the node w1 as well",
      "10.0.0.8 is an address of the Service shop/front",
    ]);
  });

  test("counts if the suite recorded it, or knows nothing else of that node [attack-joining-7]", () => {
    const recorded = [binding("w1", { addresses: [mine] })];
    expect(othersIn("w0", [mine], { ...owners, bindings: recorded })).toEqual([
      `${mine} belongs to the node w1 as well`,
    ]);
    expect(othersIn("w0", [mine], { ...owners, bindings: [] })).toEqual([`${mine} belongs to the node w1 as well`]);
  });

  test("of a machine that joined later from the same address takes it from no node [attack-joining-15]", () => {
    const since = (name: string, creationTimestamp: string): NodeBinding => {
      const one = binding(name, { addresses: [mine] });
      return { ...one, metadata: { ...one.metadata, creationTimestamp } };
    };
    const bindings = [since("w0", "2026-01-01T10:00:00Z"), since("w9", "2026-01-01T11:00:00Z")];
    expect(othersIn("w0", ["w0", mine], { ...owners, nodes: [], bindings })).toEqual([]);
    expect(othersIn("w9", ["w9", mine], { ...owners, nodes: [], bindings })).toEqual([
      `${mine} belongs to the node w0 as well`,
    ]);
    // Its name is still its own.
    expect(othersIn("w0", ["w9"], { ...owners, bindings })).toEqual(["w9 belongs to the node w9 as well"]);
  });

  test("costs no comparison of each name with each node [attack-joining-8]", () => {
    const nodes = Array.from({ length: 2000 }, (_, index) => ({
      name: `n${index}`,
      addresses: [`n${index}.example`, `10.1.${index >> 8}.${index & 255}`],
    }));
    let reads = 0;
    const counted = nodes.map(({ name, addresses }) => ({
      name,
      get addresses() {
        reads += 1;
        return addresses;
      },
    }));
    othersIn(
      "w0",
      Array.from({ length: 100 }, (_, index) => `x${index}.example`),
      { ...owners, nodes: counted },
    );
    expect(reads).toBeLessThanOrEqual(2 * nodes.length);
  });
});

const bound = (uid: string, more: Partial<BoundNode> = {}): BoundNode => ({
  uid,
  pool: undefined,
  returns: undefined,
  ...more,
});
const released = { releasedAt: "2026-01-01T11:00:00Z", lastPool: "worker" };
const role = { role: "" };

describe("a binding", () => {
  test.for<{ title: string; of: NodeBinding; node: BoundNode | undefined; is: BindingStay }>([
    {
      title: "waits for its machine",
      of: binding("w0"),
      node: undefined,
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "notes the Node that its machine became",
      of: binding("w0"),
      node: bound("u1"),
      is: { verdict: "registered", nodeUID: "u1" },
    },
    {
      title: "stays with its Node, whatever ends",
      of: binding("w0", { nodeUID: "u1", expiresAt: "2025-01-01T00:00:00Z" }),
      node: bound("u1"),
      is: { verdict: "stays", until: undefined },
    },
    {
      title: "notes the pool that its Node is in",
      of: binding("w0", { nodeUID: "u1" }),
      node: bound("u1", { pool: "worker" }),
      is: { verdict: "moved", lastPool: "worker" },
    },
    {
      title: "notes that its Node is in another pool",
      of: binding("w0", { nodeUID: "u1", lastPool: "worker" }),
      node: bound("u1", { pool: "infra" }),
      is: { verdict: "moved", lastPool: "infra" },
    },
    {
      title: "notes that its Node is in no pool any more",
      of: binding("w0", { nodeUID: "u1", lastPool: "worker" }),
      node: bound("u1", { returns: role }),
      is: { verdict: "moved", lastPool: "" },
    },
    {
      title: "is released with its Node",
      of: binding("w0", { nodeUID: "u1" }),
      node: undefined,
      is: { verdict: "released" },
    },
    {
      title: "is released if another Node has the name",
      of: binding("w0", { nodeUID: "u1" }),
      node: bound("u2", { pool: "worker" }),
      is: { verdict: "released" },
    },
    {
      title: "is released when an administrator says so, with its Node there",
      of: binding("w0", { nodeUID: "u", lastPool: "worker", revoked: true }),
      node: { uid: "u", pool: "worker", returns: undefined },
      is: { verdict: "released" },
    },
    {
      title: "that an administrator released is not its Node's again",
      of: binding("w0", { ...released, revoked: true }),
      node: { uid: "u", pool: "worker", returns: undefined },
      is: { verdict: "stays", until: Date.parse(binding("w0").spec.expiresAt) },
    },
    {
      title: "that an administrator released gives no labels back",
      of: binding("w0", { ...released, revoked: true }),
      node: { uid: "u", pool: undefined, returns: { a: "" } },
      is: { verdict: "stays", until: Date.parse(binding("w0").spec.expiresAt) },
    },
    {
      title: "that is released stays while its certificate is good",
      of: binding("w0", released),
      node: undefined,
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "that is released is removed a week later",
      of: binding("w0", { ...released, releasedAt: "2025-12-25T12:00:00Z", expiresAt: "2026-12-01T00:00:00Z" }),
      node: bound("u2", { returns: role }),
      is: { verdict: "goes" },
    },
    {
      title: "that is released is removed when its certificate has expired",
      of: binding("w0", { ...released, expiresAt: "2026-01-01T12:00:00Z" }),
      node: bound("u2", { returns: role }),
      is: { verdict: "goes" },
    },
    {
      title: "gives the labels of its pool back to the machine that returns",
      of: binding("w0", released),
      node: bound("u2", { returns: role }),
      is: { verdict: "returns", labels: role },
    },
    {
      title: "waits for the labels that only an administrator gives",
      of: binding("w0", released),
      node: bound("u2"),
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "notes the next Node of its machine once that has its labels",
      of: binding("w0", released),
      node: bound("u2", { pool: "worker" }),
      is: { verdict: "registered", nodeUID: "u2" },
    },
    {
      title: "is removed when its certificate expires without a Node",
      of: binding("w0", { expiresAt: "2026-01-01T12:00:00Z" }),
      node: undefined,
      is: { verdict: "goes" },
    },
  ])("$title", ({ of, node, is }) => {
    expect(bindingStay(of, node, now)).toEqual(is);
  });
});
