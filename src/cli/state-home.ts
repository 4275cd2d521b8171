import { statSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { McoError } from "../api/errors.ts";

/**
 * Where programs of this user keep their state (XDG Base Directory Specification): `$XDG_STATE_HOME`, or `.local/state` of
 * the home. A `$HOME` of another user, as `sudo -E` leaves it, gives way to the home that this user is registered with:
 * what root wrote into the other one, its user could not change. One who is not registered, as in a container with a user
 * by number, has `$HOME` alone.
 *
 * @throws McoError `MCO_CLUSTER_REGISTER`
 */
export function stateHome(
  environment: Readonly<Record<string, string | undefined>>,
  user: { readonly uid: number; registeredHome(): string | undefined } = thisUser,
): string {
  const { XDG_STATE_HOME = "", HOME = "" } = environment;
  if (isAbsolute(XDG_STATE_HOME)) return XDG_STATE_HOME;
  const named = isAbsolute(HOME) ? HOME : undefined;
  const home = named !== undefined && ownerOf(named) === user.uid ? named : (user.registeredHome() ?? named);
  if (home === undefined || !isAbsolute(home))
    throw new McoError("MCO_CLUSTER_REGISTER", { problem: "this user has no home: $HOME is not set" });
  return join(home, ".local/state");
}

const thisUser = {
  uid: process.geteuid?.() ?? 0,
  registeredHome(): string | undefined {
    try {
      return userInfo().homedir;
    } catch {
      // No entry for the user's number.
      return undefined;
    }
  },
};

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    return undefined;
  }
}
