import { parseAst } from "vitest/node";

/** What the guard needs of a syntax tree (ESTree with TypeScript's types). */
interface SyntaxNode {
  readonly type: string;
  readonly start: number;
  readonly [key: string]: unknown;
}

const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

/** The node and everything below it, in the order of the source. */
function nodesIn(node: SyntaxNode, into: SyntaxNode[] = []): readonly SyntaxNode[] {
  into.push(node);
  for (const value of Object.values(node))
    if (Array.isArray(value)) {
      for (const each of value) if (isNode(each)) nodesIn(each, into);
    } else if (isNode(value)) nodesIn(value, into);
  return into;
}

const nodeAt = (node: SyntaxNode | undefined, key: string): SyntaxNode | undefined => {
  const value = node?.[key];
  return isNode(value) ? value : undefined;
};

const nameOf = (node: SyntaxNode | undefined): string | undefined =>
  node?.type === "Identifier" && typeof node["name"] === "string" ? node["name"] : undefined;

/** The name that a chain of calls and members begins with: `test` of `test.skipIf(x).for(rows)`. */
function rootOf(node: SyntaxNode | undefined): string | undefined {
  if (node?.type === "CallExpression") return rootOf(nodeAt(node, "callee"));
  if (node?.type === "MemberExpression") return rootOf(nodeAt(node, "object"));
  return nameOf(node);
}

/** The function that a call names, or `expect` for a member of what expects: `expect.poll(…).toBe(…)`, `fc.assert(…)`. */
function calledName(call: SyntaxNode): string | undefined {
  const callee = nodeAt(call, "callee");
  if (callee?.type !== "MemberExpression") return nameOf(callee);
  const ends = [rootOf(callee), nameOf(nodeAt(callee, "property"))];
  return ends.some((name) => name !== undefined && statesOne(name)) ? "expect" : undefined;
}

const statesOne = (name: string): boolean => /^(expect|assert)([A-Z]|$)/.test(name);

const isFunction = (node: SyntaxNode | undefined): boolean =>
  node !== undefined && /^(ArrowFunctionExpression|FunctionExpression|FunctionDeclaration)$/.test(node.type);

/** Every function of a file that has a name: declared, assigned to a constant, or a member of an object. */
function functionsIn(program: SyntaxNode): ReadonlyMap<string, SyntaxNode> {
  const named = new Map<string, SyntaxNode>();
  for (const node of nodesIn(program)) {
    const [key, body] = isFunction(node)
      ? [nodeAt(node, "id"), node]
      : node.type === "VariableDeclarator"
        ? [nodeAt(node, "id"), nodeAt(node, "init")]
        : [nodeAt(node, "key"), nodeAt(node, "value")];
    const name = nameOf(key);
    if (name !== undefined && body !== undefined && isFunction(body)) named.set(name, body);
  }
  return named;
}

interface Expecting {
  /** Whether the node states an expectation, itself or through a function of the same file. */
  readonly expects: (node: SyntaxNode) => boolean;
  readonly functions: ReadonlyMap<string, SyntaxNode>;
}

function expectingIn(program: SyntaxNode, helpers: ReadonlySet<string>): Expecting {
  const functions = functionsIn(program);
  const known = new Map<string, boolean>();
  const named = (name: string): boolean => {
    if (statesOne(name) || helpers.has(name)) return true;
    const before = known.get(name);
    const body = functions.get(name);
    if (before !== undefined || body === undefined) return before ?? false;
    known.set(name, false); // Until it is known: a function that calls itself.
    const found = expects(body);
    known.set(name, found);
    return found;
  };
  const expects = (node: SyntaxNode): boolean =>
    nodesIn(node).some((each) => {
      const name = each.type === "CallExpression" ? calledName(each) : undefined;
      return name !== undefined && named(name);
    });
  return { expects, functions };
}

const parsed = (text: string): SyntaxNode => {
  const program: unknown = parseAst(text, { lang: "ts" });
  if (!isNode(program)) throw new Error("not a syntax tree");
  return program;
};

/** `test` and `it`, and the names that the file gives to chains of them: `const onlyHere = test.skipIf(…)`. */
function testNamesIn(program: SyntaxNode): ReadonlySet<string> {
  const names = new Set(["test", "it"]);
  for (const node of nodesIn(program)) {
    const name = node.type === "VariableDeclarator" ? nameOf(nodeAt(node, "id")) : undefined;
    const values = [nodeAt(node, "init"), nodeAt(nodeAt(node, "init"), "consequent")];
    if (name !== undefined && values.some((value) => names.has(rootOf(value) ?? ""))) names.add(name);
  }
  return names;
}

/** The tests of a file that end without an expectation, as `line: title`. */
export function testsWithoutExpectation(text: string, helpers: ReadonlySet<string>): readonly string[] {
  const program = parsed(text);
  const { expects, functions } = expectingIn(program, helpers);
  const tests = testNamesIn(program);
  return nodesIn(program).flatMap((node) => {
    if (node.type !== "CallExpression" || !tests.has(rootOf(nodeAt(node, "callee")) ?? "")) return [];
    const [title, ...others] = (Array.isArray(node["arguments"]) ? node["arguments"] : []).filter(isNode);
    if (title === undefined) return [];
    const body = others.map((each) => functions.get(nameOf(each) ?? "") ?? each).find(isFunction);
    if (body === undefined || expects(body)) return [];
    const line = text.slice(0, node.start).split("\n").length;
    return [`${line}: ${text.slice(title.start, text.indexOf("\n", title.start)).trim()}`];
  });
}
