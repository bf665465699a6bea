import { useState } from 'preact/hooks';
import { announce } from './announcer';
import { Copy } from './icons';

// Copies |text| when pressed and confirms it.
export function CopyButton({ text, label, plain }: { text: () => string; label: string; plain?: boolean }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    const copied = await copyText(text());
    setDone(copied);
    announce(copied ? 'Copied.' : 'The browser does not allow copying here; select the text instead.');
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <button type="button" class={plain ? 'plain' : ''} onClick={copy}>
      <Copy />
      {done ? 'Copied' : label}
    </button>
  );
}

// Without a secure context (plain HTTP from another machine) there is no clipboard API, but a selection can be copied.
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.className = 'hidden';
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}
