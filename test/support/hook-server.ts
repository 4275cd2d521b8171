import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Json } from "../contract/api-target.ts";
import { testAuthority } from "./test-pki.ts";

/** What a hook answers to a review: `response` without the uid, or anything that is not an answer. */
export type HookAnswer = { readonly response: Json } | { readonly status: number; readonly body: string } | "never";

/** Admission webhooks for cases, over HTTPS on loopback. */
export interface HookServer {
  /** Base64 of the PEM that `clientConfig.caBundle` wants. */
  readonly caBundle: string;
  /** Puts a hook at a path; returns its URL and the reviews that it was sent. */
  hook(name: string, answer: (review: Json) => HookAnswer): { readonly url: string; readonly reviews: readonly Json[] };
  close(): Promise<void>;
}

export async function startHookServer(): Promise<HookServer> {
  const authority = await testAuthority();
  const identity = await authority.server("127.0.0.1");
  const hooks = new Map<string, { readonly answer: (review: Json) => HookAnswer; readonly reviews: Json[] }>();
  const server = createServer({ cert: identity.certificate, key: identity.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const hook = hooks.get(new URL(request.url ?? "/", "https://hooks").pathname);
      if (hook === undefined) {
        response.writeHead(404).end();
        return;
      }
      const review = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { readonly request: Json };
      hook.reviews.push(review.request);
      const answer = hook.answer(review.request);
      if (answer === "never") return;
      if ("status" in answer) {
        response.writeHead(answer.status).end(answer.body);
        return;
      }
      response.writeHead(200, { "content-type": "application/json" }).end(
        JSON.stringify({
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          response: { uid: review.request["uid"], ...answer.response },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    caBundle: Buffer.from(authority.certificate).toString("base64"),
    hook(name, answer) {
      const reviews: Json[] = [];
      hooks.set(`/${name}`, { answer, reviews });
      return { url: `https://127.0.0.1:${port}/${name}`, reviews };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
