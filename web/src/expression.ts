// The part of the expression language that the page needs: tokens for colouring, and the names that an expression reads.
import { findOp, ops } from './catalogue';

export type TokenKind = 'number' | 'op' | 'name' | 'keyword' | 'text' | 'comment' | 'operator' | 'space' | 'unknown';
export interface Token {
  kind: TokenKind;
  text: string;
  at: number;
}

const kKeywords = new Set(['and', 'or', 'not', 'true', 'false', 'True', 'False', 'None', 'inf', 'nan', 'pi', 'e']);
const kDTypes = /^(bool|u?int(8|16|32|64)|b?float(16|32|64)|bfloat[84]_b|[ui](8|16|32|64)|b?f16|f32|f64)$/;
const kPatterns: [TokenKind, RegExp][] = [
  ['comment', /#[^\n]*/y],
  ['space', /\s+/y],
  ['number', /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/y],
  ['name', /[A-Za-z_]\w*/y],
  ['text', /"[^"\n]*"?|'[^'\n]*'?/y],
  ['operator', /\/\/|\*\*|==|!=|<=|>=|<<|>>|\.\.\.|[-+*/%@&|^~<>=()[\],;:.]/y],
];

export function tokens(source: string): Token[] {
  const list: Token[] = [];
  for (let at = 0; at < source.length; ) {
    let found: Token = { kind: 'unknown', text: source[at], at };
    for (const [kind, pattern] of kPatterns) {
      pattern.lastIndex = at;
      const match = pattern.exec(source);
      if (match) {
        found = { kind, text: match[0], at };
        break;
      }
    }
    list.push(found);
    at += found.text.length;
  }
  for (const [i, token] of list.entries()) {
    if (token.kind !== 'name') continue;
    if (kKeywords.has(token.text) || kDTypes.test(token.text)) token.kind = 'keyword';
    else if (next(list, i)?.text === '(') token.kind = findOp(token.text) ? 'op' : 'unknown';
  }
  return list;
}

function next(list: Token[], i: number): Token | undefined {
  while (++i < list.length && list[i].kind === 'space');
  return list[i];
}

function previous(list: Token[], i: number): Token | undefined {
  while (--i >= 0 && list[i].kind === 'space');
  return list[i];
}

// The names that are inputs, in order of appearance: read, not called, not assigned before, and not keyword arguments.
export function freeNames(source: string): string[] {
  const list = tokens(source);
  const assigned = new Set<string>();
  const free: string[] = [];
  let depth = 0;
  let pending: string[] = [];
  list.forEach((token, i) => {
    if (token.text === '(' || token.text === '[') depth++;
    if (token.text === ')' || token.text === ']') depth--;
    const ends = depth === 0 && (token.text === ';' || (token.kind === 'space' && token.text.includes('\n')));
    if (ends) {
      pending.forEach((name) => assigned.add(name));
      pending = [];
    }
    if (token.kind !== 'name' || previous(list, i)?.text === '.') return;
    const after = next(list, i)?.text;
    if (after === '=' && depth > 0) return;
    if (depth === 0 && isTarget(list, i)) {
      pending.push(token.text);
      return;
    }
    if (!assigned.has(token.text) && !free.includes(token.text)) free.push(token.text);
  });
  return free;
}

// `v, i = ...`: the names before a lone '=' at the beginning of a statement.
function isTarget(list: Token[], i: number): boolean {
  for (let j = i + 1; j < list.length; j++) {
    const { kind, text } = list[j];
    if (text === '=') return true;
    if ((kind === 'space' && !text.includes('\n')) || text === ',' || kind === 'name') continue;
    return false;
  }
  return false;
}

// The op whose name or call the caret is in.
export function opAt(source: string, caret: number): string | undefined {
  const list = tokens(source);
  const open: string[] = [];
  for (const [i, token] of list.entries()) {
    if (token.at <= caret && caret <= token.at + token.text.length && token.kind === 'op') return token.text;
    if (token.at >= caret) break;
    if (token.text === '(') {
      const before = previous(list, i);
      open.push(before?.kind === 'op' ? before.text : '');
    }
    if (token.text === ')') open.pop();
  }
  for (let i = open.length - 1; i >= 0; i--) if (open[i] !== '') return open[i];
  return undefined;
}

// Character offset of a place that counts lines and columns from 1.
export function offsetOf(source: string, line: number, column: number): number {
  let start = 0;
  for (let i = 1; i < line; i++) {
    const end = source.indexOf('\n', start);
    if (end < 0) break;
    start = end + 1;
  }
  return Math.min(start + [...source.slice(start)].slice(0, column - 1).join('').length, source.length);
}

export interface Suggestion {
  text: string; // what is inserted
  kind: 'op' | 'parameter' | 'name' | 'data type' | 'constant';
  note: string;
}

// What can complete the word before the caret, best first; |from| is where that word begins.
export function suggestions(source: string, caret: number, limit = 8): { from: number; list: Suggestion[] } {
  const word = /[A-Za-z_]\w*$/.exec(source.slice(0, caret))?.[0] ?? '';
  const from = caret - word.length;
  const list = tokens(source);
  const within = list.find((token) => token.at < caret && caret <= token.at + token.text.length);
  if (word === '' || within?.kind === 'comment' || within?.kind === 'text' || /\d$/.test(source.slice(0, from))) return { from, list: [] };
  const method = /\.\s*$/.test(source.slice(0, from));
  const found: Suggestion[] = [];
  if (!method) found.push(...parametersAt(source, from), ...namesIn(list, from), ...kWordsOffered);
  for (const op of ops.value) for (const name of [op.name, ...op.aliases]) found.push({ text: `${name}(`, kind: 'op', note: op.formula });
  const wanted = word.toLowerCase();
  const fits = found.filter(({ text }) => text.toLowerCase().startsWith(wanted) && text !== word);
  const others = found.filter(({ text, kind }) => kind === 'op' && wanted.length > 1 && text.toLowerCase().includes(`_${wanted}`));
  const distinct = [...new Map([...fits, ...others].map((each) => [each.text, each])).values()];
  return { from, list: distinct.slice(0, limit) };
}

const kWordsOffered: Suggestion[] = [
  ...['bfloat16', 'float16', 'float32', 'float64', 'bfloat8_b', 'bfloat4_b', 'bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'].map((text): Suggestion => ({ text, kind: 'data type', note: '' })),
  ...['pi', 'inf', 'nan', 'true', 'false', 'None'].map((text): Suggestion => ({ text, kind: 'constant', note: '' })),
];

// The parameters of the innermost call that are not given yet.
function parametersAt(source: string, caret: number): Suggestion[] {
  const open: { op: string; at: number }[] = [];
  const list = tokens(source.slice(0, caret));
  list.forEach((token, i) => {
    const before = previous(list, i);
    if (token.text === '(' || token.text === '[') open.push({ op: token.text === '(' && before?.kind === 'op' ? before.text : '', at: token.at });
    if (token.text === ')' || token.text === ']') open.pop();
  });
  const call = open.at(-1);
  const op = call && findOp(call.op);
  if (!op) return [];
  const given = source.slice(call.at, caret);
  return op.parameters.filter(({ name }) => !new RegExp(`\\b${name}\\s*=`).test(given)).map(({ name, doc }) => ({ text: `${name}=`, kind: 'parameter', note: doc }));
}

function namesIn(list: Token[], except: number): Suggestion[] {
  const names = list.filter((token, i) => token.kind === 'name' && token.at !== except && next(list, i)?.text !== '(' && previous(list, i)?.text !== '.');
  return names.map(({ text }) => ({ text, kind: 'name', note: '' }));
}
