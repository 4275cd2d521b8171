import { describe, expect, test } from "vitest";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import {
  type AddressOwners,
  type BindingStay,
  type BoundNode,
  type FormerMachine,
  type JoinQuestion,
  bindingStay,
  foreignHosts,
  formerMachine,
  heldFor,
  placeOf,
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
const key = "a".repeat(64);
const credential = "JTI=own";
const question: JoinQuestion = {
  name: "w0",
  pool: "worker",
  publicKey: key,
  credential,
  places: [],
  tokens: [],
  binding: undefined,
  now,
};

/** A place by which the machine has joined. */
const took = (name: string): JoinPlace => ({
  ...place(name, { credential }),
  status: { machine: "w0", publicKey: key, joinedAt: "2026-01-01T11:45:00Z" },
});

describe("a machine has the place of the credential that it was given [join-places-1]", () => {
  test.for<{ title: string; more: Partial<JoinQuestion>; is: string }>([
    { title: "and no other", more: { places: [place("a", { credential: "JTI=other" }), place("b")] }, is: "none" },
    { title: "whoever asked first", more: { places: [place("a", { credential })] }, is: "free a" },
    { title: "in its own pool", more: { places: [place("a", { credential, pool: "master" })] }, is: "none" },
    {
      title: "for an hour",
      more: { places: [place("a", { credential, expiresAt: "2026-01-01T12:00:00Z" })] },
      is: "none",
    },
    {
      title: "which the API server has to record",
      more: { credential: undefined, places: [place("a", { credential })] },
      is: "unrecorded",
    },
    {
      title: "also when it asks again with its key",
      more: { places: [{ ...place("a", { credential }), status: { machine: "w0", publicKey: key } }] },
      is: "free a",
    },
    {
      title: "but not once an administrator has released its name",
      more: { places: [took("a")], binding: binding("w0", { place: "a", publicKey: "c".repeat(64), revoked: true }) },
      is: "spent w0",
    },
    {
      title: "nor once it has asked again by another place and an administrator has released its name",
      more: { places: [took("a")], binding: binding("w0", { place: "b", revoked: true }) },
      is: "spent w0",
    },
    {
      title: "nor once another machine has its name",
      more: { places: [took("a")], binding: binding("w0", { place: "b", publicKey: "c".repeat(64), joinedAt: later }) },
      is: "spent w0",
    },
    {
      title: "nor once it has joined by another place",
      more: { places: [took("a")], binding: binding("w0", { place: "b", joinedAt: later }) },
      is: "spent w0",
    },
    {
      title: "but after a process that ended before it bound the name, whoever had that before",
      more: {
        places: [took("a")],
        binding: binding("w0", {
          place: "b",
          publicKey: "c".repeat(64),
          revoked: true,
          joinedAt: "2026-01-01T11:00:00Z",
        }),
      },
      is: "free a",
    },
    {
      title: "and when it asks again while it has its name",
      more: { places: [took("a")], binding: binding("w0", { place: "a", joinedAt: later }) },
      is: "free a",
    },
    {
      title: "and by a configuration that it is served after a release",
      more: { places: [place("b", { credential })], binding: binding("w0", { place: "a", revoked: true }) },
      is: "free b",
    },
    {
      title: "but not with another key",
      more: { places: [{ ...place("a", { credential }), status: { machine: "w0", publicKey: "b".repeat(64) } }] },
      is: "spent w0",
    },
    {
      title: "nor by another name",
      more: { places: [{ ...place("a", { credential }), status: { machine: "w1", publicKey: key } }] },
      is: "spent w1",
    },
    { title: "for the name of its token", more: { places: [place("a", { credential, node: "w0" })] }, is: "held a" },
    {
      title: "and not for another name",
      more: { places: [place("a", { credential, node: "w1" })] },
      is: "otherName w1",
    },
  ])("$title", ({ more, is }) => {
    const found = placeOf({ ...question, ...more });
    const [verdict, what] =
      found.verdict === "free"
        ? [found.isHeld ? "held" : "free", found.place.metadata.name]
        : [found.verdict, "machine" in found ? found.machine : undefined];
    expect([verdict, ...(what === undefined ? [] : [what])].join(" ")).toBe(is);
  });
});

describe("a name is held", () => {
  test.for<{ title: string; more: Partial<JoinQuestion>; isHeld?: boolean; by: string | undefined }>([
    { title: "by nobody", more: { tokens: [token({})] }, by: undefined },
    { title: "by a token that names it", more: { tokens: [token({ node: "w0" })] }, by: "master" },
    {
      title: "also within its own pool [attack-joining-20]",
      more: { tokens: [token({ pool: "worker", node: "w0" })] },
      by: "worker",
    },
    {
      title: "not against the machine of that token",
      more: { tokens: [token({ pool: "worker", node: "w0" })] },
      isHeld: true,
      by: undefined,
    },
    {
      title: "not by one that has ended",
      more: { tokens: [token({ node: "w0", expiresAt: "2026-01-01T11:00:00Z" })] },
      by: undefined,
    },
    { title: "by a place that names it", more: { places: [place("a", { pool: "master", node: "w0" })] }, by: "master" },
    {
      title: "not by a place whose machine has joined",
      more: {
        places: [{ ...place("a", { pool: "master", node: "w0" }), status: { machine: "w0", publicKey: key } }],
      },
      by: undefined,
    },
  ])("$title", ({ more, isHeld = false, by }) => {
    expect(heldFor({ ...question, ...more }, isHeld)).toBe(by);
  });
});

const cluster = (hosts: Readonly<Record<string, string>>) => new Map(Object.entries(hosts));

test("names and addresses of Services, of the API server and of other nodes have other owners", () => {
  const owners: AddressOwners = {
    nodes: [
      { name: "w0", addresses: ["10.0.0.1"] },
      { name: "w1", addresses: ["10.0.0.2", "w1.example"] },
    ],
    bindings: [binding("w0", { addresses: ["10.0.0.1"] }), binding("w2", { addresses: ["10.0.0.3"] })],
    cluster: cluster({ "10.96.0.1": "is an address of the Service default/kubernetes" }),
    apiServer: cluster({ "api.example": "is the API server", "10.0.0.100": "is the API server" }),
    external: new Map(),
    own: [],
  };
  expect(foreignHosts("w0", ["w0", "10.0.0.1", "10.0.0.9"], owners)).toEqual({
    others: [],
    claimed: [],
    contested: [],
  });
  expect(foreignHosts("w0", ["10.96.0.1", "10.0.0.100", "w1", "w1.example", "10.0.0.2", "10.0.0.3"], owners)).toEqual({
    others: [
      "10.96.0.1 is an address of the Service default/kubernetes",
      "10.0.0.100 is the API server",
      "w1 belongs to the node w1 as well",
      "10.0.0.3 belongs to the node w2 as well",
    ],
    claimed: ["w1.example is reported by the node w1 as well", "10.0.0.2 is reported by the node w1 as well"],
    contested: [],
  });
});

test("a host belongs to its owner however it is written [attack-joining-5]", () => {
  const owners: AddressOwners = {
    nodes: [{ name: "w1", addresses: [] }],
    bindings: [binding("w2", { addresses: ["fd00::2", "10.0.0.2"] })],
    cluster: new Map(),
    apiServer: cluster({ "api-int.example.com": "is the API server", "10.0.0.100": "is the API server" }),
    external: new Map(),
    own: [],
  };
  const asked = [
    "api-int.EXAMPLE.com",
    "api-int.example.com.",
    "::ffff:10.0.0.100",
    "W1.",
    "FD00:0:0:0:0:0:0:2",
    "::ffff:a00:2",
  ];
  expect(foreignHosts("w0", asked, owners).others).toEqual([
    "api-int.EXAMPLE.com is the API server",
    "api-int.example.com. is the API server",
    "::ffff:10.0.0.100 is the API server",
    "W1. belongs to the node w1 as well",
    "FD00:0:0:0:0:0:0:2 belongs to the node w2 as well",
    "::ffff:a00:2 belongs to the node w2 as well",
  ]);
});

describe("the claim of another", () => {
  const mine = "10.0.0.1";
  const owners: AddressOwners = {
    own: [mine],
    nodes: [
      { name: "w0", addresses: [mine, "w0"] },
      { name: "w1", addresses: ["10.0.0.2", "w0", mine, "10.0.0.7"] },
      { name: "m0", addresses: ["10.0.0.5"] },
    ],
    bindings: [binding("w0", { addresses: [mine] }), binding("w1", { addresses: ["10.0.0.2"] })],
    cluster: new Map(),
    apiServer: new Map(),
    external: cluster({
      [mine]: "is an address of the Service shop/front",
      "10.0.0.8": "is an address of the Service shop/front",
    }),
  };

  test("takes no name and no recorded address from a node [attack-joining-6]", () => {
    expect(foreignHosts("w0", ["w0", mine], owners)).toEqual({ others: [], claimed: [], contested: [] });
  });

  test("of an address that nobody recorded makes a request wait, and denies none [attack-joining-7]", () => {
    expect(foreignHosts("w0", ["10.0.0.5", "10.0.0.7", "10.0.0.8"], owners)).toEqual({
      others: ["10.0.0.8 is an address of the Service shop/front"],
      claimed: ["10.0.0.5 is reported by the node m0 as well", "10.0.0.7 is reported by the node w1 as well"],
      contested: [],
    });
    const recorded = [binding("w1", { addresses: [mine] })];
    expect(foreignHosts("w0", [mine], { ...owners, own: [], external: new Map(), bindings: recorded }).others).toEqual([
      `${mine} belongs to the node w1 as well`,
    ]);
  });

  test("of a machine that joined later from the same address takes it from no node [attack-joining-15]", () => {
    const since = (name: string, creationTimestamp: string): NodeBinding => {
      const one = binding(name, { addresses: [mine] });
      return { ...one, metadata: { ...one.metadata, creationTimestamp } };
    };
    const bindings = [since("w0", "2026-01-01T10:00:00Z"), since("w9", "2026-01-01T11:00:00Z")];
    expect(foreignHosts("w0", ["w0", mine], { ...owners, nodes: [], bindings }).others).toEqual([]);
    expect(foreignHosts("w9", ["w9", mine], { ...owners, nodes: [], bindings }).others).toEqual([
      `${mine} belongs to the node w0 as well`,
    ]);
    // Its name is still its own.
    expect(foreignHosts("w0", ["w9"], { ...owners, bindings }).others).toEqual(["w9 belongs to the node w9 as well"]);
  });

  test("whose name another machine had before is as old as its join [attack-joining-35]", () => {
    const bindings = [
      binding("w0", { addresses: [mine], joinedAt: "2026-01-01T10:00:00Z" }),
      binding("w9", { addresses: [mine], joinedAt: "2026-01-01T11:00:00Z" }),
    ].map((one) => ({ ...one, metadata: { ...one.metadata, creationTimestamp: "2026-01-01T09:00:00Z" } }));
    expect(foreignHosts("w0", ["w0", mine], { ...owners, nodes: [], bindings }).others).toEqual([]);
  });

  test("of the API server does not deny a recorded address, and does not grant it [attack-joining-42]", () => {
    const apiServer = cluster({
      [mine]: "is the API server",
      "cp.example.com": "is the API server",
      w0: "is the API server",
    });
    const record = { ...owners, own: [mine, "cp.example.com"], apiServer };
    expect(foreignHosts("w0", ["::ffff:10.0.0.1"], record)).toEqual({
      others: [],
      claimed: [],
      contested: ["::ffff:10.0.0.1 is the API server"],
    });
    // A name is one that the machine chose, or its token: it is denied, and so is an address that was not recorded.
    expect(foreignHosts("w0", ["w0", "cp.example.com"], record).others).toHaveLength(2);
    expect(foreignHosts("w0", [mine], { ...record, own: [] }).others).toEqual([`${mine} is the API server`]);
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
    foreignHosts(
      "w0",
      Array.from({ length: 100 }, (_, index) => `x${index}.example`),
      { ...owners, nodes: counted },
    );
    expect(reads).toBeLessThanOrEqual(2 * nodes.length);
  });
});

describe("the machine that had a name before [attack-joining-45]", () => {
  const soon = "2026-01-01T12:00:01Z";
  const over = "2026-01-01T11:59:59Z";
  test.for<{ title: string; of: NodeBinding | undefined; is: FormerMachine | undefined }>([
    { title: "is none", of: undefined, is: undefined },
    { title: "was of the same pool", of: binding("w0", { pool: "master" }), is: undefined },
    { title: "was of another pool", of: binding("w0", { expiresAt: soon }), is: { pool: "worker", until: soon } },
    {
      title: "was of another pool and its Node was deleted",
      of: binding("w0", { releasedAt: over }),
      is: { pool: "worker", until: later },
    },
    { title: "has no certificate any more", of: binding("w0", { expiresAt: over }), is: undefined },
    {
      title: "followed another one that has one",
      of: binding("w0", { expiresAt: over, formerExpiresAt: soon }),
      is: { pool: "worker", until: soon },
    },
  ])("$title", ({ of, is }) => expect(formerMachine(of, "master", now)).toEqual(is));
});

const bound = (uid: string, more: Partial<BoundNode> = {}): BoundNode => ({
  uid,
  createdAt: "2026-01-01T11:59:00Z",
  pool: undefined,
  joins: undefined,
  returns: undefined,
  ...more,
});
const released = { releasedAt: "2026-01-01T11:00:00Z", lastPool: "worker" };
const role = { role: "" };

describe("a binding", () => {
  test.for<{
    title: string;
    of: NodeBinding;
    node: BoundNode | undefined;
    isCrowded?: boolean;
    is: BindingStay;
  }>([
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
      title: "notes that Node after its end, too",
      of: binding("w0", { expiresAt: "2026-01-01T12:00:00Z" }),
      node: bound("u1"),
      is: { verdict: "registered", nodeUID: "u1" },
    },
    {
      title: "notes no Node that appeared after its end",
      of: binding("w0", { expiresAt: "2026-01-01T11:59:00Z" }),
      node: bound("u1"),
      is: { verdict: "goes" },
    },
    {
      title: "stays with its Node, whatever ends",
      of: binding("w0", { nodeUID: "u1", expiresAt: "2025-01-01T00:00:00Z" }),
      node: bound("u1"),
      is: { verdict: "stays", until: undefined },
    },
    {
      title: "gives the labels of its pool to the machine that joined",
      of: binding("w0", { nodeUID: "u1" }),
      node: bound("u1", { joins: role }),
      is: { verdict: "joins", labels: role },
    },
    {
      title: "gives no labels to another Node",
      of: binding("w0", { nodeUID: "u1" }),
      node: bound("u2", { joins: role }),
      is: { verdict: "released" },
    },
    {
      title: "gives no labels that were taken from its Node",
      of: binding("w0", { nodeUID: "u1", lastPool: "worker" }),
      node: bound("u1", { joins: role }),
      is: { verdict: "moved", lastPool: "" },
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
      node: bound("u", { pool: "worker" }),
      is: { verdict: "released" },
    },
    {
      title: "that an administrator released is not its Node's again",
      of: binding("w0", { ...released, revoked: true }),
      node: bound("u", { pool: "worker" }),
      is: { verdict: "stays", until: Date.parse(binding("w0").spec.expiresAt) },
    },
    {
      title: "that an administrator released gives no labels back",
      of: binding("w0", { ...released, revoked: true }),
      node: bound("u", { returns: { a: "" } }),
      is: { verdict: "stays", until: Date.parse(binding("w0").spec.expiresAt) },
    },
    {
      title: "that is released stays while its certificate is good",
      of: binding("w0", released),
      node: undefined,
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "that is released stays longer than a week, gives no labels back, and lists certificates until they end",
      of: binding("w0", { ...released, releasedAt: "2025-12-25T12:00:00Z", expiresAt: "2026-12-01T00:00:00Z" }),
      node: bound("u2", { returns: role }),
      is: { verdict: "stays", until: Date.parse("2026-12-01T00:00:00Z") },
    },
    {
      title: "that is released is its Node's again once an administrator has labelled that, also later",
      of: binding("w0", { ...released, releasedAt: "2025-12-25T12:00:00Z", expiresAt: "2026-12-01T00:00:00Z" }),
      node: bound("u2", { pool: "worker" }),
      is: { verdict: "registered", nodeUID: "u2" },
    },
    {
      title: "that is released is removed a week later where there are thousands of others",
      of: binding("w0", { ...released, releasedAt: "2025-12-25T12:00:00Z", expiresAt: "2026-12-01T00:00:00Z" }),
      node: bound("u2", { returns: role }),
      isCrowded: true,
      is: { verdict: "goes" },
    },
    {
      title: "that an administrator released stays also there",
      of: binding("w0", { ...released, revoked: true, releasedAt: "2025-12-25T12:00:00Z" }),
      node: undefined,
      isCrowded: true,
      is: { verdict: "stays", until: Date.parse(binding("w0").spec.expiresAt) },
    },
    {
      title: "that is released is removed when its certificate has expired",
      of: binding("w0", { ...released, expiresAt: "2026-01-01T12:00:00Z" }),
      node: bound("u2", { returns: role }),
      is: { verdict: "goes" },
    },
    {
      title: "that is released stays while a certificate of a former machine is good, and gives no labels back",
      of: binding("w0", { ...released, expiresAt: "2026-01-01T12:00:00Z", formerExpiresAt: later }),
      node: bound("u2", { returns: role }),
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "that an administrator released stays as long",
      of: binding("w0", { ...released, revoked: true, expiresAt: "2026-01-01T12:00:00Z", formerExpiresAt: later }),
      node: undefined,
      is: { verdict: "stays", until: Date.parse(later) },
    },
    {
      title: "whose machine never came stays as long",
      of: binding("w0", { expiresAt: "2026-01-01T12:00:00Z", formerExpiresAt: later }),
      node: undefined,
      is: { verdict: "stays", until: Date.parse(later) },
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
  ])("$title [join-places-stay-1]", ({ of, node, isCrowded = false, is }) => {
    expect(bindingStay(of, node, { now, isCrowded })).toEqual(is);
  });
});
