import type { KubeObject, Served } from "../schema/contract.ts";
import { Refusal } from "../schema/status.ts";
import type { Exchange } from "../access/exchange.ts";

/** A write, as those who may change or refuse it see it. */
export interface AdmissionRequest {
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** The version of `object`. */
  readonly served: Served;
  /** The version that the caller asked for, where a rule names another one of the same objects. */
  readonly requested?: Served;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** The object to be stored, in the version of the request; absent for deletions. */
  readonly object: KubeObject | undefined;
  readonly before: KubeObject | undefined;
  readonly dryRun: boolean;
  /** CreateOptions, UpdateOptions, … for webhooks that read them. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** One rule about writes. */
export interface AdmissionPlugin {
  /**
   * Sees who is to change what, before the change is made and without it: errors in a change quote the object, also to
   * callers who may not read it.
   */
  approach?(request: AdmissionRequest, exchange: Exchange): Refusal | undefined;
  /** May change `request.object` in place, or give another one. `undefined`: no objection and no new object. */
  mutate?(
    request: AdmissionRequest,
    exchange: Exchange,
  ): Refusal | KubeObject | undefined | Promise<Refusal | KubeObject | undefined>;
  /** Sees the object as it will be stored. */
  validate?(request: AdmissionRequest, exchange: Exchange): Refusal | undefined | Promise<Refusal | undefined>;
}

export interface Admission {
  /** Whether the caller may change this object at all. */
  approach(request: AdmissionRequest, exchange: Exchange): Refusal | undefined;
  /** The object to go on with. */
  mutate(request: AdmissionRequest, exchange: Exchange): Promise<KubeObject | undefined | Refusal>;
  validate(request: AdmissionRequest, exchange: Exchange): Promise<Refusal | undefined>;
}

/** Asks the plug-ins in order; the first refusal ends it. */
export function admissionChain(plugins: readonly AdmissionPlugin[]): Admission {
  return {
    approach(request, exchange) {
      for (const plugin of plugins) {
        const answer = plugin.approach?.(request, exchange);
        if (answer !== undefined) return answer;
      }
      return undefined;
    },
    async mutate(request, exchange) {
      let { object } = request;
      for (const plugin of plugins) {
        if (plugin.mutate === undefined) continue;
        const answer = await plugin.mutate(object === request.object ? request : { ...request, object }, exchange);
        if (answer instanceof Refusal) return answer;
        object = answer ?? object;
      }
      return object;
    },
    async validate(request, exchange) {
      for (const plugin of plugins) {
        const answer = await plugin.validate?.(request, exchange);
        if (answer !== undefined) return answer;
      }
      return undefined;
    },
  };
}
