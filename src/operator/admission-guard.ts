/**
 * Kinds and objects that some policies need: a policy whose kind or parameters do not exist would only block requests.
 */
export interface GuardNeeds {
  readonly infrastructure: boolean;
  readonly osImageStreams: boolean;
  readonly internalReleaseImage: boolean;
}

/** A policy of the API server, and its binding, as data. */
export interface Guard {
  /**
   * Of the reference: openshift/machine-config-operator
   * manifests/machineconfigcontroller/*-validatingadmissionpolicy.yaml (main), where the rules' facts are from.
   */
  readonly name: string;
  readonly needs?: keyof GuardNeeds;
  /** It allows requests that it cannot judge: its expressions fail, its parameters are not known yet, or their kind is gone. */
  readonly allowsWhatFails?: true;
  /** It refuses nothing: clients such as kubectl print its message. */
  readonly warns?: true;
  readonly rule: {
    readonly apiGroup: string;
    readonly resources: readonly string[];
    readonly operations: readonly ("CREATE" | "UPDATE" | "DELETE")[];
    /** Absent: in every namespace, or the kind has none. */
    readonly inNamespace?: string;
  };
  /**
   * Without a name: each object of the kind, if there are any. A named object that does not exist refuses the request,
   * unless `mayBeAbsent`: then there is nothing to judge by, and the policy is in force from the object's first moment.
   */
  readonly params?: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name?: string;
    /** Of the named object; absent: that of the request, or the kind has none. */
    readonly inNamespace?: string;
    readonly mayBeAbsent?: true;
  };
  readonly conditions?: Readonly<Record<string, string>>;
  readonly variables?: Readonly<Record<string, string>>;
  readonly validations: readonly {
    /** The field of the object that the message is about: `spec.machineConfigSelector`; every message begins with it. */
    readonly field?: string;
    readonly expression: string;
    readonly message: string;
    readonly messageExpression?: string;
    readonly reason?: "Forbidden";
  }[];
}
