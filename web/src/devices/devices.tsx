// The dashboard: every device, who has it, who waits, what it cost.
import { useEffect } from 'preact/hooks';
import { get, type DeviceEvent } from '../api';
import { accelerators, addEvents, devices, devicesKnown, dropped, reconnects } from '../connection';
import { DeviceCard } from './device_card';
import { LedgerCard } from './ledger_card';
import { PolicyCard } from './policy_card';
import { TimelineCard } from './timeline_card';
import './devices.css';

export function Devices() {
  useEffect(() => {
    get<{ events: DeviceEvent[] }>('/api/timeline')
      .then((answer) => addEvents(answer.events))
      .catch(() => undefined);
  }, [reconnects.value]);
  return (
    <div class="stack dashboard">
      <h1 class="hidden">Devices</h1>
      {devicesKnown.value && accelerators.value.length === 0 && (
        <div class="notice">
          <p class="title">No accelerator was found on this machine.</p>
          <p>
            Everything is computed by the processor. <code>tenon doctor</code> says why; <code>tenon serve --sim wormhole</code> adds an imagined device to try things with.
          </p>
        </div>
      )}
      <section class="cards" aria-label="Devices">
        {!devicesKnown.value && <p class="empty" role="status">Loading …</p>}
        {devices.value.map((device) => (
          <DeviceCard key={device.id} device={device} />
        ))}
      </section>
      <TimelineCard />
      {dropped.value > 0 && <p class="small soft">{dropped.value} events came faster than this page could read them.</p>}
      <div class="pair">
        <PolicyCard />
        <LedgerCard />
      </div>
    </div>
  );
}
