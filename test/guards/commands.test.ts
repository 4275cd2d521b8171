import { describe, expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/**
 * Values in commands that people are told to run: names of objects, which the API server restricts to DNS names, and
 * constants. A value that somebody else chooses freely is a `shellWord`, so that it stays one argument.
 */
const plain: ReadonlySet<string> = new Set([
  "annotations.configServerAccess",
  "annotations.managedBootImage",
  "annotations.refusedTargets",
  "app",
  "buildConfigKeys.isolation",
  "component",
  "deployment",
  "failed.metadata.name",
  "inNamespace",
  "key",
  "kind.toLowerCase()",
  "labels.managedUserData",
  "labels.role",
  "machineNamespace",
  "metadata.name",
  "name",
  "namespace",
  "node",
  "node.metadata.name",
  "objects.buildConfig",
  "objects.configServer",
  "objects.daemon",
  "objects.machineConfiguration",
  "objects.osBuilder",
  "object.metadata.name",
  "pool",
  "pool.metadata.name",
  "poolName",
  "running.metadata.name",
  "set",
  "subject",
  "subjectKind(object)",
  "where.app",
  // Names of files of the suite.
  "version",
]);

/** The embedded API server tells no commands; what shells complete, they run themselves. */
const elsewhere = /^src\/(apiserver|cli\/completion)\//;
/** Files whose sentences name commands and do not tell anybody to run them with these values. */
const sentences: Readonly<Record<string, readonly string[]>> = {
  "src/cli/commands/explain.ts": ["titleOf(subject)", "subject.name", "nearest(known.facts, subject)"],
  "src/cli/commands/host.ts": ["verb"],
  "src/cli/commands/token.ts": ["what"],
  "src/cli/own-folder.ts": ["layout.record"],
  "src/core/build/image-build.ts": ["step", "state", "rc"],
  "src/core/preview/plan-registries.ts": ["listText(objects, shown)"],
};

/** The values in the commands of a text. */
const valuesIn = (text: string): readonly string[] =>
  [...text.matchAll(/`(?:[^`\\$]|\\.|\$(?!\{)|\$\{[^{}`]*\})*`/g)].flatMap(([template]) => {
    const command = template.search(/\b(?:kubectl|mco|oc) [a-z]/);
    return command < 0 ? [] : [...template.slice(command).matchAll(/\$\{([^{}`]*)\}/g)].map(([, value = ""]) => value);
  });

const isQuoted = (value: string) => value.startsWith("shellWord(") || value.includes(".map(shellWord)");

describe("commands that people are told to run", () => {
  test("join no value that somebody else chooses freely, but as a word of a shell [guards-commands-1]", () => {
    const found = sourceFiles()
      .filter(({ path }) => !elsewhere.test(path))
      .flatMap(({ path, text }) =>
        valuesIn(text)
          .filter((value) => !plain.has(value) && !isQuoted(value) && sentences[path]?.includes(value) !== true)
          .map((value) => `${path}: ${value}`),
      );
    expect(found).toEqual([]);
  });

  test("are found where they are, with their values [guards-commands-2]", () => {
    // eslint-disable-next-line no-template-curly-in-string -- the text of a template
    const text = 'say(`if so: mco node address ${name} ${strange.join(" ")}`, `no command of ${x}`)';
    expect(valuesIn(text)).toEqual(["name", 'strange.join(" ")']);
  });
});
