import type { ResourceDefinition } from "../contract.ts";
import { type KindOptions, kind } from "./define-kind.ts";

const review: KindOptions = { verbs: ["create"], clusterScoped: true, generation: "never", name: () => [] };

function reviewKind(group: string, name: string, options: KindOptions = {}): ResourceDefinition {
  const definition = kind(group, "v1", name, { ...review, ...options });
  // Reviews are answered, not stored: they have no name.
  return { ...definition, validate: () => [] };
}

export const reviewKinds: readonly ResourceDefinition[] = [
  reviewKind("authentication.k8s.io", "SelfSubjectReview"),
  reviewKind("authentication.k8s.io", "TokenReview"),
  reviewKind("authorization.k8s.io", "LocalSubjectAccessReview", { clusterScoped: false }),
  reviewKind("authorization.k8s.io", "SelfSubjectAccessReview"),
  reviewKind("authorization.k8s.io", "SelfSubjectRulesReview"),
  reviewKind("authorization.k8s.io", "SubjectAccessReview"),
];
