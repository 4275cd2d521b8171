import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Clock } from "../../ports/clock.ts";
import { systemClock, systemRandom } from "../../ports/node/index.ts";
import type { Processes } from "../../ports/process.ts";
import { type Disk, systemDisk } from "../directory/disk.ts";
import type { ObservedDeployment, Host, PlainFile } from "../host.ts";
import { type FakeSystem, fakeSystem, passwordDay } from "../../../test/support/hosts/fake-rpm-ostree.ts";
import { kernelWords, otherKernels, readStatus } from "./read-status.ts";
import { rpmOstreeHost } from "./rpm-ostree-host.ts";
import { deadlinesMs, hostCommands, redacted } from "./run-command.ts";

const signal = new AbortController().signal;
/** Nothing here loses power. */
const forgetfulDisk: Disk = { ...systemDisk, sync: async () => undefined };
const imageOf = (name: string, digit: string) => `os.example.com/${name}@sha256:${digit.repeat(64)}`;
const oldImage = imageOf("stock", "0");
const newImage = imageOf("stock", "1");
const extensionsImage = imageOf("extensions", "2");
const unit = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
const accounts = {
  "/etc/passwd": "root:x:0:0::/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n",
  "/etc/group": "core:x:1000:\n",
  "/etc/shadow": "root:*:1:0:99999:7:::\ncore:!!:1:0:99999:7:::\n",
};
const acceptAll = '{"default":[{"type":"insecureAcceptAnything"}]}';
const tree = {
  etc: { ...accounts, "/etc/containers/policy.json": acceptAll },
  usr: { "/usr/lib/os-release": 'NAME="x"\nID="rhcos"\n', "/usr/lib/systemd/system/chronyd.service": unit },
};
const images = { [oldImage]: tree, [newImage]: tree, [extensionsImage]: { etc: {}, usr: {} } };

const systems: FakeSystem[] = [];
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  for (const { violations } of systems.splice(0)) expect(violations).toEqual([]);
});

interface Subject {
  readonly host: Host;
  readonly system: FakeSystem;
  readonly root: string;
  /** Commands since the last time, each as one line. */
  readonly ran: () => readonly string[];
  readonly again: () => Promise<Host>;
}

async function machine(edit: (root: string) => Promise<void> = async () => undefined): Promise<Subject> {
  const folder = await mkdtemp(join(tmpdir(), "mco-rpm-ostree-"));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const root = join(folder, "root");
  const system = await fakeSystem({
    root,
    images,
    image: oldImage,
    extensions: ["usbguard", "sysstat", ...otherKernels.realtime],
  });
  systems.push(system);
  await edit(root);
  const again = () =>
    rpmOstreeHost({
      root,
      processes: system.processes,
      clock: systemClock,
      random: systemRandom,
      architecture: "x64",
      disk: forgetfulDisk,
    });
  let seen = 0;
  return {
    host: await again(),
    system,
    root,
    again,
    ran() {
      const since = system.ran.slice(seen).map((words) => words.join(" "));
      seen = system.ran.length;
      return since;
    },
  };
}

const file = (text: string, mode = 0o644): PlainFile => ({
  kind: "file",
  contents: new TextEncoder().encode(text),
  mode,
  uid: 0,
  gid: 0,
});
const put = (host: Host, path: string, text: string) => host.files.write([{ path, entry: file(text) }], signal);
const wanted = (more: Partial<ObservedDeployment> = {}): ObservedDeployment => ({
  image: oldImage,
  kernelArguments: [],
  packages: [],
  kernelType: "default",
  ...more,
});

// The fake gives files away, as root does on a real machine.
describe.runIf(process.geteuid?.() === 0)("a machine with rpm-ostree", () => {
  test("that nothing changes costs no process to look at, and 200 of its files neither process nor write [rpm-ostree-host-4]", async () => {
    const { host, ran } = await machine();
    const writes = Array.from({ length: 200 }, (_, index) => ({
      path: `/etc/many/${index}`,
      entry: file(String(index)),
    }));
    await host.files.write(writes, signal);
    const first = await host.os.status(signal);
    expect(ran()).toEqual(["rpm-ostree status --json", "rpm-ostree kargs --deploy-index=0"]);
    expect(await host.os.status(signal)).toEqual(first);
    await host.files.write(writes, signal);
    await host.files.vendor("/etc/passwd", signal);
    await host.users.lookup("core", signal);
    expect(ran()).toEqual([]);
  });

  test("is read again after a foreign change of its deployments [rpm-ostree-host-13]", async () => {
    const { host, system, root, ran } = await machine();
    await host.os.status(signal);
    system.os.staged = { ...system.os.booted, kernelArguments: ["theirs"] };
    await utimes(join(root, "ostree/deploy"), 1, 1);
    ran();
    expect((await host.os.status(signal)).staged?.kernelArguments).toEqual(["theirs"]);
    expect(ran().length).toBe(3);
  });

  test("gets image, packages, kernel and arguments as one staged deployment, and leaves no repository behind [rpm-ostree-host-6]", async () => {
    const { host, system, ran } = await machine();
    const target = wanted({
      image: newImage,
      packages: ["sysstat", "usbguard"],
      kernelType: "realtime",
      kernelArguments: ["console=tty0", "console=tty0", 'a="x y"'],
    });
    await host.os.stage(target, extensionsImage, signal);
    expect((await host.os.status(signal)).staged).toEqual(target);
    const transactions = ran().filter((line) => /^rpm-ostree (?!status|kargs( --deploy-index=\d)?$)/.test(line));
    expect(transactions).toEqual([
      `rpm-ostree rebase --experimental --install=sysstat --install=usbguard ostree-unverified-registry:${newImage}`,
      "rpm-ostree override remove kernel kernel-core kernel-modules kernel-modules-core kernel-modules-extra --install=kernel-rt-core --install=kernel-rt-modules --install=kernel-rt-modules-extra",
      'rpm-ostree kargs --append=console=tty0 --append=console=tty0 --append=a="x y"',
    ]);
    expect(await host.files.read("/etc/yum.repos.d/coreos-extensions.repo", signal)).toBeUndefined();
    expect(await host.files.read("/run/mco-extensions", signal)).toBeUndefined();
    await host.os.stage(target, extensionsImage, signal);
    expect(ran()).toEqual([]);
    await system.boot({ orderly: true });
    expect((await host.os.status(signal)).booted).toEqual(target);
    expect(await host.os.installed(["usbguard", "kernel-core", "sysstat", "none"], signal)).toEqual([
      "usbguard",
      "sysstat",
    ]);
    expect(ran().filter((line) => line.startsWith("rpm -q")).length).toBe(1);
  });

  test.for([
    { title: "back to the image's own kernel", target: wanted({ image: newImage, packages: ["usbguard"] }) },
    {
      title: "to another image with the same kernel",
      target: wanted({ kernelType: "realtime", packages: ["usbguard"] }),
    },
    {
      title: "to other arguments alone",
      target: wanted({ image: newImage, packages: ["usbguard"], kernelType: "realtime", kernelArguments: ["b"] }),
    },
    {
      title: "to other packages alone",
      target: wanted({
        image: newImage,
        packages: ["sysstat"],
        kernelType: "realtime",
        kernelArguments: ["a=1", "quiet"],
      }),
    },
    { title: "back to what it was born with", target: wanted() },
  ])("goes from a realtime kernel with packages $title [rpm-ostree-host-9]", async ({ target }) => {
    const { host, system, ran } = await machine();
    const from = wanted({
      image: newImage,
      packages: ["usbguard"],
      kernelType: "realtime",
      kernelArguments: ["a=1", "quiet"],
    });
    await host.os.stage(from, extensionsImage, signal);
    await system.boot({ orderly: true });
    ran();
    await host.os.stage(target, extensionsImage, signal);
    // A replaced kernel is restored before another image is deployed.
    const order = ran().flatMap((line) => /^rpm-ostree (override reset|rebase)/.exec(line)?.[1] ?? []);
    expect(order.indexOf("rebase")).not.toBe(0);
    expect((await host.os.status(signal)).staged).toEqual(target);
    await system.boot({ orderly: true });
    expect((await host.os.status(signal)).booted).toEqual(target);
  });

  test.for([
    "rpm-ostree rebase",
    "rpm-ostree override remove",
    "rpm-ostree kargs --append",
    "podman create",
    "podman cp",
  ])(
    "throws away what is half staged when `%s` fails, and does it the next time [rpm-ostree-host-8]",
    async (command) => {
      const { host, system } = await machine();
      const target = wanted({
        image: newImage,
        packages: ["usbguard"],
        kernelType: "realtime",
        kernelArguments: ["a"],
      });
      system.failNext(command, { code: 1, stderr: "error: Connection reset by peer" });
      await expect(host.os.stage(target, extensionsImage, signal)).rejects.toMatchObject({
        facts: { exitCode: 1, stderrTail: "error: Connection reset by peer" },
      });
      expect((await host.os.status(signal)).staged).toBeUndefined();
      expect(await host.files.read("/etc/yum.repos.d/coreos-extensions.repo", signal)).toBeUndefined();
      await host.os.stage(target, extensionsImage, signal);
      expect((await host.os.status(signal)).staged).toEqual(target);
    },
  );

  test("starts again after a process died during staging [rpm-ostree-host-7]", async () => {
    const { system, again } = await machine();
    system.os.staged = { ...system.os.booted, kernelArguments: ["half"], packages: ["sysstat"] };
    const host = await again();
    const target = wanted({ kernelArguments: ["whole"] });
    await host.os.stage(target, undefined, signal);
    expect((await host.os.status(signal)).staged).toEqual(target);
  });

  test("says of a transaction that another one is in its way, and that trying again helps", async () => {
    const { host, system } = await machine();
    system.failNext("rpm-ostree kargs --append", { code: 1, stderr: "error: Transaction in progress: upgrade" });
    await expect(host.os.stage(wanted({ kernelArguments: ["a"] }), undefined, signal)).rejects.toMatchObject({
      code: "MCO_HOST_COMMAND_FAILED",
      facts: { retryable: true },
    });
  });

  test("does not believe that something was staged before it has looked [rpm-ostree-host-16]", async () => {
    const { host, system } = await machine();
    system.failNext("rpm-ostree kargs --append", { code: 0, stderr: "" });
    await expect(host.os.stage(wanted({ kernelArguments: ["a"] }), undefined, signal)).rejects.toMatchObject({
      facts: { problem: "rpm-ostree staged something else than it was asked for" },
    });
  });

  test("without extensions, as on Fedora CoreOS, refuses packages and kernels before it touches anything [rpm-ostree-host-15]", async () => {
    const { host, ran } = await machine((root) =>
      writeFile(join(root, "usr/lib/os-release"), "ID=fedora\nVARIANT_ID=coreos\n"),
    );
    expect((await host.os.status(signal)).can).toEqual({
      images: true,
      kernelArguments: true,
      packages: false,
      kernelTypes: ["default"],
    });
    ran();
    await expect(host.os.stage(wanted({ packages: ["usbguard"] }), extensionsImage, signal)).rejects.toMatchObject({
      facts: { retryable: false },
    });
    expect(ran()).toEqual([]);
  });

  test.for(["--privileged", "docker-archive:/etc/shadow", "dir:/root"])(
    "packages of an image named %s start no program with that name [rpm-ostree-host-19]",
    async (image) => {
      const { host, ran } = await machine();
      await host.os.status(signal);
      ran();
      await expect(host.os.stage(wanted({ packages: ["usbguard"] }), image, signal)).rejects.toMatchObject({
        code: "MCO_IMAGE_INVALID",
      });
      expect(ran().filter((line) => line.includes(image))).toEqual([]);
    },
  );

  test("fetches an operating system into ostree's repository and packages into podman's storage [rpm-ostree-host-10]", async () => {
    const { host, ran } = await machine();
    await host.os.prefetch(newImage, signal);
    await host.os.prefetch(extensionsImage, signal);
    expect(ran().filter((line) => !line.startsWith("skopeo"))).toEqual([
      `ostree container image pull /ostree/repo ostree-unverified-registry:${newImage}`,
      `podman pull --quiet --authfile=/run/ostree/auth.json -- ${extensionsImage}`,
    ]);
  });

  test.for([
    { policy: acceptAll, reference: `ostree-unverified-registry:${newImage}` },
    {
      policy:
        '{"default":[{"type":"reject"}],"transports":{"docker":{"os.example.com":[{"type":"insecureAcceptAnything"}]}}}',
      reference: `ostree-image-signed:docker://${newImage}`,
    },
    { policy: '{"default":[{"type":"reject"}]}', reference: undefined },
    {
      policy:
        '{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{"os.example.com/stock":[{"type":"reject"}]}}}',
      reference: undefined,
    },
    { policy: "{}", reference: undefined },
  ])("asks ostree for $reference under the policy $policy [rpm-ostree-host-11]", async ({ policy, reference }) => {
    const { host, ran } = await machine();
    await put(host, "/etc/containers/policy.json", policy);
    if (reference === undefined) {
      await expect(host.os.prefetch(newImage, signal)).rejects.toMatchObject({
        code: "MCO_IMAGE_REFUSED",
        facts: { retryable: false },
      });
      expect(ran()).toEqual([]);
    } else {
      await host.os.prefetch(newImage, signal);
      expect(ran()).toContain(`ostree container image pull /ostree/repo ${reference}`);
    }
  });

  test.for([
    {
      stderr: "unauthorized: access to the requested resource is not authorized",
      code: "MCO_IMAGE_UNAUTHORIZED",
      retryable: false,
    },
    { stderr: "reading manifest in x: manifest unknown", code: "MCO_IMAGE_ABSENT", retryable: false },
    {
      stderr: "Source image rejected: A signature was required, but no signature exists",
      code: "MCO_IMAGE_REFUSED",
      retryable: false,
    },
    { stderr: "pinging container registry: dial tcp: i/o timeout", code: "MCO_IMAGE_UNREACHABLE", retryable: true },
  ])("reports $code when a pull ends with: $stderr [rpm-ostree-host-3]", async ({ stderr, code, retryable }) => {
    const { host, system } = await machine();
    system.failNext("ostree container image pull", { code: 1, stderr });
    await expect(host.os.prefetch(newImage, signal)).rejects.toMatchObject({
      code,
      facts: { image: newImage, retryable },
    });
  });

  test("lets pulls use the merged pull secret when that is one, else the kubelet's, and the proxy without showing its password [rpm-ostree-host-18]", async () => {
    const { system, root } = await machine();
    const environments: Readonly<Record<string, string>>[] = [];
    const processes: Processes = {
      ...system.processes,
      run: (command, args, options) => (
        environments.push(options.env ?? {}),
        system.processes.run(command, args, options)
      ),
    };
    const host = await rpmOstreeHost({
      root,
      processes,
      clock: systemClock,
      random: systemRandom,
      architecture: "x64",
      disk: forgetfulDisk,
    });
    const target = async () => {
      await host.os.prefetch(newImage, signal);
      const link = await host.files.read("/run/ostree/auth.json", signal);
      return link?.kind === "link" ? link.target : link;
    };
    expect(await target()).toBe("/var/lib/kubelet/config.json");
    await put(host, "/etc/mco/internal-registry-pull-secret.json", "\n");
    expect(await target()).toBe("/var/lib/kubelet/config.json");
    await put(host, "/etc/mco/internal-registry-pull-secret.json", '{"auths":{}}');
    expect(await target()).toBe("/etc/mco/internal-registry-pull-secret.json");
    await put(host, "/etc/mco/proxy.env", 'HTTPS_PROXY="http://u:canary@proxy:3128"\nOTHER=1\n');
    await host.os.prefetch(newImage, signal);
    expect(environments.at(-1)).toMatchObject({ HTTPS_PROXY: "http://u:canary@proxy:3128" });
    expect(environments.at(-1)).not.toHaveProperty("OTHER");
    expect(system.ran.flat().join(" ")).not.toContain("canary");
  });

  test("gets passwords by the standard input of its own program, and no word of them anywhere else [rpm-ostree-host-5]", async () => {
    const { host, system } = await machine();
    await host.users.setPasswordHash("core", "$6$canary$hash", signal);
    expect(await host.users.passwordHash("core", signal)).toBe("$6$canary$hash");
    await host.users.setPasswordHash("core", undefined, signal);
    const shadow = await host.files.read("/etc/shadow", signal);
    expect(shadow?.kind === "file" ? new TextDecoder().decode(shadow.contents) : "").toBe(
      accounts["/etc/shadow"].replace("core:!!:1:", `core:!!:${passwordDay}:`),
    );
    system.failNext("chpasswd", { code: 1, stderr: "cannot set $6$canary$hash for https://u:canary@host" });
    const failure = await host.users.setPasswordHash("core", "$6$canary$hash", signal).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "MCO_HOST_COMMAND_FAILED" });
    expect(`${String(failure)} ${system.ran.flat().join(" ")}`).not.toContain("canary");
  });

  test("looks at all units with one process, and believes of a reload only the unit's own state", async () => {
    const { host, system, ran } = await machine();
    await put(host, "/etc/systemd/system/x.service", unit);
    await host.units.daemonReload(signal);
    await host.units.restart("x.service", signal);
    ran();
    const states = await host.units.state(["x.service", "none.service", "chronyd.service"], signal);
    expect([...states.values()].map(({ enablement }) => enablement)).toEqual(["disabled", "absent", "disabled"]);
    expect(ran().length).toBe(1);
    expect(await host.units.state([], signal)).toEqual(new Map());
    expect(ran()).toEqual([]);
    system.quietlyBroken.add("x.service");
    await expect(host.units.reload("x.service", signal)).rejects.toMatchObject({
      facts: { reloadResult: "exit-code" },
    });
    expect((await host.units.state(["x.service"], signal)).get("x.service")?.activity).toBe("failed");
    await host.units.restart("x.service", signal);
    expect((await host.units.state(["x.service"], signal)).get("x.service")?.activity).toBe("active");
  });

  test("takes new certificate authorities over by program where it has no unit for that [rpm-ostree-host-1]", async () => {
    const { host, ran } = await machine();
    await host.units.restart("coreos-update-ca-trust.service", signal);
    expect(ran()).toContain("update-ca-trust");
  });

  test("asks once in a boot why the last shutdown failed, and can be asked to reboot twice", async () => {
    const { host, system, ran } = await machine();
    await host.os.finaliseFailure(signal);
    await host.os.finaliseFailure(signal);
    expect(ran().length).toBe(1);
    await host.os.reboot("two\nlines", signal);
    await host.os.reboot("two\nlines", signal);
    expect(system.reboots).toEqual(["machine-config-daemon: two lines", "machine-config-daemon: two lines"]);
    expect(
      ran().every((line) =>
        line.includes(
          "--property=Requires=ostree-finalize-staged.service --property=After=ostree-finalize-staged.service",
        ),
      ),
    ).toBe(true);
  });

  test("not booted by ostree has files, units and accounts, and a foreign operating system [rpm-ostree-host-17]", async () => {
    const { system, again, ran } = await machine((folder) => rm(join(folder, "run/ostree-booted")));
    const host = await again();
    expect(await host.os.status(signal)).toMatchObject({
      booted: wanted({ image: "" }),
      staged: undefined,
      can: { images: false, kernelArguments: false, packages: false },
    });
    expect(ran()).toEqual([]);
    await expect(host.os.stage(wanted(), undefined, signal)).rejects.toMatchObject({ code: "MCO_HOST_COMMAND_FAILED" });
    await put(host, "/etc/x", "x");
    await host.units.state(["chronyd.service"], signal);
    await host.os.reboot("because", signal);
    expect(ran().at(-1)).toMatch(
      /^systemd-run --unit=\S+ --description=machine-config-daemon: because systemctl reboot$/,
    );
    expect(system.reboots.length).toBe(1);
  });
});

describe("commands of a machine", () => {
  test("that do not end are ended, and say that trying again can help [rpm-ostree-host-2]", async () => {
    let patience = 0;
    const impatient: Clock = {
      ...systemClock,
      deadline(milliseconds, parent) {
        patience = milliseconds;
        return {
          signal: AbortSignal.any([
            AbortSignal.abort(new Error("too late")),
            ...(parent === undefined ? [] : [parent]),
          ]),
          cancel: () => undefined,
        };
      },
    };
    const endless: Processes = {
      spawn: () => Promise.reject(new Error("not this")) as never,
      run: (_command, _args, options) => Promise.reject(options.signal.reason as Error),
    };
    const commands = hostCommands({ processes: endless, clock: impatient, root: "/" });
    await expect(commands.must(["rpm-ostree", "status"], { kind: "query", signal })).rejects.toMatchObject({
      code: "MCO_HOST_COMMAND_FAILED",
      facts: { command: "rpm-ostree status", retryable: true },
    });
    expect(patience).toBe(deadlinesMs.query);
  });

  test.for([
    ["pull https://user:canary@registry/x", "pull https://***@registry/x"],
    ["proxy http://user:canary@canary@proxy:3128/x: refused", "proxy http://***@proxy:3128/x: refused"],
    ["at https://registry/x and user@host", "at https://registry/x and user@host"],
    ['"auth": "canary"', '"auth": "***"'],
    ["Authorization: Bearer canary", "Authorization: ***"],
    ["password=canary", "password=***"],
    ["line core:$6$salt$canary: bad", "line core:***: bad"],
    ["error: No space left", "error: No space left"],
  ] as const)("show no secret: %s", ([text, shown]) => {
    expect(redacted(text)).toBe(shown);
  });
});

describe("what rpm-ostree says", () => {
  const status = (deployment: Record<string, unknown>) =>
    readStatus(JSON.stringify({ deployments: [{ booted: true, ...deployment }] })).booted;

  test.for([
    [{ "container-image-reference": `ostree-unverified-registry:${oldImage}` }, oldImage],
    [{ "container-image-reference": `ostree-image-signed:docker://${oldImage}` }, oldImage],
    [{ "container-image-reference": `ostree-unverified-image:docker://${oldImage}` }, oldImage],
    [{ "container-image-reference": `ostree-remote-image:fedora:registry:${oldImage}` }, oldImage],
    [
      {
        "container-image-reference": "ostree-unverified-registry:quay.io:5000/os:tag",
        "container-image-reference-digest": "sha256:1",
      },
      "quay.io:5000/os@sha256:1",
    ],
    [
      {
        "container-image-reference": "ostree-unverified-registry:quay.io:5000/os",
        "container-image-reference-digest": "sha256:1",
      },
      "quay.io:5000/os@sha256:1",
    ],
    [{ "custom-origin": [`pivot://${oldImage}`, "Managed"] }, oldImage],
    [{ origin: "fedora:fedora/x86_64/coreos/stable" }, ""],
  ] as const)("of an image: %j [rpm-ostree-host-12]", ([deployment, image]) => {
    expect(status(deployment).image).toBe(image);
  });

  test("of packages: a kernel that is layered without room made for it is no other kernel", () => {
    expect(
      status({
        "requested-packages": ["usbguard", "kernel-rt-core", "a"],
        "requested-base-removals": ["kernel", "kernel-core"],
      }),
    ).toMatchObject({ packages: ["a", "usbguard"], kernelType: "realtime" });
    expect(status({ "requested-packages": ["kernel-rt-core"] })).toMatchObject({ packages: [], kernelType: "default" });
    expect(status({ "requested-base-removals": ["kernel-core", "moby"] })).toMatchObject({
      kernelType: "default",
      removedPackages: ["kernel-core"],
    });
  });

  test("of nothing that is booted, or nothing at all, is a failure", () => {
    expect(() => readStatus("{}")).toThrow("no deployment is booted");
    expect(() => readStatus("error")).toThrow("not JSON");
  });

  // Source: kernel lib/cmdline.c, next_arg; and the reference's own case.
  test("of arguments is split as the kernel does, without what ostree adds [rpm-ostree-host-14]", () => {
    expect(kernelWords('ostree=/ostree/boot.1/x a="x y"  b=c"d e"f\tg\n')).toEqual(['a="x y"', 'b=c"d e"f', "g"]);
  });
});

// A fake that forgave would prove nothing: these are the rules that the driver is held to.
describe.runIf(process.geteuid?.() === 0)("the fake system", () => {
  const run = (system: FakeSystem, root: string, line: string) =>
    system.processes.run("chroot", [root, ...line.split(" ")], { signal, env: { RPMOSTREE_CLIENT_ID: "x" } });

  test("keeps as violations what no document knows", async () => {
    const { system, root } = await machine();
    expect((await run(system, root, "rpm-ostree status --jsonn")).code).toBe(1);
    expect((await run(system, root, "rpm-ostree ex deploy")).code).toBe(127);
    expect((await run(system, root, "sh -c true")).code).toBe(127);
    await expect(system.processes.run("rm", ["-rf", "/"], { signal })).rejects.toThrow();
    expect(system.violations.length).toBe(4);
    systems.splice(0);
  });

  test("appends an argument twice when asked twice, deletes none that is not there, and refuses two transactions at once", async () => {
    const { system, root } = await machine();
    for (let time = 0; time < 2; time += 1) await run(system, root, "rpm-ostree kargs --append=a");
    expect(system.os.staged?.kernelArguments.filter((word) => word === "a").length).toBe(2);
    expect((await run(system, root, "rpm-ostree kargs --delete=b")).code).toBe(1);
    const both = await Promise.all([
      run(system, root, "rpm-ostree kargs --append=b"),
      run(system, root, "rpm-ostree cleanup --pending"),
    ]);
    expect(both.map(({ code }) => code).sort()).toEqual([0, 1]);
    expect(both.some(({ stderr }) => stderr.includes("Transaction in progress"))).toBe(true);
  });

  test("replaces what is staged, loses it in a power cut, and refuses packages that no repository has", async () => {
    const { system, root } = await machine();
    await run(system, root, "rpm-ostree kargs --append=a");
    await run(system, root, `rpm-ostree rebase ostree-unverified-registry:${newImage}`);
    expect(system.os.staged).toMatchObject({
      reference: `ostree-unverified-registry:${newImage}`,
      kernelArguments: expect.arrayContaining(["a"]) as unknown,
    });
    expect((await run(system, root, `rpm-ostree rebase ostree-unverified-registry:${newImage}`)).stderr).toContain(
      "equal",
    );
    expect((await run(system, root, "rpm-ostree install usbguard")).stderr).toContain("Packages not found");
    await system.boot({ orderly: false });
    expect(system.os.staged).toBeUndefined();
  });

  test("enables no unit that is absent, and reloads none that does not run", async () => {
    const { system, root } = await machine();
    expect((await run(system, root, "systemctl enable -- none.service")).code).toBe(1);
    expect((await run(system, root, "systemctl reload -- chronyd.service")).code).toBe(1);
    expect((await run(system, root, "systemctl restart -- none.service")).code).toBe(5);
  });
});
