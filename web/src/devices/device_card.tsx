// One device: its state and reason, holder, waiters, memory, use.
import { useState } from 'preact/hooks';
import type { Device, DeviceStatus } from '../api';
import { Fact } from '../results/views';
import { sentence } from '../parts/problem';
import { formatBytes, formatSeconds, formatShare } from '../numbers';
import { ResetDialog } from '../session/reset_dialog';

const kTones: Record<string, string> = { busy: 'accent', idle: 'good', waiting: 'warn', opening: 'warn', draining: 'warn', closing: 'warn', failed: 'bad', lost: 'bad' };

export function DeviceCard({ device }: { device: Device }) {
  const [resets, setResets] = useState(false);
  const { status } = device;
  return (
    <article class="card device stack tight" aria-label={`Device ${device.id}`}>
      <header class="row">
        <h2 class="mono">{device.id}</h2>
        <span class={`tag end ${device.available ? (kTones[status?.state ?? ''] ?? '') : 'bad'}`}>{device.available ? (status?.state ?? 'no backend') : 'unavailable'}</span>
      </header>
      <p class="row small soft break">
        {device.simulated && <span class="tag warn">simulated</span>}
        {[device.name, device.architecture, device.exclusive ? 'one program at a time' : ''].filter(Boolean).join(' · ')}
      </p>
      {!device.available && (
        <div class="notice warn small">
          {device.reason && <p>{sentence(device.reason)}</p>}
          {device.remedy && <p>{sentence(device.remedy)}</p>}
        </div>
      )}
      {status && <Status status={status} device={device} />}
      {status && device.kind !== 'cpu' && (
        <p class="row small foot-actions">
          <button type="button" class="plain small end" aria-label={`Reset ${device.id}`} onClick={() => setResets(true)}>
            Reset
          </button>
        </p>
      )}
      {resets && <ResetDialog device={device.id} onClose={() => setResets(false)} />}
    </article>
  );
}

function Status({ status, device }: { status: DeviceStatus; device: Device }) {
  const holders = status.users.filter((user) => user.holding);
  const waiters = status.users.filter((user) => !user.holding);
  const { counters, memory } = status;
  return (
    <>
      {status.reason && <p class="small break">{sentence(status.reason)}</p>}
      <dl class="facts small">
        <Fact name={`${status.state[0].toUpperCase()}${status.state.slice(1)} for`} value={status.state_seconds > 0 ? formatSeconds(status.state_seconds) : '–'} />
        <Fact name="Total open time" value={formatSeconds(status.open_seconds)} />
        <Fact name="Utilisation" value={formatShare(status.utilisation)} title="Computing time divided by open time" />
        <Fact name="Efficiency" value={formatShare(status.efficiency)} title="Busy time divided by all time the device cost, including opening and closing" />
        <Fact name="Runs" value={String(counters.runs ?? 0)} />
        <Fact name="Opened" value={`${counters.opens ?? 0} ×`} title={`${counters.warm ?? 0} leases found it open, ${counters.cold ?? 0} did not`} />
        {device.power_watts !== null && <Fact name="Power" value={`${device.power_watts.toFixed(0)} W`} />}
        {device.temperature_celsius !== null && <Fact name="Temperature" value={`${device.temperature_celsius.toFixed(0)} °C`} />}
        {device.cost_per_hour !== null && device.cost_per_hour > 0 && (
          <Fact name={device.cost_is_estimate ? 'Estimated cost' : 'Cost'} value={`$${device.cost_per_hour.toFixed(2)} / h`} />
        )}
      </dl>
      <Meter name="Memory" used={memory.used_bytes} limit={memory.limit_bytes || device.memory_total_bytes || 0} peak={memory.peak_bytes} />
      <div class="small who">
        <h3 class="label">Held by</h3>
        {holders.length === 0 ? (
          <p class="soft">nobody</p>
        ) : (
          <ul>
            {holders.map((user) => (
              <li class="break">
                {user.who} <span class="soft number">{formatSeconds(user.seconds)}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
      <div class="small who">
        <h3 class="label">Waiting</h3>
        {waiters.length === 0 ? (
          <p class="soft">nobody</p>
        ) : (
          <ol class="waiters">
            {waiters.map((user, i) => (
              <li class="break">
                <span class="number soft">{i + 1}</span> {user.who} <span class="soft number">{formatSeconds(user.seconds)}</span>
              </li>
            ))}
          </ol>
        )}
      </div>
      {(counters.lost > 0 || counters.open_failures > 0 || counters.run_failures > 0) && (
        <p class="small wrong">
          {[
            counters.lost > 0 ? `lost ${counters.lost} ×` : '',
            counters.open_failures > 0 ? `${counters.open_failures} failed opens` : '',
            counters.run_failures > 0 ? `${counters.run_failures} failed runs` : '',
          ].filter(Boolean).join(', ')}
        </p>
      )}
    </>
  );
}

function Meter({ name, used, limit, peak }: { name: string; used: number; limit: number; peak: number }) {
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  const text = limit > 0 ? `${formatBytes(used)} of ${formatBytes(limit)}` : formatBytes(used);
  return (
    <div class="meter">
      <div class="row between small">
        <span class="label">{name}</span>
        <span class="number" title={`Peak use: ${formatBytes(peak)}`}>{text}</span>
      </div>
      <div class="meter-bar" role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={limit || 1} aria-valuenow={used} aria-valuetext={text}>
        <span style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}
