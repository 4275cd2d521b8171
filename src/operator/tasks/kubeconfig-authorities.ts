import { kubernetes } from "../../api/foreign/kubernetes.ts";
import { fieldManagers, namespace, objects } from "../../api/names.ts";
import {
  type AuthorityDecision,
  type AuthorityFacts,
  decideAuthorities,
} from "../../core/operator/decide-authorities.ts";
import { observeServerProof, ownMap } from "../cluster-sources.ts";
import { authoritiesWaitMsOf } from "../operator-options.ts";
import { type OperatorTask, taskDone } from "../operator-task.ts";
import { watchSources } from "../operator-watches.ts";

const bundleKey = "ca-bundle.crt";

/** Hands the API server's authorities to machines once they have stayed the same for a while. */
export const kubeconfigAuthorities: OperatorTask<AuthorityFacts, AuthorityDecision> = {
  name: "KubeconfigAuthorities",
  watches: [watchSources],

  observe: (context) => ({
    bundle: observeServerProof(context),
    handed: ownMap(objects.kubeconfigData, context)?.data?.[bundleKey],
    changing: context.memory.changingAuthorities,
    now: context.clock.monotonic(),
    waitMs: authoritiesWaitMsOf(context.options),
  }),

  decide: decideAuthorities,

  async perform(decision, { kube, memory, signal }) {
    switch (decision.do) {
      case "nothing":
        memory.changingAuthorities = undefined;
        return taskDone;
      case "wait":
        memory.changingAuthorities = decision.changing;
        return taskDone;
      case "handOver":
        memory.changingAuthorities = decision.changing;
        await kube.apply(
          kubernetes.ConfigMap,
          { metadata: { name: objects.kubeconfigData, namespace }, data: { [bundleKey]: decision.bundle } },
          { owner: fieldManagers.operator, signal },
        );
        memory.isHandingOver = !decision.isFirst;
        memory.changingAuthorities = undefined;
        return taskDone;
    }
  },
};
