import { expect } from "vitest";
import { type ContractCase, core } from "./cases/kit.ts";

/** Which server a suite runs against: this project's, in process or over TLS, or kube-apiserver. */
export type ServerKind = "embedded" | "kubernetes";

/** Something in which the embedded server is not, and shall not be, as the real one is. */
export interface Difference {
  readonly name: string;
  /** What each server does. */
  readonly does: Readonly<Record<ServerKind, string>>;
  readonly reason: string;
  /** Shows what each server does. */
  readonly shows: Readonly<Record<ServerKind, ContractCase["run"]>>;
}

/** All of them: at most fifteen, each for a reason. Everything else is the same on both. */
export const differences: readonly Difference[] = [
  {
    name: "protobuf answers",
    does: { embedded: "Answers 406 to who takes protobuf and nothing else.", kubernetes: "Answers in protobuf." },
    reason: "Every client of Kubernetes takes JSON too, and says so; an encoder for all kinds would be the largest part of the server.",
    shows: {
      async embedded(api, namespace) {
        expect((await api.get(core(namespace, "configmaps"), { accept: protobuf })).status).toBe(406);
        expect((await api.get(core(namespace, "configmaps"), { accept: `${protobuf},application/json` })).headers["content-type"]).toBe("application/json");
      },
      async kubernetes(api, namespace) {
        expect((await api.get(core(namespace, "configmaps"), { accept: protobuf })).headers["content-type"]).toBe(protobuf);
      },
    },
  },
];

const protobuf = "application/vnd.kubernetes.protobuf";
