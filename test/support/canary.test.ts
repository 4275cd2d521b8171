import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { KubeObject } from "../../src/api/schema/object.ts";
import { type Sink, canariesOf, leaksIn, newCanaries, secretsIn, sinksOfObject } from "./canary.ts";

const canaries = newCanaries();
const token = canaries["provisioning token"];
const hash = canaries["password hash"];
const base64 = (text: string) => Buffer.from(text).toString("base64");
const found = (...sinks: readonly Sink[]) => leaksIn(sinks, canariesOf(canaries));

const object = (kind: string, rest: object): KubeObject =>
  ({ apiVersion: "v1", kind, metadata: { name: "one" }, ...rest }) as KubeObject;

describe("the search for canaries", () => {
  test.for([
    { sink: "a log line", where: "logs/controller.log", text: `{"msg":"rendered","error":"got ${token}"}\n` },
    { sink: "a line of a journal on disk", where: "hosts/w/books/1.jsonl", text: `{"message":"${token}"}\n` },
    { sink: "what a command prints", where: "the output of mco status", text: `worker  ${token}\n` },
    { sink: "a label of a metric", where: "the metrics of x", text: `mcs_requests_total{pool="${token}"} 1\n` },
    { sink: "the bundle", where: "bin/chunk.mjs", text: `var a="${token}";` },
    { sink: "an answer of the config server", where: "an answer", text: `403 {"error":"${token}"}` },
  ])("names a secret in $sink [support-canary-1]", ({ where, text }) => {
    expect(found({ where, text })).toEqual([`${where} holds the provisioning token in plain text`]);
    expect(found({ where, text: text.replaceAll(token, "(masked)") })).toEqual([]);
  });

  test.for([
    { sink: "an Event", at: object("Event", { message: `x ${hash}` }), where: "Event/one message" },
    {
      sink: "a condition",
      at: object("MachineConfigPool", { status: { conditions: [{ type: "A", message: hash }] } }),
      where: "MachineConfigPool/one status.conditions[0].message",
    },
    {
      sink: "an annotation",
      at: object("Node", { metadata: { name: "one", annotations: { "a.b/c": hash } } }),
      where: "Node/one metadata.annotations.a.b/c",
    },
    {
      sink: "a key",
      at: object("ConfigMap", { metadata: { name: "one", namespace: "n" }, data: { [hash]: "" } }),
      where: "ConfigMap/n/one data (a key)",
    },
    {
      sink: "a line of a journal",
      at: object("MachineStateJournal", { spec: { lines: [{ message: `says ${hash}` }] } }),
      where: "MachineStateJournal/one spec.lines[0].message",
    },
    {
      sink: "a book",
      at: object("MachineStateBook", { status: { now: { because: hash } } }),
      where: "MachineStateBook/one status.now.because",
    },
    {
      sink: "a chapter",
      at: object("MachineStateChapter", { spec: { sections: [{ message: hash }] } }),
      where: "MachineStateChapter/one spec.sections[0].message",
    },
    {
      sink: "a pod's environment",
      at: object("Pod", { spec: { containers: [{ env: [{ name: "A", value: hash }] }] } }),
      where: "Pod/one spec.containers[0].env[0].value",
    },
    {
      sink: "the termination message of a build",
      at: object("Pod", { status: { containerStatuses: [{ state: { terminated: { message: hash } } }] } }),
      where: "Pod/one status.containerStatuses[0].state.terminated.message",
    },
    {
      sink: "another field of a MachineConfig",
      at: object("MachineConfig", { spec: { kernelArguments: [hash] } }),
      where: "MachineConfig/one spec.kernelArguments[0]",
    },
  ])("names a secret in $sink of an object, with the field [support-canary-2]", ({ at, where }) => {
    expect(found(...sinksOfObject(at))).toEqual([`${where} holds the password hash in plain text`]);
  });

  test.for([
    { form: "in base64", text: base64(token) },
    { form: "in base64", text: base64(`a${token}b`) },
    { form: "in base64", text: base64(`ab${token}c`) },
    { form: "in base64", text: Buffer.from(`ÿÿ${token}ÿ`).toString("base64url") },
    { form: "in base64 of base64", text: base64(`{"auth":"${base64(`probe:${token}`)}"}`) },
    { form: "in hexadecimal digits", text: Buffer.from(`x${token}`).toString("hex") },
    { form: "in hexadecimal digits", text: Buffer.from(token).toString("hex").toUpperCase() },
    { form: "in plain text, packed with gzip", text: gzipSync(`x ${token} y`).toString("base64") },
  ])("finds a secret $form, wherever it begins [support-canary-3]", ({ form, text }) => {
    expect(found({ where: "here", text: `before ${text} after` })).toEqual([
      `here holds the provisioning token ${form}`,
    ]);
  });

  test("finds secrets with letters that encodings change [support-canary-4]", () => {
    const name = "key";
    const text = 'pass"word/+ of\nsomebody';
    for (const [form, encoded] of [
      ["URL-encoded", encodeURIComponent(text)],
      ["JSON-escaped", JSON.stringify(text)],
      ["JSON-escaped twice", JSON.stringify(JSON.stringify(text))],
      ["in base64", base64(`a ${text}`)],
    ])
      expect(leaksIn([{ where: "here", text: `${encoded}` }], [], [{ name, text }])).toEqual([
        `here holds the key ${form}`,
      ]);
  });

  test("finds the beginning of a secret of which the rest was cut off [support-canary-5]", () => {
    expect(found({ where: "here", text: token.slice(0, 12) })).toEqual([
      "here holds the beginning of a secret in plain text",
    ]);
  });

  test("lets secrets be where they belong [support-canary-6]", () => {
    expect(
      found(
        ...sinksOfObject(object("MachineConfig", { spec: { config: { a: [token] } } })),
        ...sinksOfObject(object("ControllerConfig", { spec: { internalRegistryPullSecret: base64(token) } })),
        ...sinksOfObject(object("Secret", { data: { a: base64(token) } })),
      ),
    ).toEqual([]);
  });

  test("looks for keys and passwords that the suite made [support-canary-7]", () => {
    const auths = { "registry.local": { auth: base64("pusher:swordfish-and-more") } };
    const line = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg";
    const secrets = secretsIn(
      object("Secret", {
        data: {
          ".dockerconfigjson": base64(JSON.stringify({ auths })),
          "tls.key": base64(`-----BEGIN PRIVATE KEY-----\n${line}\n${line.toLowerCase()}\n-----END PRIVATE KEY-----\n`),
          "tls.crt": base64("-----BEGIN CERTIFICATE-----\nabc\n"),
        },
      }),
    );
    expect(secrets).toEqual([
      { name: ".dockerconfigjson of the Secret one", text: "swordfish-and-more" },
      { name: "tls.key of the Secret one", text: line.toLowerCase() },
    ]);
    expect(leaksIn([{ where: "here", text: "pull with swordfish-and-more" }], [], secrets)).toEqual([
      "here holds the .dockerconfigjson of the Secret one in plain text",
    ]);
  });

  test("secrets of two clusters differ, and each has the form of a token's secret [support-canary-8]", () => {
    const other = newCanaries();
    expect(new Set([...Object.values(canaries), ...Object.values(other)]).size).toBe(14);
    for (const text of Object.values(other)) expect(text).toMatch(/^[a-z0-9]{32}$/);
  });
});
