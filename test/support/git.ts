import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Settings of no user and no machine, and an author. */
const environment = {
  PATH: process.env["PATH"],
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "init.defaultBranch",
  GIT_CONFIG_VALUE_0: "main",
  GIT_CONFIG_KEY_1: "protocol.file.allow",
  GIT_CONFIG_VALUE_1: "always",
  GIT_AUTHOR_NAME: "author",
  GIT_AUTHOR_EMAIL: "author@example.com",
  GIT_COMMITTER_NAME: "author",
  GIT_COMMITTER_EMAIL: "author@example.com",
};

/** Runs git in a folder; fails with what it said. */
export async function git(directory: string, ...words: readonly string[]): Promise<void> {
  await promisify(execFile)("git", ["-C", directory, ...words], { env: environment });
}
