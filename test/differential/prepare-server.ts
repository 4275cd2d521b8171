import type { ApiTarget } from "../contract/api-target.ts";
import { Api, at } from "../contract/api-target.ts";
import { untilSeen } from "../support/until-seen.ts";
import { customResourceManifests } from "./kinds.ts";

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
    await untilSeen(
      `${plural} are served`,
      () => api.get(`/apis/${group}/${version}/${plural}`),
      ({ status }) => status === 200,
    );
  }
}
