import type { ApiTarget } from "../contract/api-target.ts";
import { Api, at } from "../contract/api-target.ts";
import { notWithin } from "../support/not-within.ts";
import { customResourceManifests } from "./kinds.ts";

const patienceMs = 30_000;

/** Installs the custom kinds, and waits until they are served. */
export async function prepareServer(target: ApiTarget): Promise<void> {
  const api = new Api(target);
  for (const manifest of customResourceManifests) {
    const made = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest);
    if (made.status !== 201 && made.status !== 409) throw new Error(made.text);
    const [group, plural, version] = [
      at(manifest, "spec.group"),
      at(manifest, "spec.names.plural"),
      at(manifest, "spec.versions.0.name"),
    ].map(String);
    const until = performance.now() + patienceMs;
    for (;;) {
      const reply = await api.get(`/apis/${group}/${version}/${plural}`);
      if (reply.status === 200) break;
      if (performance.now() > until)
        throw notWithin(patienceMs / 1000, `${plural} are served`, { status: reply.status, text: reply.text });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
