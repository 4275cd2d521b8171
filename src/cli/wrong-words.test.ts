import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";
import { McoError } from "../api/errors.ts";
import { didYouMean, readArguments } from "./arguments.ts";
import { subjectOf } from "./commands/explain.ts";

const typed = commandLine("mco-words-");

describe("a command line that is not understood", () => {
  const options = [
    { flag: "--json", text: "" },
    { flag: "--workers", value: "N", text: "" },
    { flag: "-f", name: "filename", repeats: true, value: "FILE", text: "" },
  ] as const;

  test.for([
    { args: ["--jsno"], says: "there is no flag --jsno; did you mean --json?" },
    { args: ["--from", "x"], says: "there is no flag --from" },
    { args: ["-x"], says: "there is no flag -x" },
    { args: ["--workers"], says: "--workers needs a value" },
    { args: ["-f"], says: "-f needs a value" },
    { args: ["--json=1"], says: "--json takes no value" },
    { args: ["--json", "worker"], says: '"worker" is one word too many' },
    { args: ["--constructor"], says: "there is no flag --constructor" },
  ])("$args is told in a sentence [cli-wrong-words-1]", ({ args, says }) => {
    expect(() => readArguments(args, options)).toThrow(new McoError("MCO_USAGE", {}, { message: says }));
  });

  test("a word is suggested that is near, and none that is not [cli-wrong-words-2]", () => {
    expect(didYouMean("vaildate", ["validate", "plan"])).toBe("; did you mean validate?");
    expect(didYouMean("up", ["down", "plan"])).toBe("");
    expect(() => subjectOf("mahcineconfig/a")).toThrow("explained; did you mean machineconfig?");
  });

  test.for([
    ["image.config/cluster", "image/cluster"],
    ["images.config.openshift.io/cluster", "image/cluster"],
    ["imagecontentsourcepolicy.operator.openshift.io/old", "imagecontentsourcepolicy/old"],
    ["imagepolicy.config.openshift.io/default/ip", "imagepolicy/default/ip"],
    ["kubeletconfig.machineconfiguration.openshift.io/pods", "kubeletconfig/pods"],
    ["machineconfigpool.machineconfiguration.openshift.io/worker", "pool/worker"],
    ["machineconfig.machineconfiguration/a", "mc/a"],
  ] as const)("%s is the same as %s, as kubectl prints and takes it [cli-explain-words-1]", ([long, short]) => {
    expect(subjectOf(long)).toEqual(subjectOf(short));
  });

  test("a kind of another group is not taken, and the config Node is no machine [cli-explain-words-2]", () => {
    for (const other of ["image.example.com/a", "kubeletconfig.config/a", "image.conf/cluster"])
      expect(() => subjectOf(other)).toThrow("is nothing that can be explained");
    expect(subjectOf("nodes.config/cluster")).not.toEqual(subjectOf("node/cluster"));
  });
});

describe("what cannot be read", () => {
  test("is told as a person would, without the name of an error [cli-wrong-words-3]", async () => {
    const missing = join(typed.folder, "missing.yaml");
    const inFile = join(typed.folder, "a.yaml/b.yaml");
    writeFileSync(join(typed.folder, "a.yaml"), "");
    expect((await typed.mco("validate", missing, inFile)).out).toBe(
      `${missing}: error: there is no such file or folder\n` +
        `${inFile}: error: a part of its path is a file, not a folder\n2 documents: 2 errors, 0 warnings\n`,
    );
  });

  test("a folder without manifests or journals is no success [cli-wrong-words-4]", async () => {
    const empty = join(typed.folder, "empty");
    mkdirSync(empty);
    expect(await typed.mco("validate", empty)).toMatchObject({ code: "MCO_USAGE" });
    expect(await typed.mco("book", "--from", empty)).toMatchObject({ code: "MCO_NAME_ABSENT" });
    expect(await typed.mco("book", "--from", join(typed.folder, "missing"))).toMatchObject({ code: "MCO_NAME_ABSENT" });
  });
});
