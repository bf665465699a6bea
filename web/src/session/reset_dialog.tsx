// Resetting a device: the server says what would happen, the user confirms, the server does it.
import { useState } from 'preact/hooks';
import { post, type ProblemBody } from '../api';
import { devices } from '../connection';
import { Dialog } from '../parts/dialog';
import { problemFrom, ProblemNotice, sentence } from '../parts/problem';

interface Answer {
  success: boolean;
  message: string;
  confirm?: string;
  output?: string;
}

export function ResetDialog({ device: first, onClose }: { device?: string; onClose: () => void }) {
  // A CPU has nothing to reset.
  const usable = devices.value.filter((each) => each.status !== null && each.kind !== 'cpu');
  const [device, setDevice] = useState(first ?? usable[0]?.id ?? '');
  const [asked, setAsked] = useState<Answer | undefined>(undefined);
  const [done, setDone] = useState<Answer | undefined>(undefined);
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const step = async (confirm?: string) => {
    setBusy(true);
    setProblem(undefined);
    try {
      const answer = await post<Answer>('/api/device/reset', confirm ? { device, confirm } : { device });
      if (confirm) setDone(answer);
      else setAsked(answer);
    } catch (error) {
      setProblem(problemFrom(error));
      setAsked(undefined);
    }
    setBusy(false);
  };
  return (
    <Dialog title="Reset a device" onClose={onClose}>
      {usable.length === 0 && <p>There is no device to reset: this machine computes on its CPU.</p>}
      <div class="field" hidden={usable.length === 0}>
        <label for="reset-device">Device</label>
        <select id="reset-device" value={device} disabled={busy || done !== undefined} onChange={(event) => (setDevice(event.currentTarget.value), setAsked(undefined), setProblem(undefined))}>
          {usable.map((each) => (
            <option value={each.id}>{`${each.id}: ${each.name}`}</option>
          ))}
        </select>
      </div>
      {usable.length > 0 && !asked && !done && <p class="small soft">Running programs end first. The device is not reset while another program holds it.</p>}
      {asked && !done && <p class="notice warn" role="alert">{sentence(asked.message)}</p>}
      {done && (
        <div class="notice" role="status">
          <p>{sentence(done.message)}</p>
          {done.output && <pre class="code" tabIndex={0}>{done.output}</pre>}
        </div>
      )}
      {problem && <ProblemNotice problem={problem} />}
      <form method="dialog" class="row">
        {!done && !asked && usable.length > 0 && (
          <button type="button" class="danger" disabled={busy || device === ''} onClick={() => void step()}>
            Reset …
          </button>
        )}
        {!done && asked && (
          <button type="button" class="danger" disabled={busy} onClick={() => void step(asked.confirm)}>
            {busy ? 'Resetting …' : `Yes, reset ${device}`}
          </button>
        )}
        <button>{done ? 'Close' : 'Cancel'}</button>
      </form>
    </Dialog>
  );
}
