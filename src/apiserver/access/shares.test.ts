import { expect, test } from "vitest";
import { shareOf } from "./shares.ts";

test.for([
  ["mallory", [], { of: "mallory", isKept: false }],
  ["system:serviceaccount:a:b", [], { of: "system:serviceaccount:a", isKept: false }],
  ["system:serviceaccount:a:c", [], { of: "system:serviceaccount:a", isKept: false }],
  ["system:serviceaccount:kube-system:c", [], { of: "system:serviceaccount:kube-system:c", isKept: true }],
  ["system:node:n", ["system:nodes"], { of: "system:node:n", isKept: true }],
  ["admin", ["system:masters"], { of: "admin", isKept: true }],
] as const)("the share of %s [apiserver-shares-1]", ([name, groups, share]) => {
  expect(shareOf({ name, groups })).toEqual(share);
});
