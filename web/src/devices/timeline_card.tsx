// Shows who held which device when: bars on a canvas that can be zoomed and moved, and the same as an accessible list.
import { useEffect, useRef, useState } from 'preact/hooks';
import { deviceEvents, devices, others } from '../connection';
import { formatSeconds } from '../numbers';
import { colour, paletteVersion } from '../theme';
import { type Bar, type BarKind, type Lane, lanes, tickStep, tickText } from './timeline';

const kLane = 44;
const kAxis = 22;
const kColours: Record<BarKind, string> = {
  open: 'accent-wash', opening: 'stage-opening', closing: 'stage-closing', held: 'stage-uploading', elsewhere: 'stage-compiling', waited: 'stage-queued', ran: 'stage-computing', lost: 'bad', failed: 'bad',
};
const kNames: [BarKind, string][] = [['open', 'open'], ['opening', 'opening'], ['held', 'held by this server'], ['elsewhere', 'held by another program'], ['ran', 'computing'], ['waited', 'waiting'], ['closing', 'closing'], ['lost', 'lost, failed']];
// Where in its lane a kind is drawn: top and height.
const kPlaces: Record<BarKind, [number, number]> = {
  open: [8, 28], opening: [8, 28], closing: [8, 28], held: [8, 6], elsewhere: [8, 28], ran: [16, 20], waited: [38, 4], lost: [4, 36], failed: [8, 28],
};

export function TimelineCard() {
  const [length, setLength] = useState(120);
  const [end, setEnd] = useState<number | undefined>(undefined); // undefined: follows the clock
  const [now, setNow] = useState(Date.now() / 1000);
  const [pointed, setPointed] = useState('');
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; end: number } | undefined>(undefined);
  const to = end ?? now;
  const from = to - length;
  const rows = lanes(deviceEvents.value, devices.value.map((device) => device.id), now, others.value).filter((lane) => lane.bars.length > 0 || devices.value.some((device) => device.id === lane.device && device.status));
  paletteVersion.value; // drawn again when the colours change

  useEffect(() => {
    if (end !== undefined) return undefined;
    const timer = setInterval(() => setNow(Date.now() / 1000), length < 30 ? 200 : 1000);
    return () => clearInterval(timer);
  }, [end, length]);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, rows, from, to);
  });
  useEffect(() => {
    const element = canvas.current!;
    const size = new ResizeObserver(() => setNow(Date.now() / 1000));
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.offsetX / element.clientWidth) || 0.5);
    };
    size.observe(element);
    element.addEventListener('wheel', wheel, { passive: false });
    return () => (size.disconnect(), element.removeEventListener('wheel', wheel));
  }, [length, to]);

  const zoom = (factor: number, at = 1) => {
    const wanted = Math.min(86400, Math.max(0.01, length * factor));
    if (end !== undefined || at !== 1) setEnd(from + length * at + wanted * (1 - at));
    setLength(wanted);
  };
  const move = (share: number) => setEnd(Math.min(to + share * length, Date.now() / 1000 + length * 0.5));
  const showAll = () => {
    const first = Math.min(...[deviceEvents.value[0]?.time ?? Infinity, ...others.value.map((each) => each.from)]);
    setEnd(undefined);
    if (Number.isFinite(first)) setLength(Math.min(86400, Math.max(1, (Date.now() / 1000 - first) * 1.05)));
  };
  const key = (event: KeyboardEvent) => {
    const action = { '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), End: () => setEnd(undefined), Home: showAll }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  const point = (event: PointerEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    if (drag.current) setEnd(drag.current.end - ((event.clientX - drag.current.x) / box.width) * length);
    else setPointed(under(rows, from + ((event.clientX - box.left) / box.width) * length, event.clientY - box.top, length / box.width));
  };
  return (
    <section class="card stack tight" aria-labelledby="timeline-title">
      <div class="row">
        <h2 id="timeline-title">Timeline</h2>
        <span class="small soft" id="timeline-window">
          {formatSeconds(length)} {end === undefined ? 'up to now' : `up to ${tickText(to, 1)}`}
        </span>
        <div class="row end tools" role="group" aria-label="Timeline window">
          <button type="button" onClick={() => move(-0.5)} aria-label="Earlier">←</button>
          <button type="button" onClick={() => move(0.5)} aria-label="Later">→</button>
          <button type="button" onClick={() => zoom(0.5, end === undefined ? 1 : 0.5)} aria-label="Zoom in">+</button>
          <button type="button" onClick={() => zoom(2, end === undefined ? 1 : 0.5)} aria-label="Zoom out">−</button>
          <button type="button" onClick={showAll}>All</button>
          <button type="button" onClick={() => setEnd(undefined)} aria-pressed={end === undefined}>Live</button>
        </div>
      </div>
      <div class="timeline">
        <ul class="lane-names small mono" aria-hidden="true">
          {rows.map((lane) => (
            <li>
              <span>{lane.device}</span>
            </li>
          ))}
        </ul>
        <canvas
          ref={canvas} tabIndex={0} role="img" style={{ height: `${rows.length * kLane + kAxis}px` }}
          aria-label="Shows who held which device when. Plus and minus zoom, arrow keys move, End follows the clock. The list below has the same events." onKeyDown={key}
          onPointerDown={(event) => (canvas.current!.setPointerCapture(event.pointerId), (drag.current = { x: event.clientX, end: to }))} onPointerMove={point}
          onPointerUp={() => (drag.current = undefined)} onPointerLeave={() => setPointed('')}
        />
      </div>
      <p class="legend small">
        {kNames.map(([kind, name]) => (
          <span>
            <span class={`dot bar-${kind}`} />
            {name}
          </span>
        ))}
      </p>
      <p class="small number pointed">{pointed || '\u00a0'}</p>
      <Events />
    </section>
  );
}

function under(rows: Lane[], time: number, y: number, secondsPerPixel: number): string {
  const lane = rows[Math.floor(y / kLane)];
  if (!lane) return '';
  const slack = secondsPerPixel * 2;
  const order: BarKind[] = ['lost', 'failed', 'ran', 'waited', 'elsewhere', 'held', 'opening', 'closing', 'open'];
  const hits = lane.bars.filter((bar) => bar.from - slack <= time && time <= bar.to + slack).sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  return hits.length === 0 ? '' : `${lane.device}: ${hits.slice(0, 3).map((bar) => `${bar.text} ${formatSeconds(bar.to - bar.from)}`).join(' · ')}`;
}

function draw(canvas: HTMLCanvasElement, rows: Lane[], from: number, to: number) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const x = (time: number) => ((time - from) / (to - from)) * width;
  const [line, soft] = [colour('line'), colour('soft')];
  const step = tickStep(to - from, width / 90);
  context.font = '12px ui-monospace, "DejaVu Sans Mono", monospace';
  context.fillStyle = soft;
  for (let tick = Math.ceil(from / step) * step; tick < to; tick += step) {
    const at = Math.round(x(tick));
    context.fillStyle = line;
    context.fillRect(at, 0, 1, height - kAxis + 4);
    context.fillStyle = soft;
    if (at + 60 < width) context.fillText(tickText(tick, step), at + 3, height - 6);
  }
  const paints = Object.fromEntries(Object.entries(kColours).map(([kind, name]) => [kind, colour(name)]));
  const edge = colour('accent');
  rows.forEach((lane, row) => {
    context.fillStyle = line;
    context.fillRect(0, (row + 1) * kLane - 1, width, 1);
    for (const kind of Object.keys(kPlaces) as BarKind[]) {
      for (const bar of lane.bars) if (bar.kind === kind) paint(bar, row);
    }
  });
  function paint(bar: Bar, row: number) {
    const left = Math.max(-4, x(bar.from));
    const right = Math.min(width + 4, x(bar.to));
    if (right < 0 || left > width) return;
    const [top, tall] = kPlaces[bar.kind];
    context.fillStyle = paints[bar.kind];
    context.fillRect(left, row * kLane + top, Math.max(bar.kind === 'lost' ? 3 : 1.5, right - left), tall);
    if (bar.kind === 'open') {
      context.strokeStyle = edge;
      context.globalAlpha = 0.35;
      context.strokeRect(left + 0.5, row * kLane + top + 0.5, Math.max(1, right - left - 1), tall - 1);
      context.globalAlpha = 1;
    }
  }
}

interface Row {
  key: string;
  time: number;
  device: string;
  text: string;
  seconds: number;
  program: string | null;
}

function Events() {
  const own = deviceEvents.value.slice(-50).map((event): Row => ({
    key: `${event.id} ${event.time}`, time: event.time, device: event.device, text: [event.kind.replace('_', ' '), event.message].filter(Boolean).join(': '),
    seconds: event.seconds, program: event.program,
  }));
  const foreign = others.value.slice(-50).map((each): Row => ({
    key: `${each.device} ${each.who} ${each.from}`, time: each.from, device: each.device, text: each.holding ? 'held by another program' : 'waited for by another program',
    seconds: each.to - each.from, program: each.who,
  }));
  const last = [...own, ...foreign].sort((a, b) => b.time - a.time).slice(0, 50);
  return (
    <details>
      <summary class="small">Last events</summary>
      <div class="scroll events" tabIndex={0} role="region" aria-label="Last events">
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Device</th>
              <th scope="col">Event</th>
              <th scope="col" class="number">Took</th>
              <th scope="col">Program</th>
            </tr>
          </thead>
          <tbody>
            {last.map((event) => (
              <tr key={event.key}>
                <td class="number left">{tickText(event.time, 1)}</td>
                <td class="mono">{event.device}</td>
                <td>{event.text}</td>
                <td class="number">{event.seconds > 0 ? formatSeconds(event.seconds) : ''}</td>
                <td class="break">{event.program}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
