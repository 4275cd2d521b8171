import { expect, test } from "vitest";
import { shareOf } from "./shares.ts";

const suite = "system:serviceaccount:openshift-machine-config-operator";

test.for([
  ["mallory", [], undefined, { of: "mallory", part: "others" }],
  ["system:serviceaccount:a:b", [], undefined, { of: "system:serviceaccount:a", part: "others" }],
  ["system:serviceaccount:a:c", [], "n", { of: "system:serviceaccount:a", part: "others" }],
  [
    "system:serviceaccount:openshift-machine-config-join:p",
    [],
    undefined,
    { of: "system:serviceaccount:openshift-machine-config-join", part: "others" },
  ],
  [
    "system:serviceaccount:kube-system:c",
    [],
    undefined,
    { of: "system:serviceaccount:kube-system:c", part: "cluster" },
  ],
  ["system:node:n", ["system:nodes"], undefined, { of: "system:node:n", part: "nodes" }],
  ["admin", ["system:masters"], undefined, { of: "admin", part: "cluster" }],
  // Root on a machine has the tokens of all its pods, which are no more than itself.
  [`${suite}:machine-config-daemon`, [], "n", { of: "system:node:n", part: "nodes" }],
  ["system:serviceaccount:kube-system:network", [], "n", { of: "system:node:n", part: "nodes" }],
  [
    "system:serviceaccount:openshift-machine-config-builds:machine-os-build",
    [],
    "n",
    { of: "system:node:n", part: "nodes" },
  ],
  [`${suite}:default`, [], "n", { of: "system:node:n", part: "nodes" }],
  [`${suite}:machine-os-puller`, [], undefined, { of: suite, part: "others" }],
  [`${suite}:machine-config-operator`, [], undefined, { of: `${suite}:machine-config-operator`, part: "cluster" }],
  ...[
    "machine-config-operator",
    "machine-config-controller",
    "machine-state-controller",
    "machine-os-builder",
    "machine-config-server",
  ].map((name) => [`${suite}:${name}`, [], "m", { of: `${suite}:${name} on m`, part: "cluster" }] as const),
] as const)("the share of %s in %o on %s [apiserver-shares-1]", ([name, groups, node, share]) => {
  const extra = node === undefined ? {} : { extra: { "authentication.kubernetes.io/node-name": [node] } };
  expect(shareOf({ name, groups, ...extra })).toEqual(share);
});
