import { expect, test } from "vitest";
import { shortFormsIn } from "./service-names.ts";

const cluster = { namespaces: new Set(["secrets", "internal"]), services: new Set(["secrets/vault"]) };

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
  const [form] = shortFormsIn([name], cluster);
  expect(form === undefined ? "none" : (form.service ?? `namespace ${form.namespace}`)).toBe(says);
  expect(form?.name ?? name).toBe(name);
});
