import type { Passwd, PasswdGroup, PasswdUser } from "../../ignition/index.ts";

/** The account databases of a root file system: passwd(5), shadow(5), group(5), gshadow(5), and login.defs(5). */
export interface AccountFiles {
  readonly passwd: string;
  readonly shadow: string;
  readonly group: string;
  readonly gshadow: string;
  readonly loginDefs: string;
}

/** A required home directory, and the keys that may log in to it. */
export interface AccountHome {
  readonly name: string;
  readonly home: string;
  readonly uid: number;
  readonly gid: number;
  /** Permission bits of a home directory to create; `undefined`: do not create it. */
  readonly makeMode: number | undefined;
  readonly keys: readonly string[];
}

export type AppliedAccounts =
  | {
      readonly verdict: "applied";
      readonly files: Omit<AccountFiles, "loginDefs">;
      readonly homes: readonly AccountHome[];
    }
  | { readonly verdict: "refused"; readonly reason: string };

type Rows = string[][];
const rowsOf = (text: string): Rows =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(":"));
const textOfRows = (rows: Rows): string => rows.map((row) => `${row.join(":")}\n`).join("");
const rowOf = (rows: Rows, name: string) => rows.find(([first]) => first === name);

class Refused extends Error {}

/**
 * Applies the accounts of a configuration as Ignition does through shadow-utils: coreos/ignition
 * internal/exec/util/passwd.go (main), groupadd(8), useradd(8), usermod(8).
 *
 * @param today days since the epoch: what shadow(5) dates passwords by.
 */
export function applyAccounts(
  before: AccountFiles,
  { groups = [], users = [] }: Passwd,
  today: number,
): AppliedAccounts {
  const tables: Tables = {
    passwd: rowsOf(before.passwd),
    shadow: rowsOf(before.shadow),
    group: rowsOf(before.group),
    gshadow: rowsOf(before.gshadow),
    hasGroupShadow: before.gshadow !== "",
    setting: settingsOf(before.loginDefs),
    today,
  };
  const homes: AccountHome[] = [];
  try {
    for (const group of groups) ensureGroup(tables, group);
    for (const user of users) homes.push(...ensureUser(tables, user));
  } catch (error) {
    if (error instanceof Refused) return { verdict: "refused", reason: error.message };
    throw error;
  }
  const { passwd, shadow, group, gshadow } = tables;
  return {
    verdict: "applied",
    files: {
      passwd: textOfRows(passwd),
      shadow: textOfRows(shadow),
      group: textOfRows(group),
      gshadow: textOfRows(gshadow),
    },
    homes,
  };
}

interface Tables {
  readonly passwd: Rows;
  readonly shadow: Rows;
  readonly group: Rows;
  readonly gshadow: Rows;
  readonly hasGroupShadow: boolean;
  readonly setting: (name: string) => string | undefined;
  readonly today: number;
}

function settingsOf(text: string): Tables["setting"] {
  const settings = new Map(
    text.split("\n").flatMap((line) => {
      const [name = "", value] = line.trim().split(/\s+/);
      return name === "" || name.startsWith("#") || value === undefined ? [] : [[name, value] as const];
    }),
  );
  return (name) => settings.get(name);
}

const numbersIn = (rows: Rows) => new Set(rows.map((row) => Number(row[2])));

/** The number after the highest in use; for system accounts the highest free one, as shadow-utils choose. */
function freeNumber(
  { setting }: Tables,
  used: ReadonlySet<number>,
  kind: "UID" | "GID",
  system: boolean,
  preferred?: number,
): number {
  const [low, high] = system
    ? [Number(setting(`SYS_${kind}_MIN`) ?? 101), Number(setting(`SYS_${kind}_MAX`) ?? 999)]
    : [Number(setting(`${kind}_MIN`) ?? 1000), Number(setting(`${kind}_MAX`) ?? 60_000)];
  if (preferred !== undefined && !used.has(preferred) && preferred >= low && preferred <= high) return preferred;
  if (system) for (let number = high; number >= low; number -= 1) if (!used.has(number)) return number;
  const highest = Math.max(low - 1, ...[...used].filter((number) => number >= low && number <= high));
  if (highest < high && !system) return highest + 1;
  throw new Refused(`there is no free ${kind} between ${low} and ${high}`);
}

function ensureGroup(tables: Tables, { name, gid, passwordHash, shouldExist, system = false }: PasswdGroup): void {
  const there = rowOf(tables.group, name);
  if (shouldExist === false) {
    if (there !== undefined && tables.passwd.some((row) => row[3] === there[2]))
      throw new Refused(`the group ${name} is some user's own and cannot be removed`);
    for (const table of [tables.group, tables.gshadow])
      table.splice(0, table.length, ...table.filter(([first]) => first !== name));
    return;
  }
  const hash = passwordHash === undefined ? undefined : passwordHash === "" ? "*" : passwordHash;
  if (there === undefined)
    addGroup(tables, name, gid ?? freeNumber(tables, numbersIn(tables.group), "GID", system), hash ?? "*");
  else {
    if (gid !== undefined) there[2] = String(gid);
    const shadow = rowOf(tables.gshadow, name);
    const holder = tables.hasGroupShadow ? shadow : there;
    if (hash !== undefined && holder !== undefined) holder[1] = hash;
  }
}

function addGroup(tables: Tables, name: string, gid: number, hash: string): void {
  if (numbersIn(tables.group).has(gid)) throw new Refused(`the group number ${gid} of ${name} is taken`);
  // A system without a group shadow file keeps the hash in the world-readable file.
  tables.group.push([name, tables.hasGroupShadow ? "x" : hash, String(gid), ""]);
  if (tables.hasGroupShadow) tables.gshadow.push([name, hash, "", ""]);
}

function ensureUser(tables: Tables, user: PasswdUser): readonly AccountHome[] {
  const { name, shouldExist, passwordHash, uid, gecos, primaryGroup, groups = [], shell, homeDir } = user;
  const there = rowOf(tables.passwd, name);
  if (shouldExist === false) {
    if (there !== undefined)
      throw new Refused(`the user ${name} is there, and a machine in a folder takes no users away`);
    return [];
  }
  const hash =
    passwordHash === undefined ? (there === undefined ? "*" : undefined) : passwordHash === "" ? "*" : passwordHash;
  const row = there ?? addUser(tables, user);
  if (there !== undefined && homeDir !== undefined && homeDir !== "" && homeDir !== there[5])
    throw new Refused(`the user ${name} is there, and its home cannot be moved`);
  if (uid !== undefined) row[2] = String(uid);
  if (primaryGroup !== undefined && primaryGroup !== "") row[3] = groupNumber(tables, primaryGroup);
  if (gecos !== undefined && gecos !== "") row[4] = gecos;
  if (shell !== undefined && shell !== "") row[6] = shell;
  if (groups.length > 0) joinGroups(tables, name, groups);
  if (hash !== undefined) setPassword(tables, name, hash);
  const makeMode = there === undefined && user.noCreateHome !== true ? homeMode(tables) : undefined;
  return [
    {
      name,
      home: row[5] ?? "/",
      uid: Number(row[2]),
      gid: Number(row[3]),
      makeMode,
      keys: user.sshAuthorizedKeys ?? [],
    },
  ];
}

function addUser(
  tables: Tables,
  { name, uid, system = false, noUserGroup, primaryGroup, homeDir }: PasswdUser,
): string[] {
  const number = uid ?? freeNumber(tables, numbersIn(tables.passwd), "UID", system);
  if (numbersIn(tables.passwd).has(number)) throw new Refused(`the user number ${number} of ${name} is taken`);
  const ownGroup =
    noUserGroup !== true && (primaryGroup ?? "") === "" && (tables.setting("USERGROUPS_ENAB") ?? "yes") === "yes";
  if (ownGroup && rowOf(tables.group, name) !== undefined)
    throw new Refused(`the group ${name} is there: the user ${name} needs a primary group`);
  const gid = ownGroup ? freeNumber(tables, numbersIn(tables.group), "GID", system, number) : 100;
  if (ownGroup) addGroup(tables, name, gid, "!");
  const row = [
    name,
    "x",
    String(number),
    String(gid),
    "",
    homeDir === undefined || homeDir === "" ? `/home/${name}` : homeDir,
    "/bin/bash",
  ];
  tables.passwd.push(row);
  const days = (key: string) => tables.setting(key) ?? "";
  tables.shadow.push([
    name,
    "!",
    String(tables.today),
    ...(system ? ["", "", ""] : [days("PASS_MIN_DAYS"), days("PASS_MAX_DAYS"), days("PASS_WARN_AGE")]),
    "",
    "",
    "",
  ]);
  return row;
}

function groupNumber(tables: Tables, name: string): string {
  const found = rowOf(tables.group, name) ?? tables.group.find((row) => row[2] === name);
  if (found === undefined) throw new Refused(`there is no group ${name}`);
  return found[2] ?? "";
}

/** The named groups replace all supplementary groups of the user (usermod(8), --groups). */
function joinGroups(tables: Tables, name: string, groups: readonly string[]): void {
  for (const group of groups)
    if (rowOf(tables.group, group) === undefined) throw new Refused(`there is no group ${group}`);
  for (const rows of [tables.group, tables.gshadow]) {
    for (const row of rows) {
      const members = (row[3] ?? "").split(",").filter((member) => member !== "");
      const wanted = groups.includes(row[0] ?? "");
      if (members.includes(name) !== wanted)
        row[3] = (wanted ? [...members, name] : members.filter((member) => member !== name)).join(",");
    }
  }
}

function setPassword({ shadow, passwd, today }: Tables, name: string, hash: string): void {
  let row = rowOf(shadow, name);
  if (row === undefined) {
    shadow.push((row = [name, hash, "", "", "", "", "", "", ""]));
    const account = rowOf(passwd, name);
    if (account !== undefined) account[1] = "x";
  }
  row[1] = hash;
  row[2] = String(today);
}

function homeMode({ setting }: Tables): number {
  const mode = setting("HOME_MODE");
  return mode === undefined ? 0o777 & ~Number.parseInt(setting("UMASK") ?? "022", 8) : Number.parseInt(mode, 8);
}
