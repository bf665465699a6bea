// Shows the computation as code in several languages.
import { useState } from 'preact/hooks';
import { checked, program, request } from '../calculator/state';
import { devices } from '../connection';
import { CopyButton } from '../parts/copy_button';
import { Dialog } from '../parts/dialog';
import { sentence } from '../parts/problem';
import { TabPanel, Tabs } from '../parts/tabs';
import { session } from '../session/session';
import { kLanguages, type Language, snippet } from './snippets';

export function CodeDialog({ onClose }: { onClose: () => void }) {
  const [language, setLanguage] = useState<Language>('command');
  const verdict = checked.value?.key === request.value.key ? checked.value : undefined;
  const elements = verdict?.results?.reduce((sum, result) => sum + result.elements, 0) ?? 0;
  let text = '';
  let wrong = '';
  try {
    text = snippet(language, program.value, { origin: location.origin, login: session.value?.required ?? false, devices: devices.value, elements });
  } catch (error) {
    wrong = sentence((error as Error).message);
  }
  return (
    <Dialog title="The same as code" wide onClose={onClose}>
      <Tabs label="Language" prefix="code" tabs={kLanguages.map(([id, label]) => ({ id, label }))} chosen={language} onChoose={setLanguage} />
      <TabPanel prefix="code" chosen={language}>
        {wrong ? <p class="wrong">{wrong}</p> : <pre class="code" id="code-text" tabIndex={0}>{text}</pre>}
      </TabPanel>
      <form method="dialog" class="row">
        {!wrong && <CopyButton text={() => text} label="Copy" />}
        <button>Close</button>
      </form>
    </Dialog>
  );
}
