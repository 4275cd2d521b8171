import { timestampOf } from "../api/schema/object.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { tokenStay } from "../core/join/ended-tokens.ts";
import { type Controller, watching } from "../kube/controller.ts";
import { isConflict } from "../kube/kube-error.ts";
import { done } from "../kube/outcome.ts";

/** Removes ProvisioningTokens that have been of no use for a day. No pass runs before the next one is due. */
export function tokenController(): Controller {
  return {
    name: "token",
    watches: [watching({ resource: ProvisioningToken })],
    owns: ["ProvisioningToken.deletion"],

    async reconcile(name, { kube, caches, clock, log, signal }) {
      const token = caches.of(ProvisioningToken).get(name);
      if (token === undefined) return done();
      const now = clock.now();
      const stay = tokenStay(token, now);
      if (stay.verdict === "stays") return done(stay.until === undefined ? undefined : (stay.until - now) / 1000);
      const { uid, resourceVersion } = token.metadata;
      try {
        await kube.delete(
          ProvisioningToken,
          { name },
          {
            signal,
            ...(uid === undefined ? {} : { uid }),
            ...(resourceVersion === undefined ? {} : { resourceVersion }),
          },
        );
      } catch (error) {
        // Another writer changed it, for example to give a use back: the watch reports it and leads to the next pass.
        if (!isConflict(error)) throw error;
        return done();
      }
      log.info(
        {
          token: name,
          pool: token.spec.pool,
          because: stay.because,
          endedAt: timestampOf(stay.endedAt),
          uses: token.status?.uses ?? 0,
        },
        "provisioning token removed",
      );
      return done();
    },
  };
}
