import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { strToU8 } from "fflate";
import { describe, expect, test } from "vitest";
import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import { joinNamespace, signers } from "../../api/names.ts";
import { credentialKey } from "./certificate-holder.ts";
import { decideJoin } from "./decide-join.ts";
import { boundSpec } from "./join-changes.ts";
import type { JoinDecision, RequestFacts, JoinView, RequestMemory } from "./join-decision.ts";
import type { CsrFacts, NameBinding } from "./judge-csr.ts";
import type { KubeletRequest } from "./kubelet-request.ts";
import { type CertificateLines, noLines } from "./node-request.ts";

const key = "a".repeat(64);
const otherKey = "b".repeat(64);
const createdAt = "2030-01-01T01:00:00Z";
const before = "2030-01-01T00:00:00Z";
const after = "2030-01-01T02:00:00Z";

const account = `system:serviceaccount:${joinNamespace}:node-bootstrapper-worker`;
const subject = "system:node:w";

interface RequestParts {
  readonly username?: string;
  readonly signer?: string;
  readonly conditions?: readonly { readonly type: string; readonly reason?: string; readonly at?: string }[];
  readonly certificate?: string;
  /** SHA-256 of the certificate that it was sent with. */
  readonly sentWith?: string;
  readonly deleted?: true;
}
const requestOf = ({
  username = account,
  signer,
  conditions = [],
  certificate,
  sentWith,
  deleted,
}: RequestParts = {}) =>
  ({
    metadata: { name: "csr", creationTimestamp: createdAt, ...(deleted ? { deletionTimestamp: after } : {}) },
    spec: {
      username,
      signerName: signer ?? signers.kubeletClient,
      request: "",
      usages: [],
      ...(sentWith === undefined ? {} : { extra: { [credentialKey]: [`X509SHA256=${sentWith}`] } }),
    },
    status: {
      conditions: conditions.map(({ type, reason, at }) => ({
        type,
        status: "True",
        reason: reason ?? "NodeJoins",
        lastTransitionTime: at ?? after,
      })),
      ...(certificate === undefined ? {} : { certificate }),
    },
  }) as unknown as CertificateSigningRequest;

const approved = (reason: string, more: RequestParts = {}) =>
  requestOf({ conditions: [{ type: "Approved", reason }], ...more });
/** Not a certificate, but a block of one: its digest is recorded, and its end is unknown. */
const certificate = btoa(`-----BEGIN CERTIFICATE-----\n${btoa("of w")}\n-----END CERTIFICATE-----\n`);

const kubeletRequest = (signer: string, hosts: { readonly ipAddresses?: readonly string[] } = {}): KubeletRequest => ({
  signer,
  usages: ["digital signature", signer === signers.kubeletClient ? "client auth" : "server auth"],
  asked: {
    commonNames: [subject],
    organizations: ["system:nodes"],
    dnsNames: [],
    ipAddresses: [],
    emailAddresses: [],
    uris: [],
    otherNames: 0,
    otherAttributes: 0,
    ...hosts,
  },
});
const place = (machine?: string): JoinPlace =>
  ({
    metadata: { name: "place-1" },
    spec: { pool: "worker", expiresAt: after, addresses: ["10.0.0.1"] },
    ...(machine === undefined ? {} : { status: { machine, publicKey: key } }),
  }) as unknown as JoinPlace;
const free = (machine?: string): CsrFacts["place"] => ({ verdict: "free", place: place(machine), isHeld: false });

const csr: CsrFacts = {
  namespace: joinNamespace,
  requester: { username: account, groups: ["system:serviceaccounts"] },
  request: kubeletRequest(signers.kubeletClient),
  pools: ["worker"],
  node: undefined,
  publicKey: key,
  binding: undefined,
  place: free(),
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
const bindingOf = (spec: Partial<NodeBinding["spec"]> = {}): NodeBinding =>
  ({
    metadata: { name: "w", uid: "u", creationTimestamp: before },
    spec: { pool: "worker", publicKey: key, expiresAt: after, ...spec },
  }) as NodeBinding;
const known: NameBinding = { pool: "worker", publicKey: key, place: "p1", isGood: true, hasRoom: true, addresses: [] };

/** A request that a turn was taken for and that is judged by these facts. */
const judged = (more: Partial<CsrFacts> = {}, facts: Partial<RequestFacts> = {}): Partial<JoinView> => ({
  turn: { verdict: "judge" },
  awaitsApprovalByHand: false,
  facts: {
    name: "w",
    csr: { ...csr, ...more },
    binding: undefined,
    nodeCreatedAt: undefined,
    lines: noLines,
    ...facts,
  },
});
const asNode: Partial<CsrFacts> = {
  requester: { username: subject, groups: ["system:nodes"] },
  node: { pool: "worker", inService: true },
  binding: known,
  place: { verdict: "none" },
};
const hex = (digit: string) => digit.repeat(64);
const ofW = bytesToHex(sha256(strToU8("of w")));
const taken = bindingOf({
  certificates: [hex("c")],
  formerCertificates: [{ sha256: hex("f"), expiresAt: after }],
  formerExpiresAt: after,
});
/** As the approver of kube-controller-manager approves each. */
const renewal = (sentWith: string) => approved("AutoApproved", { username: subject, certificate, sentWith });
const linesOf = ({ holder = [], former = [] }: Partial<Record<keyof CertificateLines, readonly string[]>>) => ({
  holder: new Map(holder.map((one) => [one, undefined])),
  former: new Map(former.map((one) => [one, after])),
});
const serving = (...ipAddresses: string[]) => ({ request: kubeletRequest(signers.kubeletServing, { ipAddresses }) });
const ofNode = requestOf({ username: subject });
const toServe = requestOf({ username: subject, signer: signers.kubeletServing });

const byHand = approved("KubectlApprove");
const nothing: RequestMemory = { reported: undefined, isAdmittedByHand: false, recordedIn: undefined };

const rows: readonly {
  readonly title: string;
  readonly seen: Partial<JoinView>;
  readonly memory?: Partial<RequestMemory>;
  readonly decision: Pick<JoinDecision, "do"> & Readonly<Record<string, unknown>>;
}[] = [
  { title: "a request that is gone ends the pass", seen: { request: undefined }, decision: { do: "rest" } },
  {
    title: "a request that is being deleted ends the pass",
    seen: { request: requestOf({ deleted: true }) },
    decision: { do: "rest", because: "the request is being deleted" },
  },
  {
    title: "a denied request ends the pass",
    seen: { request: requestOf({ conditions: [{ type: "Denied" }] }) },
    decision: { do: "rest", because: "the request was denied, or it failed" },
  },
  { title: "an open request takes a turn of its requester", seen: {}, decision: { do: "takeTurn" } },
  {
    title: "a request whose requester has made newer ones ends the pass",
    seen: { turn: { verdict: "abandoned" } },
    decision: { do: "rest", because: "its requester waits for newer requests only" },
  },
  {
    title: "a request without a turn comes back when there is one",
    seen: { turn: { verdict: "later", afterSeconds: 7 } },
    decision: { do: "rest", seconds: 7 },
  },
  {
    title: "requests for its name that were approved by hand are looked for after the turn is taken",
    seen: { turn: { verdict: "judge" } },
    decision: { do: "findApprovals" },
  },
  {
    title: "the facts are read if none comes first",
    seen: { turn: { verdict: "judge" }, awaitsApprovalByHand: false },
    decision: { do: "readFacts" },
  },
  {
    title: "a request for the name of one that was approved by hand comes after that",
    seen: { turn: { verdict: "judge" }, awaitsApprovalByHand: true },
    decision: { do: "rest", seconds: 1 },
  },
  {
    title: "a request that is not the suite's to decide stays untouched",
    seen: judged({ requester: { username: "alice", groups: [] } }),
    decision: { do: "rest", because: "the suite does not decide requests like this one" },
  },
  {
    title: "a malformed request is denied",
    seen: judged({ request: undefined }),
    decision: { do: "deny", reason: "Malformed", because: "what is asked for cannot be read" },
  },
  {
    title: "a machine without a pool waits, and that is reported",
    seen: judged({ pools: [] }),
    decision: { do: "wait", reason: "PoolUnknown", because: "there is no pool worker", isNews: true },
  },
  {
    title: "a machine that waits for the same as before is not reported again",
    seen: judged({ pools: [] }),
    memory: { reported: "there is no pool worker" },
    decision: { do: "wait", reason: "PoolUnknown", isNews: false },
  },
  {
    title: "the machine API is asked for an unknown address",
    seen: { request: toServe, ...judged({ ...asNode, ...serving("10.0.0.9") }) },
    decision: { do: "listMachines", node: "w" },
  },
  {
    title: "an address that no Machine has waits",
    seen: { request: toServe, ...judged({ ...asNode, ...serving("10.0.0.9") }), machines: [] },
    decision: { do: "wait", reason: "AddressUnknown" },
  },
  {
    title: "an address of the one Machine of the node is approved",
    seen: {
      request: toServe,
      ...judged({ ...asNode, ...serving("10.0.0.9") }),
      machines: [{ name: "m", addresses: ["10.0.0.9"] }],
    },
    decision: { do: "approve", reason: "NodeServes" },
  },
  {
    title: "a certificate to serve with binds no name",
    seen: {
      request: toServe,
      ...judged({ ...asNode, ...serving("10.0.0.1"), binding: { ...known, addresses: ["10.0.0.1"] } }),
    },
    decision: { do: "approve", reason: "NodeServes" },
  },
  {
    title: "before a machine joins its place is spent",
    seen: judged(),
    decision: { do: "spendPlace", place: place(), machine: "w", publicKey: key },
  },
  {
    title: "then its name is bound",
    seen: { ...judged(), isPlaceSpent: true },
    decision: { do: "bindName" },
  },
  {
    title: "a place that was spent by an earlier pass is not spent again",
    seen: judged({ place: free("w") }),
    decision: { do: "bindName" },
  },
  {
    title: "a machine joins once its name is bound",
    seen: { ...judged(), isPlaceSpent: true, isBound: true },
    decision: { do: "approve", reason: "NodeJoins", because: "w joins pool worker" },
  },
  {
    title: "a node that renews takes no place, and its name is bound to its next key",
    seen: { request: ofNode, ...judged(asNode) },
    decision: { do: "bindName" },
  },
  {
    title: "then it renews",
    seen: { request: ofNode, ...judged(asNode), isBound: true },
    decision: { do: "approve", reason: "NodeRenews" },
  },
  {
    title: "the facts of a request that was approved by hand are read without a turn",
    seen: { request: byHand },
    decision: { do: "readFacts" },
  },
  {
    title: "an approval by hand spends the place",
    seen: { request: byHand, ...judged() },
    decision: { do: "spendPlace" },
  },
  {
    title: "an approval by hand without a place binds the name",
    seen: { request: byHand, ...judged({ place: { verdict: "unrecorded" } }) },
    decision: { do: "bindName" },
  },
  {
    title: "an approval by hand that bound the name is noted",
    seen: { request: byHand, ...judged(), isPlaceSpent: true, isBound: true },
    decision: { do: "noteAdmission", because: "the name that was approved by hand is bound" },
  },
  {
    title: "an approval by hand replaces a binding that had ended before the request",
    seen: {
      request: byHand,
      ...judged({ place: { verdict: "none" } }, { binding: bindingOf({ publicKey: otherKey, expiresAt: before }) }),
    },
    decision: { do: "bindName" },
  },
  ...[
    {
      title: "an approval by hand gives no name to a request of another form",
      seen: judged({ request: { ...kubeletRequest(signers.kubeletClient), usages: [] } }),
    },
    {
      title: "an approval by hand gives no name that a Node had before it",
      seen: judged({}, { nodeCreatedAt: createdAt }),
    },
    {
      title: "an approval by hand gives no name that was free only after the request",
      seen: judged({}, { binding: bindingOf({ publicKey: otherKey, releasedAt: after }) }),
    },
    {
      title: "an approval by hand takes no name from a key whose certificate is good",
      seen: judged(
        { binding: { ...known, publicKey: otherKey } },
        { binding: bindingOf({ publicKey: otherKey, releasedAt: before }) },
      ),
    },
    {
      title: "an approval by hand binds no name that its key has",
      seen: judged({}, { binding: bindingOf({ expiresAt: before }) }),
    },
  ].map(({ title, seen }) => ({
    title,
    seen: { request: byHand, ...seen },
    decision: { do: "noteAdmission", because: "the approval by hand gives the name to no key" } as const,
  })),
  {
    title: "a noted approval by hand is not judged again",
    seen: { request: byHand },
    memory: { isAdmittedByHand: true },
    decision: { do: "rest", because: "its name is bound to no key" },
  },
  {
    title: "an approved request waits for its certificate",
    seen: { request: approved("NodeJoins"), binding: bindingOf() },
    decision: { do: "rest", because: "no certificate was issued yet" },
  },
  {
    title: "an issued certificate is recorded",
    seen: { request: approved("NodeJoins", { certificate }), binding: bindingOf() },
    decision: {
      do: "recordCertificate",
      changes: { certificates: [expect.stringMatching(/^[0-9a-f]{64}$/) as string] },
    },
  },
  {
    title: "a certificate of an approval by hand is recorded after its name is noted",
    seen: { request: approved("KubectlApprove", { certificate }), binding: bindingOf() },
    memory: { isAdmittedByHand: true },
    decision: { do: "recordCertificate" },
  },
  {
    title: "a certificate of a former machine is not recorded",
    seen: { request: approved("NodeJoins", { certificate }), binding: bindingOf({ joinedAt: after }) },
    decision: { do: "rest", because: "it is no request of the machine that has the name" },
  },
  {
    title: "whose a certificate is that a node requested says the one that it was requested with",
    seen: { request: renewal(hex("d")), binding: taken },
    decision: { do: "takeRecordTurn" },
  },
  {
    title: "certificates of a name are followed when their requester has a turn",
    seen: { request: renewal(hex("d")), binding: taken, recordTurn: { verdict: "judge" } },
    decision: { do: "followCertificates" },
  },
  {
    title: "certificates of a name are followed at a bounded rate",
    seen: { request: renewal(hex("d")), binding: taken, recordTurn: { verdict: "later", afterSeconds: 30 } },
    decision: { do: "rest", seconds: 30 },
  },
  {
    title: "a renewal by a listed certificate is recorded, whoever approved it",
    seen: { request: renewal(hex("c")), binding: taken, lines: linesOf({ holder: [hex("c")] }) },
    decision: { do: "recordCertificate", changes: { certificates: [hex("c"), ofW] } },
  },
  {
    title: "a renewal by the certificate of a former machine prolongs the record of that one",
    seen: { request: renewal(hex("f")), binding: taken, lines: linesOf({ former: [hex("f")] }) },
    decision: {
      do: "recordCertificate",
      changes: {
        formerCertificates: [
          { sha256: hex("f"), expiresAt: after },
          { sha256: ofW, expiresAt: after },
        ],
      },
    },
  },
  {
    title: "also after the end that was recorded of the former machine, nothing makes it the one that has the name",
    seen: { request: renewal(hex("e")), binding: bindingOf({ certificates: [hex("c")] }), lines: noLines },
    decision: { do: "recordCertificate", changes: undefined },
  },
  {
    title: "nor before the first certificate of the next machine is recorded",
    seen: { request: renewal(hex("e")), binding: bindingOf({ joinedAt: "2030-01-01T00:59:00Z" }), lines: noLines },
    decision: { do: "recordCertificate", changes: undefined },
  },
  {
    title: "an administrator vouches for a certificate that was not recorded",
    seen: {
      request: approved("KubectlApprove", { username: subject, certificate, sentWith: hex("e") }),
      binding: bindingOf({ certificates: [hex("c")] }),
      lines: noLines,
    },
    decision: { do: "recordCertificate", changes: { certificates: [hex("c"), ofW] } },
  },
  {
    title: "but not for one of a former machine",
    seen: {
      request: approved("KubectlApprove", { username: subject, certificate, sentWith: hex("f") }),
      binding: taken,
      lines: linesOf({ former: [hex("f")] }),
    },
    decision: { do: "recordCertificate", changes: { formerCertificates: [{}, { sha256: ofW }] } },
  },
  {
    title: "a certificate to serve with is not recorded",
    seen: {
      request: approved("NodeServes", { username: subject, signer: signers.kubeletServing, certificate }),
      binding: taken,
    },
    decision: { do: "rest" },
  },
  {
    title: "a recorded certificate is not recorded again",
    seen: { request: approved("NodeJoins", { certificate }), binding: bindingOf() },
    memory: { recordedIn: "u" },
    decision: { do: "rest", because: "its certificate is recorded" },
  },
];

describe("decideJoin", () => {
  test.for(rows)("$title [join-decide-join-1]", ({ seen, memory, decision }) => {
    const view: JoinView = { request: requestOf(), binding: undefined, ...seen };
    expect(decideJoin(view, { ...nothing, ...memory })).toMatchObject(decision);
  });

  test("a certificate that the binding lists is recorded without a change [join-decide-join-2]", () => {
    const request = approved("NodeJoins", { certificate });
    const first = decideJoin({ request, binding: bindingOf() }, nothing);
    const { certificates = [] }: Partial<NodeBinding["spec"]> =
      first.do === "recordCertificate" ? (first.changes ?? {}) : {};
    expect(certificates).toHaveLength(1);
    expect(decideJoin({ request, binding: bindingOf({ certificates }) }, nothing)).toMatchObject({
      do: "recordCertificate",
      changes: undefined,
    });
  });

  test("the rows reach every decision [join-decide-join-3]", () => {
    const all: Record<JoinDecision["do"], true> = {
      takeTurn: true,
      takeRecordTurn: true,
      findApprovals: true,
      readFacts: true,
      listMachines: true,
      followCertificates: true,
      spendPlace: true,
      bindName: true,
      noteAdmission: true,
      rest: true,
      approve: true,
      deny: true,
      wait: true,
      recordCertificate: true,
    };
    expect(new Set(rows.map(({ decision }) => decision.do))).toEqual(new Set(Object.keys(all)));
  });
});

describe("boundSpec", () => {
  const now = Date.parse(after);
  const factsOf = (more: Partial<CsrFacts>, binding?: NodeBinding): RequestFacts => ({
    name: "w",
    csr: { ...csr, ...more },
    binding,
    nodeCreatedAt: undefined,
    lines: noLines,
  });
  const anHour = { spec: { ...requestOf().spec, expirationSeconds: 3600 } };
  const fromMachine = { ...requestOf(), ...anHour };
  const fromNode = { ...ofNode, spec: { ...ofNode.spec, expirationSeconds: 3600 } };
  const inAnHour = "2030-01-01T03:00:00Z";

  test.for<{
    readonly title: string;
    readonly request: CertificateSigningRequest;
    readonly facts: RequestFacts;
    readonly spec: NodeBinding["spec"];
  }>([
    {
      title: "a machine that joins has its pool, its place and the addresses of that",
      request: fromMachine,
      facts: factsOf({}),
      spec: {
        pool: "worker",
        publicKey: key,
        joinedAt: after,
        expiresAt: inAnHour,
        place: "place-1",
        addresses: ["10.0.0.1"],
      },
    },
    {
      title: "a token's name of the machine is one of its addresses",
      request: fromMachine,
      facts: factsOf({ place: { verdict: "free", place: place(), isHeld: true } }),
      spec: {
        pool: "worker",
        publicKey: key,
        joinedAt: after,
        expiresAt: inAnHour,
        place: "place-1",
        addresses: ["w", "10.0.0.1"],
      },
    },
    {
      title: "the end of a former machine's certificate is kept",
      request: fromMachine,
      facts: factsOf(
        { place: { verdict: "none" } },
        bindingOf({ publicKey: otherKey, expiresAt: inAnHour, releasedAt: before, nodeUID: "n" }),
      ),
      spec: {
        pool: "worker",
        publicKey: key,
        joinedAt: after,
        expiresAt: inAnHour,
        formerExpiresAt: inAnHour,
        exclusive: true,
      },
    },
    {
      title: "the certificates of a former machine are listed by the write that takes its name from it",
      request: fromMachine,
      facts: {
        ...factsOf(
          { place: { verdict: "none" } },
          bindingOf({ publicKey: otherKey, expiresAt: inAnHour, certificates: [hex("f")], revoked: true }),
        ),
        lines: linesOf({ holder: [hex("f"), hex("e")] }),
      },
      spec: {
        pool: "worker",
        publicKey: key,
        joinedAt: after,
        expiresAt: inAnHour,
        exclusive: true,
        formerExpiresAt: inAnHour,
        formerCertificates: [
          { sha256: hex("f"), expiresAt: inAnHour },
          { sha256: hex("e"), expiresAt: inAnHour },
        ],
      },
    },
    {
      title: "a node that renews keeps its record, also of its release, and the later end",
      request: fromNode,
      facts: factsOf(
        { ...asNode, publicKey: otherKey },
        bindingOf({ expiresAt: "2030-01-02T00:00:00Z", nodeUID: "n", releasedAt: before, lastPool: "infra" }),
      ),
      spec: {
        pool: "worker",
        publicKey: otherKey,
        expiresAt: "2030-01-02T00:00:00Z",
        nodeUID: "n",
        releasedAt: before,
        lastPool: "infra",
      },
    },
    {
      title: "a machine that asks again by its pool's account ends its release",
      request: fromMachine,
      facts: factsOf({ binding: known }, bindingOf({ nodeUID: "n", releasedAt: before, lastPool: "infra" })),
      spec: { pool: "worker", publicKey: key, expiresAt: inAnHour, nodeUID: "n" },
    },
    {
      title: "a machine that asks again and was not released keeps the pool of its Node",
      request: fromMachine,
      facts: factsOf({ binding: known }, bindingOf({ lastPool: "infra" })),
      spec: { pool: "worker", publicKey: key, expiresAt: inAnHour, lastPool: "infra" },
    },
  ])("$title [join-changes-1]", ({ request, facts, spec }) => {
    expect(boundSpec(request, facts, now)).toEqual(spec);
  });
});
