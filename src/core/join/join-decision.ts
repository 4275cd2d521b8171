import type { CertificateSigningRequest } from "../../api/foreign/kubernetes.ts";
import type { JoinPlace } from "../../api/kinds/join-place.ts";
import type { NodeBinding } from "../../api/kinds/node-binding.ts";
import type { withCertificate, withFormerCertificate } from "./certificate-holder.ts";
import type { CsrFacts, CsrReason, MachineOfNode } from "./judge-csr.ts";
import type { CertificateLines } from "./node-request.ts";

/** Whether a request may be judged now, by the budget of its requester. */
export type BudgetVerdict =
  | { readonly verdict: "judge" }
  /** There are newer requests of the same requester, and a kubelet waits for its newest only. */
  | { readonly verdict: "abandoned" }
  | { readonly verdict: "later"; readonly afterSeconds: number };

/** The facts that decide about one request, as the caches showed them at one time. */
export interface RequestFacts {
  /** The node that the request is about; empty: it names none. */
  readonly name: string;
  readonly csr: CsrFacts;
  /** Of the name, also if it is released. */
  readonly binding: NodeBinding | undefined;
  /** When the Node of the name was created, as the API server writes times; `undefined`: there is none. */
  readonly nodeCreatedAt: string | undefined;
  /** Certificates of the machines of the name; none if the request is not one of a machine that joins. */
  readonly lines: CertificateLines;
}

/** The findings and acts of this pass. */
export interface JoinPass {
  /** As the watch showed it when the pass began; absent: there is none. */
  readonly request: CertificateSigningRequest | undefined;
  readonly turn?: BudgetVerdict;
  /** The name may go to another request, which was approved by hand and comes later in the queue. */
  readonly awaitsApprovalByHand?: boolean;
  readonly facts?: RequestFacts;
  /** The Machines that name the node. */
  readonly machines?: readonly MachineOfNode[];
  /** Whether the certificates of the name may be followed now. */
  readonly recordTurn?: Exclude<BudgetVerdict, { readonly verdict: "abandoned" }>;
  /** Certificates of the machines of the name. */
  readonly lines?: CertificateLines;
  /** The place of the machine was noted as spent. */
  readonly isPlaceSpent?: true;
  /** The name was bound to the key of the request. */
  readonly isBound?: true;
}

/** The inputs of a decision about a request. */
export interface JoinView extends JoinPass {
  /** Of the name, as the process wrote it last, or as the watch shows it; newer than that of the facts. */
  readonly binding: NodeBinding | undefined;
}

/** The memory of a request between passes; a restart costs one more report. */
export interface RequestMemory {
  /** Why it was last reported as waiting. */
  readonly reported: string | undefined;
  /** It was approved by hand, and its name was bound or was not free then. */
  readonly isAdmittedByHand: boolean;
  /** UID of the binding that its certificate was recorded in. */
  readonly recordedIn: string | undefined;
}

/** The next act of a pass over a request, each with its reason for people. */
export type JoinDecision = { readonly because: string } & (JoinLookup | JoinPreparation | JoinEnd);

/** Parts that the view lacks: they are looked up, and the pass decides again. */
export type JoinLookup =
  /** Takes a turn of the requester. */
  | { readonly do: "takeTurn" }
  /** Takes a turn of the requester to follow the certificates of its name: others than the suite approve requests, too. */
  | { readonly do: "takeRecordTurn" }
  /** Looks for requests for the same name that were approved by hand. */
  | { readonly do: "findApprovals" }
  | { readonly do: "readFacts" }
  /** Lists the Machines that name the node. */
  | { readonly do: "listMachines"; readonly node: string }
  /** Finds out which machine of the name has which certificate. */
  | { readonly do: "followCertificates"; readonly binding: NodeBinding };

/** Changes after which the pass decides again. */
export type JoinPreparation =
  /** Notes in the place which machine it lets in. */
  | { readonly do: "spendPlace"; readonly place: JoinPlace; readonly machine: string; readonly publicKey: string }
  /** Binds the name to the key of the request. */
  | { readonly do: "bindName"; readonly request: CertificateSigningRequest; readonly facts: RequestFacts }
  /** Remembers that the name of a request which was approved by hand is bound, or was not free. */
  | { readonly do: "noteAdmission" };

/** Ends of a pass. */
export type JoinEnd =
  | { readonly do: "rest"; readonly seconds?: number }
  | { readonly do: "approve" | "deny"; readonly reason: CsrReason; readonly request: CertificateSigningRequest }
  | {
      readonly do: "wait";
      readonly reason: CsrReason;
      readonly request: CertificateSigningRequest;
      /** Nobody was told that it waits for this. */
      readonly isNews: boolean;
    }
  | {
      readonly do: "recordCertificate";
      readonly binding: NodeBinding;
      /** Absent: the binding lists the certificate. */
      readonly changes:
        | NonNullable<ReturnType<typeof withCertificate>>
        | NonNullable<ReturnType<typeof withFormerCertificate>>
        | undefined;
    };

export type JoinCase<Name extends JoinDecision["do"]> = JoinDecision & { readonly do: Name };
