import { describe, expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { LineWriter, morning } from "../../../test/support/line-writer.ts";
import type { Node } from "../../api/foreign/kubernetes.ts";
import {
  type JoinedNode,
  addressDigest,
  joinOverdueMs,
  joinedNode,
  judgeJoins,
  nextOverdueMs,
  overdueLine,
  overdueText,
  servedMachines,
  unreportedJoins,
} from "./judge-joins.ts";

const server = () => new LineWriter("server", "machine-config-server-x", "pod-3");
const serve = (writer: LineWriter, seconds: number, requester: string, pool = "worker") =>
  writer.at(seconds, {
    book: "cluster",
    chapter: "Server",
    path: `Served/${pool}`,
    mark: "note",
    reason: "Served",
    message: "served",
    data: { requester, config: `rendered-${pool}-1` },
  });
const node = (name: string, seconds: number, addresses: readonly string[] = [], pool = "worker"): JoinedNode => ({
  name,
  pool,
  createdAt: morning + seconds * 1000,
  addresses,
});
const at = (seconds: number) => morning + seconds * 1000;
const judged = (writer: LineWriter, nodes: readonly JoinedNode[], seconds: number) =>
  judgeJoins(servedMachines(writer.lines), nodes, at(seconds)).map(({ requester, is, node: name }) => [
    requester,
    is,
    ...(name === undefined ? [] : [name]),
  ]);

describe("machines that were served", () => {
  test("are one each, however often they ask while they boot, and another one when they boot again [books-judge-joins-1]", () => {
    const writer = server();
    for (const seconds of [0, 5, 600, 9000]) serve(writer, seconds, "10.0.0.7");
    serve(writer, 7, "10.0.0.8", "infra");
    expect(
      servedMachines(writer.lines).map(({ requester, pool, servedAt }) => [
        requester,
        pool,
        (servedAt - morning) / 1000,
      ]),
    ).toEqual([
      ["10.0.0.7", "worker", 0],
      ["10.0.0.8", "infra", 7],
      ["10.0.0.7", "worker", 9000],
    ]);
  });

  test("keep what their requests say of their boot images, if it is a version [books-judge-joins-9]", () => {
    const writer = server();
    for (const [second, ignition] of [undefined, "2.9", "2.9\u001b[2J", "2"].entries())
      writer.at(second, {
        book: "cluster",
        chapter: "Server",
        path: "Served/worker",
        mark: "note",
        reason: "Served",
        message: "served",
        data: { requester: `10.0.0.${second}`, config: "c", ...(ignition === undefined ? {} : { ignition }) },
      });
    expect(servedMachines(writer.lines).map(({ ignition }) => ignition)).toEqual([
      undefined,
      "2.9",
      undefined,
      undefined,
    ]);
  });

  test("are overdue after half an hour without a node [books-judge-joins-2]", () => {
    const writer = server();
    serve(writer, 0, "10.0.0.7");
    expect([judged(writer, [], 1799), judged(writer, [], 1800)]).toEqual([
      [["10.0.0.7", "waiting"]],
      [["10.0.0.7", "overdue"]],
    ]);
    expect(nextOverdueMs(judgeJoins(servedMachines(writer.lines), [], at(600)), at(600))).toBe(joinOverdueMs - 600_000);
  });

  test("have joined as the node of their address, also where addresses are shown as digests, and also as one that was there before [books-judge-joins-3]", () => {
    const writer = server();
    serve(writer, 0, "10.0.0.7");
    serve(writer, 1, addressDigest("10.0.0.8"));
    expect(judged(writer, [node("old", -90_000, ["10.0.0.7"]), node("new", 300, ["10.0.0.8"])], 4000)).toEqual([
      ["10.0.0.7", "joined", "old"],
      [addressDigest("10.0.0.8"), "joined", "new"],
    ]);
  });

  test("are probably the node of their pool that came in that time, each another one [books-judge-joins-4]", () => {
    const writer = server();
    serve(writer, 0, "10.0.0.7");
    serve(writer, 10, "10.0.0.8");
    serve(writer, 20, "10.0.0.9");
    serve(writer, 30, "10.0.0.10", "infra");
    const nodes = [
      node("w1", 310, ["192.168.0.1"]),
      node("w2", 300, ["10.0.0.9"]),
      node("w3", 5),
      node("before", -5),
      node("i1", 4000, [], "infra"),
    ];
    expect(judged(writer, nodes, 5000)).toEqual([
      ["10.0.0.7", "probable", "w3"],
      ["10.0.0.8", "probable", "w1"],
      ["10.0.0.9", "joined", "w2"],
      ["10.0.0.10", "overdue"],
    ]);
  });

  test("are told from each other in time in proportion to their number [books-judge-joins-10]", async () => {
    const work = (count: number) => {
      const writer = server();
      for (let machine = 0; machine < count; machine++) serve(writer, machine, `10.0.0.${machine}`, "infra");
      const served = servedMachines(writer.lines);
      const nodes = Array.from({ length: count }, (_, i) => node(`w${i}`, i, [`192.168.0.${i}`]));
      return countWork(() => {
        expect(judgeJoins(served, nodes, at(count)).filter(({ is }) => is === "waiting")).not.toEqual([]);
      });
    };
    expect(await work(2000)).toBeLessThan(6 * (await work(500)));
  });

  test("are looked for by the first 64 addresses of each node, whose digests are made once [books-judge-joins-11]", () => {
    const addresses = Array.from({ length: 20_000 }, (_, i) => ({ type: "InternalIP", address: `10.0.${i}` }));
    const many = { metadata: { name: "w" }, status: { addresses } } as unknown as Node;
    const joined = joinedNode(many, "worker");
    expect(joined.addresses).toEqual(addresses.slice(0, 64).map(({ address }) => address));
    expect(joinedNode(many, "worker").addresses).toBe(joined.addresses);
  });

  test("that never came are reported in the book of their pool, by the same line at every pass [books-judge-joins-5]", () => {
    const writer = server();
    serve(writer, 0, "10.0.0.7");
    const [join] = judgeJoins(servedMachines(writer.lines), [], at(9000));
    if (join === undefined) throw new Error("nobody was served");
    expect(overdueText(join)).toBe(
      "the machine 10.0.0.7 was given rendered-worker-1 at 2026-01-02T10:00:00Z and has not joined since",
    );
    expect(overdueLine(join)).toMatchObject({
      at: at(1800),
      line: {
        chapter: "Join",
        path: "Overdue",
        mark: "fail",
        reason: "JoinOverdue",
        run: "10.0.0.7 2026-01-02T10:00:00Z",
      },
    });
    expect(judgeJoins(servedMachines(writer.lines), [], at(8 * 86_400))).toEqual([]);
  });

  test("that never came are reported once each, and forgotten when the journal forgets them [books-judge-joins-6]", () => {
    const writer = server();
    for (let machine = 0; machine < 50; machine++) serve(writer, machine, `10.0.1.${machine}`);
    const served = servedMachines(writer.lines);
    const first = unreportedJoins(new Set(), judgeJoins(served, [], at(9000)));
    expect([first.unreported.length, first.reported.size]).toEqual([50, 50]);
    const again = unreportedJoins(first.reported, judgeJoins(served.slice(45), [], at(9000)));
    expect([again.unreported.length, again.reported.size]).toEqual([0, 5]);
    // A machine that joins late, and whose node goes, is no news.
    const late = unreportedJoins(
      again.reported,
      judgeJoins(served.slice(45), [node("w", 9000, ["10.0.1.45"])], at(9001)),
    );
    expect(unreportedJoins(late.reported, judgeJoins(served.slice(45), [], at(9002))).unreported).toEqual([]);
    expect(unreportedJoins(late.reported, []).reported.size).toBe(0);
  });
});
