import type { OwnerIds } from "../core/config/image-content.ts";
import type { ImageStore } from "./image-store.ts";

/**
 * Where an image keeps its accounts: vendor's first, so that the machine's own count more. Source of the first:
 * nss-altfiles.
 */
const folders = ["/usr/lib", "/usr/etc", "/etc"] as const;

/** Names and numbers of the users and groups that an image knows. @throws McoError as {@link ImageStore.readFiles}. */
export async function ownerIdsOf(
  store: Pick<ImageStore, "readFiles">,
  image: string,
  signal: AbortSignal,
): Promise<OwnerIds> {
  const files = await store.readFiles(
    image,
    folders.flatMap((folder) => [`${folder}/passwd`, `${folder}/group`]),
    signal,
  );
  const read = (name: string) => new Map(folders.flatMap((folder) => [...idsIn(files.get(`${folder}/${name}`))]));
  return { users: read("passwd"), groups: read("group") };
}

/** `name:password:number:…` in passwd(5) and group(5) alike. What is no such line is left out. */
function idsIn(file: Uint8Array | undefined): ReadonlyMap<string, number> {
  const lines = new TextDecoder().decode(file ?? new Uint8Array()).split("\n");
  return new Map(
    lines.flatMap((line) => {
      const [name = "", , number = ""] = line.split(":");
      return name !== "" && /^[0-9]{1,10}$/.test(number) ? [[name, Number(number)] as const] : [];
    }),
  );
}
