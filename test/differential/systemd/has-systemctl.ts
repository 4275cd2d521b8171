import { spawnSync } from "node:child_process";

/** The rules are those of systemd 252; a machine without such a systemctl has nothing to compare with. */
export const hasSystemctl: boolean = /^systemd (2[5-9]\d|[3-9]\d\d)/.test(
  spawnSync("systemctl", ["--version"], { encoding: "utf8" }).stdout ?? "",
);
