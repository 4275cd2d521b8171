import { describe, expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { type AccountFiles, applyAccounts } from "./ignition-accounts.ts";
import type { Passwd } from "../../ignition/index.ts";

const files: AccountFiles = {
  passwd: "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:Admin:/home/core:/bin/bash\n",
  shadow: "root:!::0:99999:7:::\ncore:!::0:99999:7:::\n",
  group: "root:x:0:\nwheel:x:10:core\ncore:x:1000:\n",
  gshadow: "root:::\nwheel:::core\ncore:!::\n",
  loginDefs: "# comment\nPASS_MAX_DAYS 99999\nUID_MIN\t1000\n",
};
const today = 20_000;
const lineOf = (text: string, name: string) => text.split("\n").find((line) => line.startsWith(`${name}:`));
const applied = (passwd: Passwd) => {
  const answer = applyAccounts(files, passwd, today);
  if (answer.verdict === "refused") throw new Error(answer.reason);
  return answer;
};

describe("applyAccounts", () => {
  test("a password and keys for a user that is there change nothing else", () => {
    const { files: after, homes } = applied({
      users: [{ name: "core", passwordHash: "$y$hash", sshAuthorizedKeys: ["k1", "k2"] }],
    });
    expect(after.shadow).toBe("root:!::0:99999:7:::\ncore:$y$hash:20000:0:99999:7:::\n");
    expect([after.passwd, after.group, after.gshadow]).toEqual([files.passwd, files.group, files.gshadow]);
    expect(homes).toEqual([
      { name: "core", home: "/home/core", uid: 1000, gid: 1000, makeMode: undefined, keys: ["k1", "k2"] },
    ]);
  });

  test("an empty hash locks the password", () => {
    expect(lineOf(applied({ users: [{ name: "core", passwordHash: "" }] }).files.shadow, "core")).toBe(
      "core:*:20000:0:99999:7:::",
    );
  });

  test("a new user gets the next number, a group and a home of its own", () => {
    const { files: after, homes } = applied({ users: [{ name: "dev", groups: ["wheel"] }] });
    expect(lineOf(after.passwd, "dev")).toBe("dev:x:1001:1001::/home/dev:/bin/bash");
    expect(lineOf(after.shadow, "dev")).toBe("dev:*:20000::99999::::");
    expect([lineOf(after.group, "dev"), lineOf(after.group, "wheel"), lineOf(after.gshadow, "wheel")]).toEqual([
      "dev:x:1001:",
      "wheel:x:10:core,dev",
      "wheel:::core,dev",
    ]);
    expect(homes[0]).toMatchObject({ home: "/home/dev", makeMode: 0o755 });
  });

  test("groups: with a number, the next one, and those of the system from above", () => {
    const { group } = applied({ groups: [{ name: "a", gid: 2000 }, { name: "b" }, { name: "s", system: true }] }).files;
    expect(["a", "b", "s"].map((name) => lineOf(group, name))).toEqual(["a:x:2000:", "b:x:2001:", "s:x:999:"]);
  });

  test("a group marked absent is removed, unless it is a user's primary group", () => {
    expect(lineOf(applied({ groups: [{ name: "wheel", shouldExist: false }] }).files.group, "wheel")).toBeUndefined();
    expect(applyAccounts(files, { groups: [{ name: "core", shouldExist: false }] }, today)).toMatchObject({
      verdict: "refused",
    });
  });

  test("the named groups replace those that a user is in, in both databases [machine-ignition-accounts-1]", () => {
    const { group, gshadow } = applied({
      groups: [{ name: "a" }, { name: "b" }],
      users: [
        { name: "dev", groups: ["a", "wheel"] },
        { name: "ops", groups: ["a", "b"] },
        { name: "core", groups: ["b"] },
      ],
    }).files;
    expect(["wheel", "a", "b"].map((name) => lineOf(group, name)?.split(":").at(-1))).toEqual([
      "dev",
      "dev,ops",
      "ops,core",
    ]);
    expect(["wheel", "a", "b"].map((name) => lineOf(gshadow, name)?.split(":").at(-1))).toEqual([
      "dev",
      "dev,ops",
      "ops,core",
    ]);
  });

  test("thousands of users and groups cost time in proportion to their number [machine-ignition-accounts-2]", async () => {
    const work = (count: number) => {
      const numbers = Array.from({ length: count }, (_, at) => at);
      const groups = numbers.map((at) => ({ name: `g${at}` }));
      const users = numbers.map((at) => ({ name: `u${at}`, passwordHash: "$y$a", groups: [`g${at}`, "wheel"] }));
      return countWork(() => applied({ groups, users }));
    };
    expect(await work(2000)).toBeLessThan(6 * (await work(500)));
  });

  test.for([
    { title: "a group that is not there", passwd: { users: [{ name: "core", groups: ["nowhere"] }] } },
    { title: "a number that is taken", passwd: { users: [{ name: "dev", uid: 1000 }] } },
    { title: "a home that would have to move", passwd: { users: [{ name: "core", homeDir: "/elsewhere" }] } },
    { title: "a user that would have to go", passwd: { users: [{ name: "core", shouldExist: false }] } },
  ])("$title is refused", ({ passwd }) => {
    expect(applyAccounts(files, passwd, today).verdict).toBe("refused");
  });
});
