import { expect, test } from "vitest";
import { type ImagePolicy, openshift } from "../../api/foreign/openshift.ts";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { mostStoredTextBytes, mostTextCharacters } from "../../ignition/held-contents.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { ownPolicy, ownRegistriesConf } from "../render/base-configs.ts";
import { fileText } from "../render/config-file.ts";
import { decideRegistries } from "./decide-registries.ts";
import { namespacePolicyPath, sigstorePath } from "./registries-config.ts";
import { type RegistryObjects, noRegistries } from "./registry-objects.ts";
import { type UnreadPlaces, noneTaken } from "./uncertain-places.ts";

const policy = (namespace: string, scopes: readonly string[], keyData = "QUJD"): ImagePolicy => ({
  apiVersion: openshift.ImagePolicy.apiVersion,
  kind: "ImagePolicy",
  metadata: { name: "p", namespace },
  spec: { scopes, policy: { rootOfTrust: { policyType: "PublicKey", publicKey: { keyData } } } },
});

const unread: UnreadPlaces = { config: "99-infra", reason: "x.yaml: it is no object", remedy: "write it" };

const decide = (
  objects: Partial<RegistryObjects>,
  { present, isUnread = false }: { readonly present?: MachineConfig; readonly isUnread?: boolean } = {},
) =>
  decideRegistries({
    pool: "worker",
    objects: { ...noRegistries, ...objects },
    base: {
      registries: ownRegistriesConf,
      policy: ownPolicy,
      taken: isUnread ? { ...noneTaken, unread: [unread] } : noneTaken,
    },
    present,
    owner: { apiVersion: "v1", kind: "ControllerConfig", metadata: { name: "owner", uid: "1" } },
    generatorVersion: "1",
  });

function written(objects: Partial<RegistryObjects>): MachineConfig {
  const decision = decide(objects);
  if (decision.do !== "write") throw new Error(decision.do);
  return decision.config;
}

const shopPath = namespacePolicyPath("shop");
const sizeOf = (config: MachineConfig, path: string) => fileText(config, path, mostStoredTextBytes)?.length ?? 0;

const largePolicy = {
  imagePolicies: [policy("shop", scopesOf("quay.io/shop", 14), "QUJD".repeat(2500))],
};
const largePlaces: Partial<RegistryObjects> = {
  imagePolicies: [policy("shop", ["quay.io/shop"]), policy("evil", scopesOf(`quay.io/${"x".repeat(180)}`, 230))],
  digestMirrorSets: [
    {
      apiVersion: openshift.ImageDigestMirrorSet.apiVersion,
      kind: "ImageDigestMirrorSet",
      metadata: { name: "m" },
      spec: {
        imageDigestMirrors: [
          { source: "quay.io", mirrors: scopesOf("mirror", 5).map((host) => `${host}.example.com/quay`) },
        ],
      },
    },
  ],
};

function scopesOf(prefix: string, count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`);
}

test.for([
  { title: "a policy of its own", objects: largePolicy, path: shopPath },
  { title: "the places of all", objects: largePlaces, path: sigstorePath },
])("what machines have stays in force whatever its size: $title [runtime-policies-in-force-1]", ({ objects, path }) => {
  const present = written(objects);
  expect(sizeOf(present, path)).toBeGreaterThan(mostTextCharacters);
  for (let pass = 0; pass < 2; pass++) {
    const decision = decide(objects, { present, isUnread: true });
    expect(decision).toMatchObject({ do: "write", leftOut: [] });
    if (decision.do === "write") expect(decision.config.spec).toEqual(present.spec);
  }
});

test.for([
  { title: "a policy that is no JSON", path: shopPath, text: "{" },
  { title: "a policy that is no object", path: shopPath, text: "[]" },
  { title: "a policy that is no text", path: shopPath, text: new Uint8Array([255]) },
  { title: "a policy beyond what an object holds", path: shopPath, text: " ".repeat(mostStoredTextBytes + 1) },
  { title: "places that are no YAML", path: sigstorePath, text: "docker: [" },
])(
  "while $title cannot be read of what machines have, they keep all of it, and the refusal says why [runtime-policies-in-force-2]",
  ({ path, text }) => {
    const objects = { imagePolicies: [policy("shop", ["quay.io/shop"])] };
    const present = withText(written(objects), path, text);
    const decision = decide(objects, { present, isUnread: true });
    expect(decision).toMatchObject({
      do: "refuse",
      cutsOff: false,
      problems: [{ object: "MachineConfig/99-worker-generated-registries", path }],
    });
    if (decision.do === "refuse") expect(decision.kept?.spec).toEqual(present.spec);
    // Where every place is known, nothing depends on what machines have.
    expect(decide(objects, { present })).toMatchObject({ do: "write", leftOut: [] });
  },
);

/** A generated MachineConfig of which another writer has replaced one file. */
function withText(config: MachineConfig, path: string, text: string | Uint8Array): MachineConfig {
  const { config: ignition } = config.spec as {
    readonly config: { readonly storage: { readonly files: readonly { readonly path: string }[] } };
  };
  const files = ignition.storage.files.map((file) =>
    file.path === path ? { ...file, contents: { source: encodeDataUrl(text) } } : file,
  );
  return { ...config, spec: { config: { ...ignition, storage: { files } } } };
}
