import { pushAll } from "../../api/schema/push-all.ts";
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

type Row = string[];

interface Range {
  readonly low: number;
  readonly high: number;
}

/** One database, with what its rows are looked up by: a configuration may have thousands of accounts. */
interface Table {
  rows: Row[];
  readonly byName: Map<string, Row[]>;
  /** How many rows have a number. */
  readonly numbers: Map<number, number>;
  /** Where the numbers of ordinary accounts lie, and the highest of them in use; `undefined`: to be looked for. */
  readonly ordinary: Range;
  highest: number | undefined;
}

function tableOf(text: string, ordinary: Range = { low: 1, high: 0 }): Table {
  const table: Table = { rows: [], byName: new Map(), numbers: new Map(), ordinary, highest: undefined };
  for (const line of text.split("\n")) if (line !== "") append(table, line.split(":"));
  return table;
}

const textOfTable = ({ rows }: Table): string => rows.map((row) => `${row.join(":")}\n`).join("");
const rowsOf = ({ byName }: Table, name: string): readonly Row[] => byName.get(name) ?? [];
const rowOf = (table: Table, name: string): Row | undefined => rowsOf(table, name)[0];
const isTaken = ({ numbers }: Table, number: number) => (numbers.get(number) ?? 0) > 0;

function append(table: Table, row: Row): void {
  const [name = ""] = row;
  table.rows.push(row);
  const same = table.byName.get(name);
  if (same === undefined) table.byName.set(name, [row]);
  else same.push(row);
  countNumber(table, row, 1);
}

function remove(table: Table, name: string): void {
  const gone = rowsOf(table, name);
  if (gone.length === 0) return;
  table.rows = table.rows.filter(([first]) => first !== name);
  table.byName.delete(name);
  for (const row of gone) countNumber(table, row, -1);
}

function renumber(table: Table, row: Row, number: number): void {
  countNumber(table, row, -1);
  row[2] = String(number);
  countNumber(table, row, 1);
}

function countNumber(table: Table, row: Row, by: 1 | -1): void {
  const number = Number(row[2]);
  table.numbers.set(number, (table.numbers.get(number) ?? 0) + by);
  if (by < 0) table.highest = undefined;
  else if (table.highest !== undefined && isIn(table.ordinary, number)) table.highest = Math.max(table.highest, number);
}

const isIn = ({ low, high }: Range, number: number) => number >= low && number <= high;

/** The highest number of an ordinary account in use; the one below their range where there is none. */
function highestOf(table: Table): number {
  table.highest ??= [...table.numbers].reduce(
    (highest, [number, rows]) => (rows > 0 && isIn(table.ordinary, number) ? Math.max(highest, number) : highest),
    table.ordinary.low - 1,
  );
  return table.highest;
}

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
  const setting = settingsOf(before.loginDefs);
  const tables: Tables = {
    passwd: tableOf(before.passwd, ordinaryRange(setting, "UID")),
    shadow: tableOf(before.shadow),
    group: tableOf(before.group, ordinaryRange(setting, "GID")),
    gshadow: tableOf(before.gshadow),
    hasGroupShadow: before.gshadow !== "",
    setting,
    today,
  };
  const memberships = membershipsIn(tables);
  const homes: AccountHome[] = [];
  try {
    for (const group of groups) ensureGroup(tables, group);
    for (const user of users) pushAll(homes, ensureUser(tables, memberships(), user));
  } catch (error) {
    if (error instanceof Refused) return { verdict: "refused", reason: error.message };
    throw error;
  }
  writeMembers(memberships());
  const { passwd, shadow, group, gshadow } = tables;
  return {
    verdict: "applied",
    files: {
      passwd: textOfTable(passwd),
      shadow: textOfTable(shadow),
      group: textOfTable(group),
      gshadow: textOfTable(gshadow),
    },
    homes,
  };
}

interface Tables {
  readonly passwd: Table;
  readonly shadow: Table;
  readonly group: Table;
  readonly gshadow: Table;
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

const ordinaryRange = (setting: Tables["setting"], kind: "UID" | "GID"): Range => ({
  low: Number(setting(`${kind}_MIN`) ?? 1000),
  high: Number(setting(`${kind}_MAX`) ?? 60_000),
});
const systemRange = (setting: Tables["setting"], kind: "UID" | "GID"): Range => ({
  low: Number(setting(`SYS_${kind}_MIN`) ?? 101),
  high: Number(setting(`SYS_${kind}_MAX`) ?? 999),
});

/** The number after the highest in use; for system accounts the highest free one, as shadow-utils choose. */
function freeNumber(tables: Tables, kind: "UID" | "GID", system: boolean, preferred?: number): number {
  const table = kind === "UID" ? tables.passwd : tables.group;
  const range = system ? systemRange(tables.setting, kind) : table.ordinary;
  if (preferred !== undefined && !isTaken(table, preferred) && isIn(range, preferred)) return preferred;
  if (system)
    for (let number = range.high; number >= range.low; number -= 1) if (!isTaken(table, number)) return number;
  if (!system && highestOf(table) < range.high) return highestOf(table) + 1;
  throw new Refused(`there is no free ${kind} between ${range.low} and ${range.high}`);
}

function ensureGroup(tables: Tables, { name, gid, passwordHash, shouldExist, system = false }: PasswdGroup): void {
  const there = rowOf(tables.group, name);
  if (shouldExist === false) {
    if (there !== undefined && tables.passwd.rows.some((row) => row[3] === there[2]))
      throw new Refused(`the group ${name} is some user's own and cannot be removed`);
    remove(tables.group, name);
    remove(tables.gshadow, name);
    return;
  }
  const hash = passwordHash === undefined ? undefined : passwordHash === "" ? "*" : passwordHash;
  if (there === undefined) addGroup(tables, name, gid ?? freeNumber(tables, "GID", system), hash ?? "*");
  else {
    if (gid !== undefined) renumber(tables.group, there, gid);
    const shadow = rowOf(tables.gshadow, name);
    const holder = tables.hasGroupShadow ? shadow : there;
    if (hash !== undefined && holder !== undefined) holder[1] = hash;
  }
}

function addGroup(tables: Tables, name: string, gid: number, hash: string): void {
  if (isTaken(tables.group, gid)) throw new Refused(`the group number ${gid} of ${name} is taken`);
  // A system without a group shadow file keeps the hash in the world-readable file.
  append(tables.group, [name, tables.hasGroupShadow ? "x" : hash, String(gid), ""]);
  if (tables.hasGroupShadow) append(tables.gshadow, [name, hash, "", ""]);
}

function ensureUser(tables: Tables, memberships: Memberships, user: PasswdUser): readonly AccountHome[] {
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
  if (uid !== undefined) renumber(tables.passwd, row, uid);
  if (primaryGroup !== undefined && primaryGroup !== "") row[3] = groupNumber(tables, primaryGroup);
  if (gecos !== undefined && gecos !== "") row[4] = gecos;
  if (shell !== undefined && shell !== "") row[6] = shell;
  if (groups.length > 0) joinGroups(tables, memberships, name, groups);
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
  const number = uid ?? freeNumber(tables, "UID", system);
  if (isTaken(tables.passwd, number)) throw new Refused(`the user number ${number} of ${name} is taken`);
  const ownGroup =
    noUserGroup !== true && (primaryGroup ?? "") === "" && (tables.setting("USERGROUPS_ENAB") ?? "yes") === "yes";
  if (ownGroup && rowOf(tables.group, name) !== undefined)
    throw new Refused(`the group ${name} is there: the user ${name} needs a primary group`);
  const gid = ownGroup ? freeNumber(tables, "GID", system, number) : 100;
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
  append(tables.passwd, row);
  const days = (key: string) => tables.setting(key) ?? "";
  append(tables.shadow, [
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
  const found = rowOf(tables.group, name);
  if (found !== undefined) return found[2] ?? "";
  if (/^\d+$/.test(name) && isTaken(tables.group, Number(name))) return name;
  throw new Refused(`there is no group ${name}`);
}

/** Who is in which group, as the rows of both databases of groups say. */
interface Memberships {
  readonly membersOf: Map<Row, Set<string>>;
  readonly rowsWith: Map<string, Set<Row>>;
  readonly changed: Set<Row>;
}

const membersIn = (row: Row) => new Set((row[3] ?? "").split(",").filter((member) => member !== ""));

/** Read once, when the first user is looked at: groups are not taken away after that, and new ones are empty. */
function membershipsIn({ group, gshadow }: Tables): () => Memberships {
  let found: Memberships | undefined;
  return () => {
    if (found !== undefined) return found;
    found = { membersOf: new Map(), rowsWith: new Map(), changed: new Set() };
    for (const row of [...group.rows, ...gshadow.rows]) {
      const members = membersIn(row);
      found.membersOf.set(row, members);
      for (const member of members) rowsWith(found, member).add(row);
    }
    return found;
  };
}

function rowsWith(memberships: Memberships, name: string): Set<Row> {
  const rows = memberships.rowsWith.get(name) ?? new Set();
  memberships.rowsWith.set(name, rows);
  return rows;
}

function setMember(memberships: Memberships, row: Row, name: string, isMember: boolean): void {
  const members = memberships.membersOf.get(row) ?? membersIn(row);
  memberships.membersOf.set(row, members);
  memberships.changed.add(row);
  if (isMember) {
    members.add(name);
    rowsWith(memberships, name).add(row);
  } else {
    members.delete(name);
    rowsWith(memberships, name).delete(row);
  }
}

function writeMembers({ membersOf, changed }: Memberships): void {
  for (const row of changed) row[3] = [...(membersOf.get(row) ?? [])].join(",");
}

/** The named groups replace all supplementary groups of the user (usermod(8), --groups). */
function joinGroups(tables: Tables, memberships: Memberships, name: string, groups: readonly string[]): void {
  for (const group of groups)
    if (rowOf(tables.group, group) === undefined) throw new Refused(`there is no group ${group}`);
  const wanted = new Set(groups.flatMap((group) => [...rowsOf(tables.group, group), ...rowsOf(tables.gshadow, group)]));
  const held = new Set(rowsWith(memberships, name));
  for (const row of held) if (!wanted.has(row)) setMember(memberships, row, name, false);
  for (const row of wanted) if (!held.has(row)) setMember(memberships, row, name, true);
}

function setPassword({ shadow, passwd, today }: Tables, name: string, hash: string): void {
  let row = rowOf(shadow, name);
  if (row === undefined) {
    append(shadow, (row = [name, hash, "", "", "", "", "", "", ""]));
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
