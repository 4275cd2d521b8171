/** Which server a suite runs against: this project's, in process or over TLS, or kube-apiserver. */
export type ServerKind = "embedded" | "kubernetes";

/** A deliberate difference between the embedded server and the real one. */
export interface Difference {
  readonly name: string;
  /** What each server does. */
  readonly does: Readonly<Record<ServerKind, string>>;
  readonly reason: string;
}

/**
 * All differences: at most fifteen, each with a reason. Everything else is equal on both servers. `show-differences.ts`
 * has a test for each on each server; `docs/reference/api-server.md` is made from this table.
 */
export const differences = [
  {
    name: "protobuf answers",
    does: { embedded: "Answers 406 to who takes protobuf and nothing else.", kubernetes: "Answers in protobuf." },
    reason:
      "Every client of Kubernetes takes JSON too, and says so; an encoder for all kinds would be the largest part of the server.",
  },
  {
    name: "cost of rules",
    does: {
      embedded: "Takes a definition whose rules are costly, and bounds what one evaluation looks at.",
      kubernetes: "Estimates what rules cost at most and refuses the definition.",
    },
    reason:
      "The estimate is a model of one CEL implementation. Definitions of this project are tried against the real server, so none that it would refuse gets out.",
  },
  {
    name: "authorizer in policies",
    does: {
      embedded: "Refuses a policy that asks `authorizer`.",
      kubernetes: "Answers what the caller may do elsewhere.",
    },
    reason:
      "No policy of this project asks it; a policy that the embedded server cannot hold to is refused when it is written, not passed over when it is due.",
  },
  {
    name: "texts of parsers",
    does: {
      embedded: "Says in its own words where a body, a patch or an expression cannot be read.",
      kubernetes: "Says it in the words of Go's parsers.",
    },
    reason:
      "Status, reason and field are the same; the words behind them are those of another parser, and people read them, not programs.",
  },
  {
    name: "what changed in a frozen pod",
    does: {
      embedded: "Names the fields that may change.",
      kubernetes: "Names them and adds a comparison of its own structs.",
    },
    reason: "The comparison prints internal types of the real server.",
  },
  {
    name: "a definition is served at once",
    does: {
      embedded: "Serves a definition from the moment its write is acknowledged.",
      kubernetes: "Serves it when its controllers have got to it.",
    },
    reason: "Waiting would only make tests and `mco up` slower; clients wait for Established on both.",
  },
  {
    name: "writes are heard at once",
    does: {
      embedded: "A binding of a role holds for the next request.",
      kubernetes: "It holds when the authorizer has heard of it, a moment later.",
    },
    reason: "One process needs no caches of its own writes. Clients retry on both.",
  },
] as const satisfies readonly Difference[];
