import { expect, test } from "vitest";
import { parse } from "yaml";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { textOfBase64 } from "./base-configs.ts";
import { withAuthorities } from "./kubeconfig-authorities.ts";

const base64 = (text: string) => encodeBase64(new TextEncoder().encode(text));
const kubeconfig = (bundle: string) => `# of the installer
apiVersion: v1
clusters:
- cluster:
    server: https://api-int.example.com:6443
    certificate-authority-data: ${base64(bundle)}
  name: local
users:
- name: kubelet
  user:
    token: canary
`;
const authorities = (text: string | undefined) =>
  (parse(text ?? "") as { clusters: { cluster: { "certificate-authority-data": string } }[] }).clusters.map(
    ({ cluster }) => textOfBase64(cluster["certificate-authority-data"]),
  );

test("a kubeconfig gets the new authorities, and is otherwise unchanged [render-kubeconfig-authorities-1]", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  const after = withAuthorities(kubeconfig(one), `${one}some text\n${two}`);
  expect(authorities(after)).toEqual([`${one}${two}`]);
  expect(after?.replace(/certificate-authority-data: .*/, "")).toBe(
    kubeconfig(one).replace(/certificate-authority-data: .*/, ""),
  );
});

test("one that believes them all already is left alone, in whatever order it has them [render-kubeconfig-authorities-2]", async () => {
  const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
  expect(withAuthorities(kubeconfig(`${two}${one}`), `${one}${two}`)).toBeUndefined();
  expect(withAuthorities(kubeconfig(`${two}${one}`), two)).toBeUndefined();
});

test.for([
  { title: "no certificates", text: kubeconfig("x"), bundle: "none" },
  {
    title: "a bundle with a block that cannot be read",
    text: kubeconfig("x"),
    bundle: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
  },
  { title: "no YAML", text: "a: [", bundle: undefined },
  { title: "no clusters", text: "apiVersion: v1\n", bundle: undefined },
  {
    title: "an authority in a file of its own",
    text: "clusters:\n- cluster:\n    certificate-authority: /etc/ca.crt\n",
    bundle: undefined,
  },
])("nothing is made of $title [render-kubeconfig-authorities-3]", async ({ text, bundle }) => {
  expect(withAuthorities(text, bundle ?? (await selfSigned("CN=a")))).toBeUndefined();
});
