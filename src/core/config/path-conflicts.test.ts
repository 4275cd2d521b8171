import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type IgnitionConfig, emptyIgnition } from "../../ignition/types.ts";
import { type PathClaim, pathClaims, pathConflicts, resolvedPathOf } from "./path-conflicts.ts";

const file = (path: string) => ({ path, contents: { source: "data:," } });
const conflictsOf = (parts: Partial<IgnitionConfig>) =>
  pathConflicts(pathClaims({ ...emptyIgnition, ...parts })).map(
    ({ how, first, second }) => `${how}: ${first.field} ${second.field}`,
  );
const unit = (name: string, more: object) => ({ systemd: { units: [{ name, ...more }] } });
const core = { passwd: { users: [{ name: "core", sshAuthorizedKeys: ["k"] }] } };

describe("paths that exclude each other", () => {
  test.for<[string, Partial<IgnitionConfig>, readonly string[]]>([
    [
      "a file above a file",
      { storage: { files: [file("/etc/n"), file("/etc/n/today")] } },
      ["below: storage.files[0].path storage.files[1].path"],
    ],
    [
      "a file far above a file, whatever their order",
      { storage: { files: [file("/etc/n/a/b/c"), file("/etc/n")] } },
      ["below: storage.files[1].path storage.files[0].path"],
    ],
    [
      "a path that only begins alike",
      { storage: { files: [file("/etc/n"), file("/etc/n.d/a"), file("/etc/na")] } },
      [],
    ],
    [
      "a link above a file",
      { storage: { files: [file("/etc/l/a")], links: [{ path: "/etc/l", target: "/etc/m" }] } },
      ["below: storage.links[0].path storage.files[0].path"],
    ],
    [
      "a file above a folder",
      { storage: { files: [file("/etc/n")], directories: [{ path: "/etc/n/d" }] } },
      ["below: storage.files[0].path storage.directories[0].path"],
    ],
    ["a folder above a file", { storage: { files: [file("/etc/n/a")], directories: [{ path: "/etc/n" }] } }, []],
    [
      "a file in the place of the folder of a unit's drop-ins",
      {
        storage: { files: [file("/etc/systemd/system/crio.service.d")] },
        ...unit("crio.service", { dropins: [{ name: "10-x.conf", contents: "[Service]\n" }] }),
      },
      ["below: storage.files[0].path systemd.units[0].dropins[0].name"],
    ],
    [
      "a drop-in that must be absent",
      {
        storage: { files: [file("/etc/systemd/system/crio.service.d")] },
        ...unit("crio.service", { dropins: [{ name: "10-x.conf", contents: "" }] }),
      },
      [],
    ],
    [
      "a unit that is a file as well",
      { storage: { files: [file("/etc/systemd/system/a.service")] }, ...unit("a.service", { contents: "[Unit]\n" }) },
      ["same: storage.files[0].path systemd.units[0].name"],
    ],
    [
      "a masked unit that is a file as well",
      { storage: { files: [file("/etc/systemd/system/a.service")] }, ...unit("a.service", { mask: true }) },
      ["same: storage.files[0].path systemd.units[0].name"],
    ],
    [
      "a unit that is only enabled",
      { storage: { files: [file("/etc/systemd/system/a.service")] }, ...unit("a.service", { enabled: true }) },
      [],
    ],
    [
      "the keys of core as a user and as a file",
      { storage: { files: [file("/home/core/.ssh/authorized_keys.d/ignition")] }, ...core },
      ["same: storage.files[0].path passwd.users[0].sshAuthorizedKeys"],
    ],
    [
      "the keys of core as a user and as a file by its other name",
      { storage: { files: [file("/var/home/core/.ssh/authorized_keys.d/ignition")] }, ...core },
      ["same: storage.files[0].path passwd.users[0].sshAuthorizedKeys"],
    ],
    [
      "a folder by one name, and a file by the other",
      { storage: { files: [file("/var/opt/agent")], directories: [{ path: "/opt/agent" }] } },
      ["same: storage.files[0].path storage.directories[0].path"],
    ],
    ["one folder by two names", { storage: { directories: [{ path: "/opt/agent" }, { path: "/var/opt/agent" }] } }, []],
    [
      "a file, and one below it by another name",
      { storage: { files: [file("/usr/local/bin"), file("/var/usrlocal/bin/a")] } },
      ["below: storage.files[0].path storage.files[1].path"],
    ],
  ])("%s [path-conflicts-1]", ([, parts, expected]) => {
    expect(conflictsOf(parts)).toEqual(expected);
  });

  test.for([
    ["/usr/local/bin/a", "/var/usrlocal/bin/a"],
    ["/opt/a", "/var/opt/a"],
    ["/home/core/a", "/var/home/core/a"],
    ["/root/a", "/var/roothome/a"],
    ["/srv/a", "/var/srv/a"],
    ["/mnt/a", "/var/mnt/a"],
    ["/var/run/a", "/run/a"],
    ["/var/lock/a", "/run/lock/a"],
    ["/lib/a", "/usr/lib/a"],
  ] as const)("%s and %s are one file of a machine [path-conflicts-2]", ([one, other]) => {
    expect(conflictsOf({ storage: { files: [file(one), file(other)] } })).toEqual([
      "same: storage.files[0].path storage.files[1].path",
    ]);
    expect(conflictsOf({ storage: { files: [file(one), file(`${other}x`)] } })).toEqual([]);
  });

  test("claims exclude each other exactly where one path is the other, or lies below it [path-conflicts-3]", () => {
    const part = fc.constantFrom("a", "b", "a.d");
    const top = fc.constantFrom("/etc", "/opt", "/var/opt", "/run", "/var/run", "/optional");
    const path = fc.tuple(top, fc.array(part, { minLength: 1, maxLength: 3 })).map((parts) => parts.flat().join("/"));
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 6 }), (paths) => {
        const claims = paths.map((one, i): PathClaim => ({
          path: one,
          place: resolvedPathOf(one),
          kind: "file",
          name: one,
          field: String(i),
        }));
        const excludes = claims.some((a) =>
          claims.some((b) => a !== b && (a.place === b.place || b.place.startsWith(`${a.place}/`))),
        );
        expect(pathConflicts(claims).length > 0).toBe(excludes);
      }),
    );
  });

  test("long paths and many of them are judged in little time, and every conflict is found [path-conflicts-4]", () => {
    const deep = `/etc${"/a".repeat(200_000)}`;
    const many = Array.from({ length: 20_000 }, (_, i) => file(`/etc/many/${i}`));
    const found = conflictsOf({ storage: { files: [file("/etc/many"), file(deep), file(`${deep}/b`), ...many] } });
    expect(found.length).toBe(20_001);
  });
});
