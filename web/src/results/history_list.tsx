// Earlier computations in this browser: one press shows the result again, or computes it again.
import { newProgram } from '../calculator/program';
import { edit } from '../calculator/state';
import { formatAgo, formatSeconds } from '../numbers';
import { clearHistory, past, type Remembered, resultsOf } from './history';
import { active, compute, showAgain } from './runs';

export function History() {
  return (
    <section class="card stack" aria-labelledby="history-title">
      <div class="row between">
        <h2 id="history-title">History</h2>
        {past.value.length > 0 && (
          <button type="button" class="plain small" onClick={clearHistory}>
            Clear
          </button>
        )}
      </div>
      {past.value.length === 0 ? (
        <p class="soft small">Your computations are listed here, in this browser only.</p>
      ) : (
        <ol class="history">
          {past.value.map((entry) => (
            <Entry key={entry.when} entry={entry} />
          ))}
        </ol>
      )}
    </section>
  );
}

const kMarks: Record<string, string> = { matches: 'good', cancelled: 'warn', 'not compared': '' };

function Entry({ entry }: { entry: Remembered }) {
  const press = () => {
    if (active.value) return;
    // Entries of earlier versions may lack members.
    const program = { ...newProgram(), ...entry.program };
    const kept = resultsOf(entry);
    if (!kept) return compute(program);
    edit(() => program);
    showAgain(program, kept);
  };
  return (
    <li>
      <button type="button" class="entry" onClick={press} title={resultsOf(entry) ? 'Show this result again' : 'Compute this again'}>
        <span class="entry-title mono">{entry.title}</span>
        <span class="entry-facts small soft">
          <span class={`mark ${kMarks[entry.outcome] ?? 'bad'}`}>{entry.outcome}</span>
          {entry.value !== '' && <span class="number">{entry.value}</span>}
          <span>{entry.device}</span>
          {entry.seconds > 0 && <span>{formatSeconds(entry.seconds)}</span>}
          <span>{formatAgo((Date.now() - entry.when) / 1000)}</span>
        </span>
      </button>
    </li>
  );
}
