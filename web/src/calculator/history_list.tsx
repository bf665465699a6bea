// Earlier computations in this browser.
import { formatAgo, formatSeconds } from '../numbers';
import { clearHistory, past, program, type Remembered } from './state';

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
            <Entry entry={entry} />
          ))}
        </ol>
      )}
    </section>
  );
}

const kMarks: Record<string, string> = { matches: 'good', differs: 'bad', failed: 'bad', cancelled: 'warn' };

function Entry({ entry }: { entry: Remembered }) {
  return (
    <li>
      <button type="button" class="entry" onClick={() => (program.value = entry.program)} title="Restore this setup">
        <span class="entry-title mono">{entry.title}</span>
        <span class="entry-facts small soft">
          <span class={`mark ${kMarks[entry.outcome] ?? ''}`}>{entry.outcome}</span>
          {entry.value !== '' && <span class="number">{entry.value}</span>}
          <span>{entry.device}</span>
          {entry.seconds > 0 && <span>{formatSeconds(entry.seconds)}</span>}
          <span>{formatAgo((Date.now() - entry.when) / 1000)}</span>
        </span>
      </button>
    </li>
  );
}
