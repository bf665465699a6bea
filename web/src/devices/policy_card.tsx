// The keep-open policy, its current threshold, and its cost relative to the optimum.
import { useEffect, useState } from 'preact/hooks';
import { get, type Policy } from '../api';
import { devices, reconnects } from '../connection';
import { formatSeconds } from '../numbers';

const kMeaning: Record<string, string> = {
  on_demand: 'A device closes as soon as its work is done.',
  linger: 'A device stays open for a fixed time after its work.',
  adaptive: 'A device stays open after its work as long as waiting for the next request costs less than reopening it; the threshold is learned from arrivals.',
  always: 'A device stays open until the server ends.',
};

export function PolicyCard() {
  const [policy, setPolicy] = useState<Policy | undefined>(undefined);
  useEffect(() => {
    get<Policy>('/api/policy').then(setPolicy, () => undefined);
  }, [reconnects.value]);
  const driven = devices.value.filter((device) => device.status);
  return (
    <section class="card stack" aria-labelledby="policy-title">
      <h2 id="policy-title">Keeping devices open</h2>
      {policy && (
        <p class="small soft">
          <strong>{policy.keep_open}</strong>. {kMeaning[policy.keep_open] ?? ''} Whoever waits ends it at once.
        </p>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="Keep-open policy by device">
        <table>
          <thead>
            <tr>
              <th scope="col">Device</th>
              <th scope="col">Policy</th>
              <th scope="col" class="number">Stays open</th>
              <th scope="col" class="number">Break-even</th>
              <th scope="col" class="number">Cost relative to optimum</th>
            </tr>
          </thead>
          <tbody>
            {driven.map(({ id, status }) => (
              <tr>
                <th scope="row" class="mono">{id}</th>
                <td>{status!.policy.name || '–'}</td>
                <td class="number">{status!.policy.name ? formatSeconds(status!.policy.threshold_seconds) : '–'}</td>
                <td class="number">{status!.policy.name ? formatSeconds(status!.policy.break_even_seconds) : '–'}</td>
                <td class="number">{status!.policy.name && status!.policy.name !== 'always' ? `${Number(status!.policy.cost_over_optimum).toFixed(2)} ×` : '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="small soft">
        {policy?.quantum_seconds
          ? `While another program waits, a lease keeps its device for at most ${formatSeconds(policy.quantum_seconds)}.`
          : 'While another program waits, a lease keeps its device for ten times the open and close time, at least one second.'}
      </p>
    </section>
  );
}
