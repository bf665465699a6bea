// Tabs: arrow keys move between them, Tab goes on to the panel.
import type { ComponentChildren } from 'preact';

export interface Tab<Id extends string> {
  id: Id;
  label: string;
}

export function Tabs<Id extends string>(props: { label: string; prefix: string; tabs: Tab<Id>[]; chosen: Id; onChoose: (id: Id) => void }) {
  const { tabs, chosen, onChoose, prefix } = props;
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = tabs.findIndex((tab) => tab.id === chosen);
    const to = step ? (at + step + tabs.length) % tabs.length : event.key === 'Home' ? 0 : event.key === 'End' ? tabs.length - 1 : -1;
    if (to < 0) return;
    event.preventDefault();
    onChoose(tabs[to].id);
    document.getElementById(`${prefix}-tab-${tabs[to].id}`)?.focus();
  };
  return (
    <div class="segments" role="tablist" aria-label={props.label} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          type="button" role="tab" id={`${prefix}-tab-${tab.id}`} aria-controls={`${prefix}-panel`} aria-selected={tab.id === chosen}
          tabIndex={tab.id === chosen ? 0 : -1} onClick={() => onChoose(tab.id)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}

export function TabPanel({ prefix, chosen, children }: { prefix: string; chosen: string; children: ComponentChildren }) {
  return (
    <div role="tabpanel" id={`${prefix}-panel`} aria-labelledby={`${prefix}-tab-${chosen}`} tabIndex={0}>
      {children}
    </div>
  );
}
