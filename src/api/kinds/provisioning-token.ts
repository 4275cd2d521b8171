import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { maxMachineAddresses } from "./node-binding.ts";
import { atomicList, dateTime, dnsName } from "../schema/schema.ts";

/** How many machines the status lists: those that used the token last. */
export const maxLastUsedBy = 10;

export const ProvisioningToken = defineResource({
  kind: "ProvisioningToken",
  plural: "provisioningtokens",
  version: "v1alpha1",
  scope: "Cluster",
  shortNames: ["pt"],
  description:
    "A right to fetch a pool's configuration from the config server. Its name is the first half of the token; of the second only a hash is kept. Deleting it takes the right away.",
  spec: Type.Object({
    pool: dnsName({ description: "Pool whose configuration it gives." }),
    tokenHash: Type.String({
      minLength: 64,
      maxLength: 64,
      pattern: "^[0-9a-f]{64}$",
      description: "SHA-256 of the second half of the token, in hexadecimal digits.",
    }),
    expiresAt: Type.Optional(dateTime({ description: "When it ends." })),
    maxUses: Type.Optional(
      Type.Integer({
        minimum: 1,
        format: "int32",
        description: "How many configurations it gives before it is used up.",
      }),
    ),
    node: Type.Optional(
      dnsName({
        description:
          "Name of the machine that it is for: only a node of this name may join by it, and no other pool's machine may take the name.",
      }),
    ),
    addresses: Type.Optional(
      atomicList(Type.String({ maxLength: 64 }), {
        maxItems: maxMachineAddresses,
        description: "Addresses of that machine, beside the one that it fetches its configuration from.",
      }),
    ),
  }),
  status: Type.Object({
    uses: Type.Optional(
      Type.Integer({ minimum: 0, format: "int32", description: "Configurations that it has given." }),
    ),
    lastUsedAt: Type.Optional(dateTime({ description: "When it last gave one." })),
    lastUsedBy: Type.Optional(
      atomicList(Type.String({ maxLength: 128 }), {
        maxItems: maxLastUsedBy,
        description: "Whom it last gave one, the newest first.",
      }),
    ),
  }),
  rules: [
    {
      rule: "self.metadata.name.matches('^[a-z0-9]{10}$')",
      message: "a ProvisioningToken is named by the first half of its token: 10 characters of a-z and 0-9",
    },
    {
      rule: "has(self.spec.expiresAt) || has(self.spec.maxUses)",
      message: "a token ends: give expiresAt, maxUses or both",
    },
    { rule: "self.spec == oldSelf.spec", message: "the spec of a ProvisioningToken never changes: make another one" },
  ],
  columns: [
    { name: "Pool", type: "string", jsonPath: ".spec.pool", description: "Pool whose configuration it gives." },
    { name: "Expires", type: "string", jsonPath: ".spec.expiresAt", description: "When it ends." },
    { name: "Uses", type: "integer", jsonPath: ".status.uses", description: "Configurations that it has given." },
    { name: "Max", type: "integer", jsonPath: ".spec.maxUses", description: "How many it gives." },
    { name: "Last-Used", type: "date", jsonPath: ".status.lastUsedAt", description: "Time since it last gave one." },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type ProvisioningToken = ResourceOf<typeof ProvisioningToken>;
