import { expect, test } from "vitest";
import { isKubeconfig } from "./is-kubeconfig.ts";

test.for([
  ["apiVersion: v1\nkind: Config\nclusters:\n- name: a\n", true],
  ['{"kind":"Config","clusters":[]}', true],
  ["kind: Config\n", false],
  ["apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n# Config of clusters\n", false],
  ["kind: [Config\nclusters", false],
  ["", false],
] as const)("%j is a kubeconfig: %s [text-is-kubeconfig-1]", ([text, is]) => {
  expect(isKubeconfig(text)).toBe(is);
});
