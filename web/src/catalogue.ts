// The op catalogue as the server publishes it, and the search over it.
import { signal } from '@preact/signals';
import type { Op } from './api';

export const ops = signal<Op[]>([]);
const byName = new Map<string, Op>();

export function setCatalogue(list: Op[]) {
  byName.clear();
  for (const op of list) for (const name of [op.name, ...op.aliases]) byName.set(name.toLowerCase(), op);
  ops.value = list;
}

export const findOp = (name: string) => byName.get(name.trim().toLowerCase());

export interface Hit {
  op: Op;
  alias?: string; // the alias that matched, when the name did not
  from: number; // what matched, in the name or the alias
  to: number;
}

// Ranks names before aliases, prefixes before other matches, then categories and descriptions.
export function search(query: string, limit = 40): Hit[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === '') return ops.value.map((op) => ({ op, from: 0, to: 0 }));
  const ranked: { rank: number; hit: Hit }[] = [];
  for (const op of ops.value) {
    const found = rank(op, wanted);
    if (found) ranked.push(found);
  }
  ranked.sort((a, b) => a.rank - b.rank || a.hit.op.name.length - b.hit.op.name.length || (a.hit.op.name < b.hit.op.name ? -1 : 1));
  return ranked.slice(0, limit).map((entry) => entry.hit);
}

function rank(op: Op, wanted: string): { rank: number; hit: Hit } | undefined {
  const place = (text: string) => {
    const at = text.toLowerCase().indexOf(wanted);
    if (at < 0) return undefined;
    const whole = text.length === wanted.length ? 0 : at === 0 ? 1 : text[at - 1] === '_' ? 3 : 4;
    return { rank: whole, from: at, to: at + wanted.length };
  };
  const inName = place(op.name);
  if (inName) return { rank: inName.rank, hit: { op, from: inName.from, to: inName.to } };
  for (const alias of op.aliases) {
    const inAlias = place(alias);
    if (inAlias) return { rank: inAlias.rank + 0.5, hit: { op, alias, from: inAlias.from, to: inAlias.to } };
  }
  if (wanted.length >= 2 && op.category.toLowerCase().startsWith(wanted)) return { rank: 6, hit: { op, from: 0, to: 0 } };
  if (wanted.length >= 3 && op.doc.toLowerCase().includes(wanted)) return { rank: 7, hit: { op, from: 0, to: 0 } };
  return undefined;
}
