// Selects the device: the server's choice, one device, or several for comparison.
import { computed, effect } from '@preact/signals';
import { accelerators, devices, devicesKnown } from '../connection';
import type { Device, Route } from '../api';
import { formatMoney, formatSeconds } from '../numbers';
import { sentence } from '../parts/problem';
import { checked, edit, program, request } from './state';
import { computedProgram, runs } from '../results/runs';
import { recall, remember } from '../storage';

// Keeps the entries of the last visit in place until the server has responded, so that nothing moves under the pointer.
const kSeen = 'devices seen';
const recalled = recall<{ id: string; text: string }[]>(kSeen, []);
const seen = Array.isArray(recalled) && recalled.length > 0 ? recalled : [{ id: '…', text: 'looking for devices' }];
const shown = computed(() => JSON.stringify(devices.value.map((device) => ({ id: device.id, text: chipText(device) }))));
effect(() => {
  if (devicesKnown.value) remember(kSeen, JSON.parse(shown.value));
});

export function DevicePicker() {
  const chosen = program.value.devices;
  const toggle = (id: string) =>
    edit((now) => ({ ...now, devices: now.devices.includes(id) ? now.devices.filter((each) => each !== id) : [...now.devices, id] }));
  const gone = chosen.filter((id) => devicesKnown.value && !devices.value.some((device) => device.id === id || device.aliases.includes(id)));
  return (
    <fieldset class="devices-choice">
      <legend class="label">Device</legend>
      <div class="chips">
        <label class={`chip ${chosen.length === 0 ? 'on' : ''}`}>
          <input type="checkbox" checked={chosen.length === 0} onChange={() => edit((now) => ({ ...now, devices: [] }))} />
          <span>
            <span class="chip-name">Auto</span>
            <span class="small soft">chosen by the server</span>
          </span>
        </label>
        {!devicesKnown.value &&
          seen.map(({ id, text }) => (
            <div class="chip off awaited" aria-hidden="true">
              <input type="checkbox" disabled />
              <span>
                <span class="chip-name mono">{id}</span>
                <span class="small soft">{text}</span>
              </span>
            </div>
          ))}
        {devices.value.map((device) => (
          <Chip device={device} on={chosen.includes(device.id)} onToggle={() => toggle(device.id)} />
        ))}
        {gone.map((id) => (
          <label class="chip on">
            <input type="checkbox" checked onChange={() => toggle(id)} />
            <span>
              <span class="chip-name mono">{id}</span>
              <span class="small wrong">not on this machine</span>
            </span>
          </label>
        ))}
      </div>
      {chosen.length === 0 && <Choice />}
      <Explanation chosen={chosen} />
      <p class="row runs">
        <label for="runs">Runs</label>
        <input id="runs" class="number" type="number" min={1} max={1000} value={program.value.repeat} aria-describedby="runs-note" onInput={(event) => edit((now) => ({ ...now, repeat: event.currentTarget.value }))} />
        <span id="runs-note" class="hint">
          {Number(program.value.repeat) > 1 ? 'The first run and the fastest of the others are timed separately.' : 'With 2 or more, repeats are timed separately from the first run.'}
        </span>
      </p>
    </fieldset>
  );
}

// How auto chooses.
function Choice() {
  const kinds = [...new Set(devices.value.filter(isUsable).map((device) => device.kind))];
  const offered: [string, string][] = [['', "as the server is set"], ['fastest', 'the fastest'], ['cheapest', 'the cheapest'], ...kinds.map((kind): [string, string] => [`prefer:${kind}`, `${kKinds[kind] ?? kind} if possible`])];
  const { choice } = program.value;
  if (choice !== '' && !offered.some(([id]) => id === choice)) offered.push([choice, choice.replace(/^prefer:/, '')]);
  return (
    <p class="row choice">
      <label for="choice">Auto chooses</label>
      <select id="choice" value={choice} onChange={(event) => edit((now) => ({ ...now, choice: event.currentTarget.value }))}>
        {offered.map(([id, name]) => (
          <option value={id}>{name}</option>
        ))}
      </select>
    </p>
  );
}
const kKinds: Record<string, string> = { cpu: 'a CPU', gpu: 'a GPU', tpu: 'a TPU', tenstorrent: 'a Tenstorrent card' };

function Chip({ device, on, onToggle }: { device: Device; on: boolean; onToggle: () => void }) {
  const usable = isUsable(device);
  return (
    <label class={`chip ${on ? 'on' : ''} ${usable ? '' : 'off'}`} title={usable ? '' : [device.reason, device.remedy].filter(Boolean).join(' ')}>
      <input type="checkbox" checked={on} disabled={!usable && !on} onChange={onToggle} />
      <span>
        <span class="chip-name mono">
          {device.id}
          {device.simulated && <span class="tag warn">simulated</span>}
        </span>
        <span class="small soft">{chipText(device)}</span>
      </span>
    </label>
  );
}

function isUsable(device: Device): boolean {
  return device.available && device.status !== null;
}

function chipText(device: Device): string {
  return isUsable(device) ? stateText(device) : device.reason || 'no backend supports it';
}

export function stateText(device: Device): string {
  const status = device.status;
  if (!status) return device.name;
  const waiting = status.waiting > 0 ? `, ${status.waiting} waiting` : '';
  return `${device.name}: ${status.state}${waiting}`;
}

// The device that auto chose, or would choose now.
function Explanation({ chosen }: { chosen: string[] }) {
  if (chosen.length > 1) return <p class="hint">{`${chosen.length} devices compute the same program, side by side.`}</p>;
  if (chosen.length === 1) return <p class="hint">Select more devices to compare them.</p>;
  const took = computedProgram.value === program.value ? runs.value[0]?.result?.route : undefined;
  const would = checked.value?.key === request.value.key ? checked.value.route : undefined;
  const route = took ?? would;
  if (!route) {
    const several = (devicesKnown.value ? devices.value : seen).length > 1;
    return (
      <>
        <p class="hint">
          {devicesKnown.value && accelerators.value.length === 0 ? 'This machine has no accelerator; programs run on the CPU.' : 'The server chooses a device and gives the reason with the result.'}
        </p>
        {several && <Comparison />}
      </>
    );
  }
  const others = route.considered;
  return (
    <>
      <p class="hint break">
        {`Auto ${took ? 'chose' : 'chooses'} ${route.device}: ${route.reason.replace(/[.]$/, '')}.`}
        {route.warning && ` ${sentence(route.warning)}`}
      </p>
      {others.length > 1 && <Comparison considered={others} />}
    </>
  );
}

// Predicted time on each device; the line keeps its place until the predictions are known.
function Comparison({ considered }: { considered?: Route['considered'] }) {
  return (
    <details class={`small ${considered ? '' : 'place-kept'}`}>
      <summary class="soft">Predicted time on each device</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">Device</th>
            <th scope="col" class="number">Expected</th>
            <th scope="col" class="number">Cost</th>
            <th scope="col">Remark</th>
          </tr>
        </thead>
        <tbody>
          {considered?.map((each) => (
            <tr>
              <th scope="row" class="mono">{each.device}</th>
              <td class="number">{each.eligible ? `${each.measured ? '' : '≈ '}${formatSeconds(each.predicted_seconds)}` : '–'}</td>
              <td class="number">{each.dollars ? formatMoney(each.dollars) : '–'}</td>
              <td class="break">{each.remark}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
