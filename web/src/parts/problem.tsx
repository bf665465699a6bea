import { Problem, type ProblemBody, Unreachable } from '../api';

// An error as a sentence, what to do about it, and its id for the log.
export function ProblemNotice({ problem }: { problem: ProblemBody }) {
  const busy = problem.code === 'unavailable' || problem.code === 'overloaded' || problem.code === 'deadline_exceeded' || problem.code === 'resource_exhausted';
  const cancelled = problem.code === 'cancelled';
  return (
    <div class={`notice ${busy || cancelled ? 'warn' : 'bad'}`} role={cancelled ? 'status' : 'alert'}>
      <p class="title">{cancelled ? 'Cancelled' : heading(problem)}</p>
      {!cancelled && <p class="break">{sentence(problem.detail)}</p>}
      {problem.hint && <p class="break">{sentence(problem.hint)}</p>}
      {problem.request_id && !cancelled && (
        <p class="small">
          Request <code>{problem.request_id}</code>
        </p>
      )}
    </div>
  );
}

function heading(problem: ProblemBody): string {
  if (problem.place) return 'The expression cannot be computed';
  switch (problem.code) {
    case 'unavailable': return 'Not available at the moment';
    case 'overloaded': return 'The server is overloaded';
    case 'deadline_exceeded': return 'The device did not become free in time';
    case 'resource_exhausted': return 'A limit was reached';
    case 'too_large': return 'Too large';
    case 'unimplemented': return 'Not supported by this device';
    case 'data_loss': return 'The device was lost';
    case 'out_of_range': return 'A value is out of range';
    case 'unreachable': return 'The server is unreachable';
    case 'not_found': return 'Not found';
    case 'internal': return 'Internal error';
    default: return 'This cannot be computed';
  }
}

export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  const begun = /^[a-z][a-z]* /.test(trimmed) ? trimmed[0].toUpperCase() + trimmed.slice(1) : trimmed;
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

export function problemFrom(error: unknown): ProblemBody {
  if (error instanceof Problem) return error.body;
  if (error instanceof Unreachable) {
    return { status: 0, title: '', code: 'unreachable', detail: error.message, hint: 'The page reconnects automatically and keeps your setup. Press Calculate when the server is back.' };
  }
  return { status: 0, title: '', code: 'invalid_argument', detail: error instanceof Error ? error.message : String(error) };
}
