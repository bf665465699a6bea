// Shows the computation as code in several languages.
import { useState } from 'preact/hooks';
import { CopyButton } from '../parts/copy_button';
import { Dialog } from '../parts/dialog';
import { TabPanel, Tabs } from '../parts/tabs';
import { kLanguages, type Language, snippet } from './snippets';
import { program } from './state';

export function CodeDialog({ onClose }: { onClose: () => void }) {
  const [language, setLanguage] = useState<Language>('cpp');
  let text: string;
  try {
    text = snippet(language, program.value);
  } catch (error) {
    text = `${(error as Error).message}`;
  }
  return (
    <Dialog title="The same as code" wide onClose={onClose}>
      <Tabs label="Language" prefix="code" tabs={kLanguages.map(([id, label]) => ({ id, label }))} chosen={language} onChoose={setLanguage} />
      <TabPanel prefix="code" chosen={language}>
        <pre class="code" id="code-text" tabIndex={0}>{text}</pre>
      </TabPanel>
      <form method="dialog" class="row">
        <CopyButton text={() => text} label="Copy" />
        <button>Close</button>
      </form>
    </Dialog>
  );
}
