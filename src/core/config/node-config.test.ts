import { expect, test } from "vitest";
import { gzipSync } from "node:zlib";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { oversizedText } from "../../ignition/held-contents.ts";
import { parseRegistriesConf } from "../images/registries-conf.ts";
import { parseSignaturePolicy } from "../images/signature-policy.ts";
import { readRegistries } from "../runtime/registries-conf-text.ts";
import { storageConfText } from "../runtime/storage-conf.ts";
import { lenientKubernetesYaml } from "../text/kubernetes-yaml.ts";
import { registriesDrain } from "./disruption-policy.ts";
import { nodeConfigOf, textToParse } from "./node-config.ts";
import { isInstallable } from "./install-links.ts";

test("the search for an install section costs no more than the length of the text [config-node-config-1]", () => {
  const blank = "\n".repeat(300_000);
  expect(isInstallable("x.service", [`[Install]\n${blank}x`])).toBe(false);
  expect(isInstallable("x.service", [`[Install]\nWantedBy=${" ".repeat(300_000)}`])).toBe(false);
  expect(isInstallable("x.service", [`${blank}[Install] \r\n  WantedBy = multi-user.target\r\n`])).toBe(true);
});

test("a text that is too large to be parsed is taken neither for an absent one nor for an empty one [config-node-config-2]", () => {
  const path = "/etc/containers/registries.conf";
  const contents = { compression: "gzip", source: encodeDataUrl(gzipSync("# a\n".repeat(500_000))) };
  const read = nodeConfigOf({ metadata: { name: "rendered" } } as never, {
    ignition: { version: "3.5.0" },
    storage: { files: [{ path, contents }] },
  });
  const text = read.verdict === "decoded" ? textToParse(read.config, path) : undefined;
  expect(text).toBe(oversizedText);
  expect(registriesDrain("", text).verdict).toBe("drain");
  expect(parseRegistriesConf(oversizedText)).toBeUndefined();
  expect(lenientKubernetesYaml(oversizedText)).toBeUndefined();
  expect(parseSignaturePolicy(oversizedText).verdict).toBe("refused");
  expect(storageConfText(oversizedText, {})).toMatchObject({ reason: expect.stringContaining("262144 characters") });
  expect(readRegistries(oversizedText)).toMatchObject({ reason: expect.stringContaining("262144 characters") });
});
