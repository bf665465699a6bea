// Saves a problem report on the server with the last request and its result.
import { useState } from 'preact/hooks';
import { post, type ProblemBody } from '../api';
import { requestBody } from '../calculator/program';
import { computedProgram, runs } from '../results/runs';
import { Dialog } from '../parts/dialog';
import { problemFrom, ProblemNotice, sentence } from '../parts/problem';

function attachment() {
  const program = computedProgram.value;
  if (!program) return {};
  const request = requestBody(program, program.devices[0]);
  const results = runs.value.map((run) => ({ device: run.requested, status: run.status, problem: run.problem ?? null, status_log: run.log, result: run.result ?? null }));
  return { operation: request.operation ?? request.expression, inputs: request.inputs, parameters: request.parameters ?? {}, result: results };
}

export function ReportDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [saved, setSaved] = useState('');
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const send = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      setSaved((await post<{ message: string }>('/api/bug-report', { description: text, report_data: attachment() })).message);
    } catch (error) {
      setProblem(problemFrom(error));
    }
    setBusy(false);
  };
  return (
    <Dialog title="Report a problem" onClose={onClose}>
      {saved ? (
        <p class="notice" role="status">{sentence(saved)}</p>
      ) : (
        <div class="field">
          <label for="report-text">What did you expect, and what happened?</label>
          <textarea id="report-text" rows={6} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <p class="hint">
            {computedProgram.value ? 'The last computation and its result are included. ' : ''}The report stays on the server's machine; nothing is sent elsewhere.
          </p>
        </div>
      )}
      {problem && <ProblemNotice problem={problem} />}
      <form method="dialog" class="row">
        {!saved && (
          <button type="button" class="primary" disabled={busy || text.trim() === ''} onClick={() => void send()}>
            Save the report
          </button>
        )}
        <button>{saved ? 'Close' : 'Cancel'}</button>
      </form>
    </Dialog>
  );
}
