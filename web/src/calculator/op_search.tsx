// The search box over the catalogue: a combobox, usable without a mouse.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { findOp, type Hit, ops, search } from '../catalogue';

export function OpSearch({ chosen, onChoose }: { chosen: string; onChoose: (name: string) => void }) {
  const [query, setQuery] = useState<string | undefined>(undefined); // undefined: shows the op chosen
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const hits = useMemo(() => (open ? search(query ?? '') : []), [open, query, ops.value]);

  useEffect(() => {
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) close();
    };
    document.addEventListener('pointerdown', outside);
    return () => document.removeEventListener('pointerdown', outside);
  }, []);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at, open]);

  const close = () => {
    setOpen(false);
    setQuery(undefined);
  };
  const pick = (name: string) => {
    close();
    onChoose(name);
  };
  const show = (text: string | undefined) => {
    setOpen(true);
    setQuery(text);
    setAt(text === undefined ? Math.max(0, search('').findIndex((hit) => hit.op.name === chosen)) : 0);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      if (!open) show(query);
      else if (hits.length > 0) setAt((at + (event.key === 'ArrowDown' ? 1 : hits.length - 1)) % hits.length);
    } else if (event.key === 'Enter' && open) {
      event.preventDefault();
      const exact = query === undefined ? undefined : findOp(query);
      const picked = hits[at]?.op ?? exact;
      if (picked) pick(picked.name);
    } else if (event.key === 'Escape' && open) {
      event.preventDefault();
      close();
    } else if (event.key === 'Tab') {
      close();
    }
  };

  return (
    <div class="field op-search" ref={box}>
      <label for="op">Operation</label>
      <input
        id="op" type="text" role="combobox" autocomplete="off" spellcheck={false} aria-autocomplete="list" aria-expanded={open} aria-controls="op-list"
        aria-activedescendant={open && hits[at] ? `op-${hits[at].op.name}` : undefined} aria-describedby="op-keys"
        value={query ?? chosen} placeholder="Search: softmax, matmul, gelu …"
        onFocus={(event) => event.currentTarget.select()} onClick={() => !open && show(undefined)}
        onInput={(event) => show(event.currentTarget.value)} onKeyDown={key}
      />
      <span id="op-keys" class="hidden">Type to search, arrow keys to move, Enter to select, Escape to close.</span>
      <div class="popup" hidden={!open}>
        <ul id="op-list" role="listbox" aria-label="Operations" ref={list}>
          {hits.map((hit, i) => (
            <Option hit={hit} selected={i === at} onPick={() => pick(hit.op.name)} onPoint={() => setAt(i)} />
          ))}
        </ul>
        {hits.length === 0 && <p class="popup-empty">No operations found</p>}
        {hits.length > 0 && <p class="popup-count">{query ? `${hits.length} of ${ops.value.length}` : `${ops.value.length} operations`}</p>}
      </div>
      <div class="hidden" role="status">{open ? (hits.length === 0 ? 'No operations found' : `${hits.length} operations`) : ''}</div>
    </div>
  );
}

function Option({ hit, selected, onPick, onPoint }: { hit: Hit; selected: boolean; onPick: () => void; onPoint: () => void }) {
  const { op, alias } = hit;
  return (
    <li id={`op-${op.name}`} role="option" aria-selected={selected} onPointerDown={(event) => event.preventDefault()} onClick={onPick} onPointerMove={onPoint}>
      <span class="op-name mono">
        {alias ? op.name : <Marked text={op.name} from={hit.from} to={hit.to} />}
        {alias && (
          <span class="soft">
            {' '}
            = <Marked text={alias} from={hit.from} to={hit.to} />
          </span>
        )}
      </span>
      <span class="op-formula mono soft">{op.formula}</span>
      <span class="op-category soft">{op.category}</span>
    </li>
  );
}

const Marked = ({ text, from, to }: { text: string; from: number; to: number }) => (
  <>
    {text.slice(0, from)}
    {to > from && <mark>{text.slice(from, to)}</mark>}
    {text.slice(to)}
  </>
);
