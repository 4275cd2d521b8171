import { expect, test } from "vitest";
import { type ClusterServices, shortFormsIn } from "./service-names.ts";

const since = "2026-01-02T00:00:00Z";
const cluster: ClusterServices = {
  namespaceSince: (namespace) => (["secrets", "internal"].includes(namespace) ? since : undefined),
  serviceSince: (namespace, name) => (`${namespace}/${name}` === "secrets/vault" ? since : undefined),
};

test.for([
  { name: "vault.secrets", says: "secrets/vault" },
  { name: "Vault.SECRETS.", says: "secrets/vault" },
  { name: "vault-0.vault.secrets", says: "secrets/vault" },
  { name: "other.secrets", says: "namespace secrets" },
  { name: "vault", says: "none" },
  { name: "vault.elsewhere", says: "none" },
  // Names of clouds end like a namespace may be called.
  { name: "ip-10-0-0-1.ec2.internal", says: "none" },
  // No search domain makes an endpoint of four labels.
  { name: "a.vault-0.vault.secrets", says: "none" },
  { name: "", says: "none" },
])("pods resolve $name as $says [join-service-names-1]", ({ name, says }) => {
  const [form] = shortFormsIn([name], cluster, undefined);
  expect(form === undefined ? "none" : (form.service ?? `namespace ${form.namespace}`)).toBe(says);
  expect(form?.name ?? name).toBe(name);
});

test.for([
  { title: "before it", joinedAt: "2026-01-03T00:00:00Z", isLater: false },
  { title: "in the same second", joinedAt: since, isLater: false },
  { title: "after it", joinedAt: "2026-01-01T00:00:00Z", isLater: true },
  { title: "and the machine has no name yet", joinedAt: undefined, isLater: false },
])(
  "a Service or a namespace was made, and the machine joined $title [join-service-names-2]",
  ({ joinedAt, isLater }) => {
    const names = ["vault.secrets", "vault-0.vault.secrets", "other.secrets"];
    expect(shortFormsIn(names, cluster, joinedAt)).toMatchObject([
      { service: "secrets/vault", isEndpoint: false, isLater },
      { service: "secrets/vault", isEndpoint: true, isLater },
      { service: undefined, isEndpoint: false, isLater },
    ]);
  },
);
