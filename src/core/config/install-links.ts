export const unitFolder = "/etc/systemd/system";

/** A name that systemd takes for a unit, with specifiers (systemd.unit(5)): no path, which would lead out of the folder. */
const isUnitName = (word: string): boolean => /^[A-Za-z0-9:_.@%\\-]+$/.test(word) && !/^\.+$/.test(word);

/** Links that `systemctl enable` makes for the [Install] section (systemd.unit(5)): WantedBy, RequiredBy, Alias. */
export function installLinks(name: string, unit: string): readonly { path: string; target: string }[] {
  const links: { path: string; target: string }[] = [];
  let inInstall = false;
  for (const raw of unit.split("\n")) {
    const line = raw.trim();
    if (line.startsWith("[")) inInstall = line === "[Install]";
    const match = inInstall ? /^(WantedBy|RequiredBy|Alias)\s*=\s*(.*)$/.exec(line) : null;
    if (match === null) continue;
    const [, key = "", values = ""] = match;
    for (const value of values.split(/\s+/).filter(isUnitName)) {
      const target = `${unitFolder}/${name}`;
      if (key === "Alias") links.push({ path: `${unitFolder}/${value}`, target });
      else links.push({ path: `${unitFolder}/${value}.${key === "WantedBy" ? "wants" : "requires"}/${name}`, target });
    }
  }
  return links;
}
