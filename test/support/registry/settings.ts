import type { PullSettings } from "../../../src/host/directory/pull-settings.ts";

export const acceptAnything = '{"default":[{"type":"insecureAcceptAnything"}]}';

/** An `auth.json` with one entry. */
export const authJson = (scope: string, user: string, password: string): string =>
  JSON.stringify({ auths: { [scope]: { auth: Buffer.from(`${user}:${password}`).toString("base64") } } });

/** The settings of a machine that accepts every image and has no credentials. */
export const settings = (own: Partial<PullSettings> = {}): PullSettings => ({
  policy: acceptAnything,
  auth: undefined,
  registries: undefined,
  certificates: async () => [],
  file: async () => undefined,
  ...own,
});
