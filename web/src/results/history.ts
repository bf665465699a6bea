// Earlier computations, kept in this browser; their results stay as long as the page is open.
import { signal } from '@preact/signals';
import { type Program, titleOf } from '../calculator/program';
import { recall, remember } from '../storage';
import type { Run } from './runs';

export interface Remembered {
  when: number;
  title: string;
  program: Program;
  outcome: string; // "matches", "differs", "not compared", "failed", "cancelled"; several, if devices disagree
  device: string;
  seconds: number;
  value: string;
}
const kKept = 50;
const kResultsKept = 10;
export const past = signal<Remembered[]>(recall<Remembered[]>('history', []));
const results = new Map<number, Run[]>();

export function addToHistory(entry: Omit<Remembered, 'when' | 'title'>, runs: Run[]) {
  // Entries are told apart by their time.
  const when = Math.max(Date.now(), (past.value[0]?.when ?? 0) + 1);
  past.value = [{ when, title: titleOf(entry.program), ...entry }, ...past.value].slice(0, kKept);
  remember('history', past.value);
  results.set(when, runs);
  for (const key of [...results.keys()].slice(0, -kResultsKept)) results.delete(key);
}

export const resultsOf = (entry: Remembered) => results.get(entry.when);

export function clearHistory() {
  past.value = [];
  results.clear();
  remember('history', []);
}
