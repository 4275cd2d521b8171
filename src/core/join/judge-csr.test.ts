import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { namespace, signers } from "../../api/names.ts";
import { type CsrFacts, type NodeOfName, judgeCsr, mostUnderWay } from "./judge-csr.ts";
import type { KubeletRequest } from "./kubelet-request.ts";

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
  joinedPool: undefined,
  inService: false,
  names: ["w0", "w0.example"],
  addresses: ["10.0.0.1"],
};
const first: CsrFacts = {
  namespace,
  requester: account("worker"),
  request: client(),
  pools: ["master", "worker"],
  node: undefined,
  underWay: 0,
};
const joined: NodeOfName = { ...node, pool: "worker", joinedPool: "worker", inService: true };

const said = (facts: CsrFacts): string => {
  const verdict = judgeCsr(facts);
  return verdict.verdict === "leave" ? "leave" : `${verdict.verdict} ${verdict.reason}`;
};

describe("judgeCsr", () => {
  test.for<{ title: string; facts: Partial<CsrFacts>; says: string }>([
    { title: "a machine of a pool that nobody knows yet joins", facts: {}, says: "approve NodeJoins" },
    {
      title: "a key of RSA needs one usage more",
      facts: { request: client({}, { usages: [...usages, "key encipherment"] }) },
      says: "approve NodeJoins",
    },
    { title: "a machine that tries again before it was ever ready joins", facts: { node }, says: "approve NodeJoins" },
    {
      title: "also when its node has its labels already",
      facts: { node: { ...node, pool: "worker", joinedPool: "worker" } },
      says: "approve NodeJoins",
    },
    {
      title: "a node in service is nobody else's",
      facts: { node: { ...node, inService: true } },
      says: "wait NodeInService",
    },
    { title: "not even where it joined in the same way", facts: { node: joined }, says: "wait NodeInService" },
    {
      title: "a node of another pool is nobody else's",
      facts: { node: { ...node, pool: "master" } },
      says: "wait NodeOfOtherPool",
    },
    {
      title: "a pool that is not there takes no machines",
      facts: { requester: account("infra") },
      says: "wait PoolUnknown",
    },
    { title: "machines beyond the bound wait", facts: { underWay: mostUnderWay }, says: "wait TooManyUnderWay" },
    {
      title: "one whose node is there is none of them",
      facts: { underWay: mostUnderWay, node },
      says: "approve NodeJoins",
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
      title: "an account of another namespace is somebody else's",
      facts: { requester: { username: "system:serviceaccount:elsewhere:node-bootstrapper-worker", groups: [] } },
      says: "leave",
    },
    {
      title: "a user is somebody else's",
      facts: { requester: { username: "alice", groups: ["system:masters"] } },
      says: "leave",
    },
    {
      title: "a node that joined here serves under its own names",
      facts: { requester: w0, request: serving(), node: joined },
      says: "approve NodeServes",
    },
    {
      title: "one of its names is enough",
      facts: { requester: w0, request: serving({ dnsNames: [], ipAddresses: ["10.0.0.1"] }), node: joined },
      says: "approve NodeServes",
    },
    {
      title: "an address that the node does not report waits",
      facts: { requester: w0, request: serving({ ipAddresses: ["10.0.0.2"] }), node: joined },
      says: "wait AddressUnknown",
    },
    {
      title: "so does a name of somebody else",
      facts: { requester: w0, request: serving({ dnsNames: ["kubernetes.default"] }), node: joined },
      says: "wait AddressUnknown",
    },
    {
      title: "a node asks for no other node",
      facts: { requester: { ...w0, username: "system:node:w1" }, request: serving(), node: joined },
      says: "deny NotItsOwn",
    },
    {
      title: "a node that joined here renews its certificate",
      facts: { requester: w0, node: joined },
      says: "approve NodeRenews",
    },
    {
      title: "a node that others let in is theirs",
      facts: { requester: w0, request: serving(), node: { ...joined, joinedPool: undefined } },
      says: "leave",
    },
    {
      title: "other signers are not ours, whoever asks",
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

  test("whatever is asked, what is approved is one node's, and under names of its own [join-judge-csr-2]", () => {
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
    const nodes = fc.constantFrom(undefined, node, joined, { ...joined, pool: "master", joinedPool: "master" });
    let approved = 0;
    fc.assert(
      fc.property(
        fc.oneof(requests, fc.constantFrom(client(), serving())),
        fc.constantFrom(account("worker"), w0, { username: "alice", groups: [] }),
        nodes,
        (request, requester, there) => {
          const facts = { ...first, request, requester, node: there };
          if (judgeCsr(facts).verdict !== "approve") return;
          approved += 1;
          expect(request.asked.organizations).toEqual(["system:nodes"]);
          expect(request.asked.commonNames).toHaveLength(1);
          expect(request.usages).not.toContain("cert sign");
          expect(
            [...request.asked.dnsNames, ...request.asked.ipAddresses].filter(
              (name) => name !== "w0" && !node.names.includes(name) && !node.addresses.includes(name),
            ),
          ).toEqual([]);
          if (requester === w0) expect(request.asked.commonNames).toEqual(["system:node:w0"]);
          else expect(there?.inService).not.toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
    expect(approved).toBeGreaterThan(0);
  });
});
