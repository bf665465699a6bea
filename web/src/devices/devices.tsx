// The dashboard: every device with its holders, waiters and cost.
import { useEffect } from 'preact/hooks';
import { get, type DeviceEvent } from '../api';
import { accelerators, addEvents, addHolds, devices, devicesKnown, dropped, reconnects } from '../connection';
import type { Hold } from '../device_history';
import { DeviceCard } from './device_card';
import { LedgerCard } from './ledger_card';
import { PolicyCard } from './policy_card';
import { SearchedAccelerators } from './searched';
import { TimelineCard } from './timeline_card';
import './devices.css';

export function Devices() {
  useEffect(() => {
    get<{ events: DeviceEvent[]; holds: Hold[] }>('/api/timeline')
      .then((answer) => (addEvents(answer.events), addHolds(answer.holds)))
      .catch(() => undefined);
  }, [reconnects.value]);
  return (
    <div class="stack dashboard">
      <h1 class="hidden">Devices</h1>
      {devicesKnown.value && accelerators.value.length === 0 && (
        <div class="notice">
          <p class="title">No accelerator was found on this machine.</p>
          <p>
            Programs run on the CPU. The table says what was looked for, and what to install on a machine that has such a card. The server can also be started with a simulated device for trying things out.
          </p>
          <SearchedAccelerators />
        </div>
      )}
      <section class="cards" aria-label="Devices">
        {!devicesKnown.value && <p class="empty" role="status">Loading …</p>}
        {devices.value.map((device) => (
          <DeviceCard key={device.id} device={device} />
        ))}
      </section>
      {accelerators.value.length > 0 && (
        <details class="card">
          <summary>Which accelerators were looked for</summary>
          <SearchedAccelerators />
        </details>
      )}
      <TimelineCard />
      {dropped.value > 0 && <p class="small soft">{dropped.value} events came faster than this page could read them.</p>}
      <div class="pair">
        <PolicyCard />
        <LedgerCard />
      </div>
    </div>
  );
}
