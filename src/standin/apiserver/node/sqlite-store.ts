import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { McoError } from "../../../api/errors.ts";
import {
  charactersOf,
  type Store,
  type StoredEvent,
  type StoredObject,
  type StoreKey,
  type WriteOutcome,
} from "../storage/store.ts";

export interface SqliteStoreOptions {
  /** The database file; its folder exists. */
  readonly file: string;
  /**
   * `processKill` (default): an acknowledged write survives `kill -9`. `powerCut`: also the loss of the machine, one
   * fsync a write.
   */
  readonly survives?: "processKill" | "powerCut";
}

/** One step for each format of the file; `user_version` counts those that were done. Only ever append. */
const migrations: readonly string[] = [
  `CREATE TABLE objects (
     resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
     revision INTEGER NOT NULL, value TEXT NOT NULL,
     PRIMARY KEY (resource, namespace, name)
   );
   CREATE TABLE events (
     revision INTEGER PRIMARY KEY, type TEXT NOT NULL,
     resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
     value TEXT NOT NULL, previous INTEGER
   );
   CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
   INSERT INTO counters (name, value) VALUES ('revision', 1), ('compacted', 0);`,
];

/**
 * Opens (or creates) a store in an SQLite file. The process that opens it owns it exclusively. Throws MCO_STORE_NEWER
 * for a file of a later release, MCO_STORE_LOCKED while another process has it open, MCO_STORE_UNUSABLE for anything
 * else.
 */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const { file, survives = "processKill" } = options;
  const db = open(file, survives);

  const statements = {
    get: db.prepare("SELECT revision, value FROM objects WHERE resource = ? AND namespace = ? AND name = ?"),
    page: db.prepare(
      `SELECT resource, namespace, name, revision, value FROM objects
       WHERE (resource, namespace, name) > (?, ?, ?) AND (? IS NULL OR resource = ?) AND (? IS NULL OR namespace = ?)
       ORDER BY resource, namespace, name LIMIT ?`,
    ),
    insert: db.prepare("INSERT INTO objects (resource, namespace, name, revision, value) VALUES (?, ?, ?, ?, ?)"),
    replace: db.prepare("UPDATE objects SET revision = ?, value = ? WHERE resource = ? AND namespace = ? AND name = ?"),
    remove: db.prepare("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"),
    log: db.prepare(
      "INSERT INTO events (revision, type, resource, namespace, name, value, previous) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    events: db.prepare(
      `SELECT e.revision, e.type, e.resource, e.namespace, e.name, e.value, p.revision AS previous, p.value AS previousValue
       FROM events e LEFT JOIN events p ON p.revision = e.previous
       WHERE e.revision > ? AND (? IS NULL OR e.resource = ?) AND (? IS NULL OR e.namespace = ?)
       ORDER BY e.revision LIMIT ?`,
    ),
    forget: db.prepare("DELETE FROM events WHERE revision <= ?"),
    count: db.prepare("UPDATE counters SET value = ? WHERE name = ?"),
    counter: db.prepare("SELECT value FROM counters WHERE name = ?"),
  };
  let revision = Number(statements.counter.get("revision")?.["value"] ?? 1);
  let compactedThrough = Number(statements.counter.get("compacted")?.["value"] ?? 0);

  function get(key: StoreKey): StoredObject | undefined {
    const row = statements.get.get(key.resource, key.namespace, key.name);
    return row === undefined ? undefined : { key, revision: Number(row["revision"]), value: String(row["value"]) };
  }

  function transact(work: () => void): void {
    db.exec("BEGIN IMMEDIATE");
    try {
      work();
      db.exec("COMMIT");
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      throw new McoError("MCO_STORE_UNUSABLE", { file }, { cause: error });
    }
  }

  function write(
    type: StoredEvent["type"],
    key: StoreKey,
    value: string,
    before: StoredObject | undefined,
  ): WriteOutcome {
    const next = revision + 1;
    transact(() => {
      if (type === "ADDED") statements.insert.run(key.resource, key.namespace, key.name, next, value);
      else if (type === "MODIFIED") statements.replace.run(next, value, key.resource, key.namespace, key.name);
      else statements.remove.run(key.resource, key.namespace, key.name);
      statements.log.run(next, type, key.resource, key.namespace, key.name, value, before?.revision ?? null);
      statements.count.run(next, "revision");
    });
    revision = next;
    return { outcome: "written", revision };
  }

  return {
    revision: () => revision,
    compactedThrough: () => compactedThrough,
    get,
    list({ resource, namespace, after, limit }) {
      const rows = statements.page.all(
        after?.resource ?? "",
        after?.namespace ?? "",
        after?.name ?? "",
        resource ?? null,
        resource ?? null,
        namespace ?? null,
        namespace ?? null,
        limit === undefined ? -1 : limit + 1,
      );
      const items = rows.map((row) => ({
        key: { resource: String(row["resource"]), namespace: String(row["namespace"]), name: String(row["name"]) },
        revision: Number(row["revision"]),
        value: String(row["value"]),
      }));
      if (limit === undefined || items.length <= limit) return { items, next: undefined };
      items.pop();
      return { items, next: items.at(-1)?.key };
    },
    create(key, value) {
      if (get(key) !== undefined) return { outcome: "exists" };
      return write("ADDED", key, value, undefined);
    },
    update(key, expected, value) {
      const before = get(key);
      if (before === undefined) return { outcome: "absent" };
      if (before.revision !== expected) return { outcome: "changed", revision: before.revision };
      return write("MODIFIED", key, value, before);
    },
    delete(key, expected, finalValue) {
      const before = get(key);
      if (before === undefined) return { outcome: "absent" };
      if (before.revision !== expected) return { outcome: "changed", revision: before.revision };
      return write("DELETED", key, finalValue, before);
    },
    events(since, limit, { resource = null, namespace = null, characters = Infinity } = {}) {
      if (since < compactedThrough) return { verdict: "compacted", through: compactedThrough };
      const events: StoredEvent[] = [];
      let left = characters;
      // One after the other: all rows at once may not fit into memory.
      for (const row of statements.events.iterate(since, resource, resource, namespace, namespace, limit)) {
        const event = eventOf(row);
        left -= charactersOf(event);
        if (left < 0) return { verdict: "tooLong" };
        events.push(event);
      }
      return { verdict: "events", events };
    },
    compact(through) {
      const upTo = Math.min(through, revision);
      if (upTo <= compactedThrough) return;
      transact(() => {
        statements.forget.run(upTo);
        statements.count.run(upTo, "compacted");
      });
      compactedThrough = upTo;
    },
    close() {
      if (db.isOpen) db.close();
    },
  };
}

function eventOf(row: Readonly<Record<string, unknown>>): StoredEvent {
  const type = String(row["type"]);
  return {
    type: type === "ADDED" || type === "DELETED" ? type : "MODIFIED",
    key: { resource: String(row["resource"]), namespace: String(row["namespace"]), name: String(row["name"]) },
    revision: Number(row["revision"]),
    value: String(row["value"]),
    previous:
      row["previous"] === null ? undefined : { revision: Number(row["previous"]), value: String(row["previousValue"]) },
  };
}

/** The name of a database without a file: https://www.sqlite.org/inmemorydb.html */
const noFile = ":memory:";

/** Holds every Secret of the cluster: for its owner alone. SQLite gives its other files the mode of the database. */
function closeToOthers(file: string): void {
  if (file === noFile) return;
  closeSync(openSync(file, "a", 0o600));
  for (const path of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`]) {
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
    if ((mode & 0o077) !== 0) chmodSync(path, 0o600);
  }
}

function open(file: string, survives: "processKill" | "powerCut"): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    closeToOthers(file);
    db = new DatabaseSync(file);
    // Exclusive: two servers on one file would each count revisions on their own.
    db.exec("PRAGMA locking_mode = EXCLUSIVE");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec(`PRAGMA synchronous = ${survives === "powerCut" ? "FULL" : "NORMAL"}`);
    const version = Number(db.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
    if (version > migrations.length)
      throw new McoError("MCO_STORE_NEWER", { file, version, understood: migrations.length });
    for (const [index, migration] of migrations.entries()) {
      if (index < version) continue;
      db.exec(`BEGIN EXCLUSIVE; ${migration} PRAGMA user_version = ${index + 1}; COMMIT`);
    }
    // Takes the lock now, not with the first write.
    db.exec("BEGIN IMMEDIATE; COMMIT");
    return db;
  } catch (error) {
    if (db?.isOpen === true) db.close();
    if (error instanceof McoError) throw error;
    const locked = error instanceof Error && error.message.includes("locked");
    throw new McoError(locked ? "MCO_STORE_LOCKED" : "MCO_STORE_UNUSABLE", { file }, { cause: error });
  }
}
