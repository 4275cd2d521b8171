import { stringify } from "yaml";

/**
 * The manifest by which krew installs `kubectl mco` from the archive of a release.
 * Source of the form: krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
 *
 * @param archive the program below `lib/mco`, without links, which krew does not unpack.
 * @param downloads address of the folder with the release's files.
 */
export function krewManifest(given: {
  readonly version: string;
  readonly archive: { readonly name: string; readonly sha256: string };
  readonly downloads: string;
}): string {
  const { version, archive, downloads } = given;
  return stringify({
    apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
    kind: "Plugin",
    metadata: { name: "mco" },
    spec: {
      version: `v${version}`,
      homepage: downloads,
      shortDescription: "Plan, explain and follow changes of machine configuration",
      description:
        "Says of every machine which configuration it has and gets, what a change\n" +
        "would do to it before anything is stored, and why an update waits.\n",
      caveats: "The plugin runs with Node.js 24 or newer, as node in the PATH.\n",
      platforms: [
        {
          selector: { matchExpressions: [{ key: "os", operator: "In", values: ["linux", "darwin"] }] },
          uri: `${downloads.replace(/\/+$/, "")}/${archive.name}`,
          sha256: archive.sha256,
          files: [{ from: "lib/mco/*", to: "." }],
          bin: "mco.mjs",
        },
      ],
    },
  });
}

/** Why nobody could install from there; `undefined`: nothing is against it. */
export function downloadsProblem(downloads: string): string | undefined {
  const url = URL.parse(downloads);
  const isRight = url?.protocol === "https:" && url.search === "" && url.hash === "" && url.username === "";
  return isRight ? undefined : `DOWNLOADS is ${downloads}: name an https address without query, fragment or user`;
}
