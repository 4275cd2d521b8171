import { expect, test } from "vitest";
import { openshiftNamespaces } from "../../src/core/render/openshift-inputs.ts";
import { sourceFiles } from "./source-files.ts";

/**
 * Namespaces that components read outside of kube-system, kube-public, default and the suite's own: who may create one on a
 * cluster that is not OpenShift's, and when what lies in it counts.
 */
const places: Readonly<Record<string, string>> = {
  "openshift-config": "whoever may create namespaces; inputs count on OpenShift alone",
  "openshift-config-managed": "whoever may create namespaces; inputs count on OpenShift alone",
  "openshift-kube-apiserver-operator": "whoever may create namespaces; the signer counts on OpenShift alone",
  "openshift-etcd": "whoever may create namespaces; static pods count on OpenShift alone",
  "openshift-machine-api": "whoever may create namespaces; counts where Machines or MachineSets are defined",
};

/** The files that may spell such a namespace: each place is named once. */
const spelled: Readonly<Record<string, readonly string[]>> = {
  "src/core/render/openshift-inputs.ts": Object.values(openshiftNamespaces),
  "src/api/names.ts": ["openshift-machine-api"],
};

const own = /^openshift-machine-config-(operator|builds|join)$/;
/** A text that is the name of a namespace of OpenShift's, or begins with one. */
const named = /["'`](openshift-[a-z-]+)(?=["'`/])/g;

const components = sourceFiles().filter(
  ({ path }) => path.startsWith("src/") && !path.startsWith("src/standin/") && !path.endsWith(".test.ts"),
);

/** Names of roles, events and the like, which are no namespaces. */
const others: readonly string[] = ["openshift-image-builder", "openshift-io"];

const namesIn = (text: string): readonly string[] =>
  [...text.matchAll(named)].map(([, name = ""]) => name).filter((name) => !own.test(name) && !others.includes(name));

test("each namespace that components read beside those that are safe has a line that says who may create it", () => {
  const found = components.flatMap(({ path, text }) =>
    namesIn(text)
      .filter((name) => !(name in places) || spelled[path]?.includes(name) !== true)
      .map((name) => `${path}: ${name}`),
  );
  expect(found).toEqual([]);
});

test("whoever reads there asks whose the cluster is", () => {
  const readers = components.filter(({ code }) =>
    /openshiftNamespaces\.|= openshiftNamespaces|pullSecretKey\(|pullSecretSelection\(/.test(code),
  );
  expect(readers.length).toBeGreaterThan(5);
  const silent = readers.filter(({ code }) => !/isOpenShift|onOpenShift|pullSecretKey\((?:true|false)\)/.test(code));
  expect(silent.map(({ path }) => path)).toEqual([]);
});

test("the rule finds a place without a line, and leaves the suite's own", () => {
  expect(namesIn('const key = { namespace: "openshift-monitoring", name: "x" };')).toEqual(["openshift-monitoring"]);
  expect(namesIn("`openshift-ingress/router`")).toEqual(["openshift-ingress"]);
  expect(namesIn('const namespace = "openshift-machine-config-operator";')).toEqual([]);
});
