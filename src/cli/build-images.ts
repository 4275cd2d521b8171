import type { OpenImages } from "../os-builder/images.ts";
import type { Ports } from "../ports/index.ts";
import { type ImageStore, type ImageStoreSettings, imageStore } from "../registry/image-store.ts";
import type { httpsWire } from "../registry/node/https-wire.ts";
import { signatureVerifier } from "../registry/node/verify-signature.ts";
import { own } from "../api/schema/own.ts";

type Verifier = NonNullable<Parameters<typeof imageStore>[0]["verifier"]>;

/** Verifies with the keys in the text of a policy: where no machine is, a key that it names by path is not known. */
export const keysInPolicy: Verifier = (keys) => signatureVerifier(keys, async () => undefined);

/**
 * Images as builds see them: with their credentials, their mirrors, the signature policy of their configuration, and the
 * authorities that the cluster trusts.
 */
export function buildImages(
  wire: Pick<ReturnType<typeof httpsWire>, "send">,
  { clock, random }: Pick<Ports, "clock" | "random">,
): { readonly open: OpenImages; readonly storeFor: (settings: ImageStoreSettings) => ImageStore } {
  const storeFor = (settings: ImageStoreSettings) =>
    imageStore({ ...settings, wire: wire.send, clock, random, verifier: keysInPolicy });
  return {
    storeFor,
    open: ({ pull, push, certificates, trust, ...access }) =>
      storeFor({
        ...access,
        auth: { pull, push },
        certificates: async (host) => [...(own(certificates, host) ?? []), ...trust],
      }),
  };
}
