import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";

/** How often a claim is renewed, and after how long without that it counts no more. */
const renewMs = 10_000;
const staleMs = 60_000;

export interface Claim {
  /** Whether no other process has the folder now. */
  isAlone(): Promise<boolean>;
  /** `keepsClaim`: it is not renewed any more, and counts until it is stale, or its process ends. */
  release(how?: { readonly keepsClaim: boolean }): Promise<void>;
}

/**
 * Which processes can see each other, this process, and when it began: an id alone may have been given to another one
 * since.
 */
interface Holder {
  readonly namespace: string;
  readonly pid: string;
  readonly began: string;
}

/** Source of the fields' places: proc(5). */
async function holderOf(files: Files, pid: string): Promise<Holder | undefined> {
  const stat = await files.readText(`/proc/${pid}/stat`);
  const namespace = await files.readLink("/proc/self/ns/pid");
  if (stat === undefined || namespace === undefined) return undefined;
  return {
    namespace,
    pid: stat.slice(0, stat.indexOf(" ")),
    began: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "",
  };
}

/**
 * Marks a folder as in use for other builds of this machine. A claim counts while its process runs; where builds are in
 * containers that cannot see each other's processes, while it is renewed.
 */
export async function claimFolder(
  folder: string,
  id: string,
  { files, clock }: { readonly files: Files; readonly clock: Clock },
): Promise<Claim> {
  const claims = `${folder}/running`;
  const own = `${claims}/${id.replaceAll(/[^A-Za-z0-9.-]/g, "_").slice(-200)}`;
  const holder = await holderOf(files, "self");
  const write = () => files.write(own, JSON.stringify({ ...holder, at: clock.now() }));
  const isHeld = async (text: string): Promise<boolean> => {
    const claim = JSON.parse(text) as Partial<Holder> & { readonly at: number };
    if (claim.pid === undefined || claim.namespace !== holder?.namespace) return clock.now() - claim.at < staleMs;
    return (await holderOf(files, claim.pid))?.began === claim.began;
  };
  await write();
  const released = new AbortController();
  const renewing = (async () => {
    for (;;) {
      await clock.sleep(renewMs, released.signal).catch(() => undefined);
      if (released.signal.aborted) return;
      // A disk that is full shows in the build itself.
      await write().catch(() => undefined);
    }
  })();
  return {
    async isAlone() {
      let alone = true;
      for (const name of await files.list(claims)) {
        const path = `${claims}/${name}`;
        if (path === own || name.startsWith(".")) continue;
        const text = await files.readText(path);
        if (text === undefined) continue;
        if (await isHeld(text)) alone = false;
        else await files.remove(path);
      }
      return alone;
    },
    async release({ keepsClaim } = { keepsClaim: false }) {
      released.abort(new Error("released"));
      await renewing;
      if (!keepsClaim) await files.remove(own);
    },
  };
}
