// The models of the server: what they take, where they run, how they are batched; and one to try.
import { useEffect, useState } from 'preact/hooks';
import { get, parseJson, type ProblemBody, send } from '../api';
import { formatBytes } from '../numbers';
import { problemFrom, ProblemNotice } from '../parts/problem';
import { ModelCard } from './model_card';
import { hasFolder, type ModelDetails, models, refresh, type ServedModel } from './served';
import './models.css';

const kRefreshMs = 1000;

// While the view is visible; a request that fails is tried again with the next.
function useModels() {
  useEffect(() => {
    void refresh().catch(() => undefined);
    const timer = setInterval(() => document.visibilityState === 'visible' && void refresh().catch(() => undefined), kRefreshMs);
    return () => clearInterval(timer);
  }, []);
}

export function Models() {
  useModels();
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const [details, setDetails] = useState<ModelDetails | undefined>(undefined);
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const choose = (name: string) => {
    setChosen(name);
    setProblem(undefined);
    setDetails(undefined);
    get<ModelDetails>(`/api/models/${encodeURIComponent(name)}`).then(setDetails, (error) => setProblem(problemFrom(error)));
  };
  const sendFile = (file: File) => {
    setProblem(undefined);
    send(`/api/models?name=${encodeURIComponent(file.name)}`, { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: file })
      .then(async (response) => parseJson(await response.text()) as ModelDetails)
      .then(
        (sent) => {
          setDetails(sent);
          setChosen(sent.model.name);
          return refresh();
        },
        (error) => setProblem(problemFrom(error)),
      );
  };
  const live = models.value?.find((model) => model.name === chosen);
  return (
    <div class="models">
      <h1 class="hidden">Models</h1>
      <div class="stack">
        <ModelList chosen={chosen} onChoose={choose} />
        <DropField onFile={sendFile} />
      </div>
      <div class="stack">
        {problem && <ProblemNotice problem={problem} />}
        {details && live ? (
          <ModelCard model={live} details={details} />
        ) : (
          !problem && <p class="empty" role="status">{chosen ? 'Loading the model …' : 'Choose a model, or drop an ONNX file.'}</p>
        )}
      </div>
    </div>
  );
}

function ModelList({ chosen, onChoose }: { chosen: string | undefined; onChoose: (name: string) => void }) {
  const list = models.value;
  return (
    <section class="card stack tight" aria-labelledby="models-title">
      <h2 id="models-title">Models</h2>
      {!list && <p class="small soft" role="status">Loading …</p>}
      {list?.length === 0 && (
        <p class="small soft">
          {hasFolder.value ? 'The folder of models is empty.' : 'The server was started without a folder of models: tenon serve --models DIRECTORY.'}
        </p>
      )}
      <ul class="model-list">
        {list?.map((model) => (
          <li key={`${model.name}/${model.version}`}>
            <button type="button" aria-pressed={model.name === chosen} onClick={() => onChoose(model.name)}>
              <span class="model-name break">{model.name}</span>
              <State model={model} />
              <span class="small soft">
                {formatBytes(model.file_bytes)}
                {model.generates ? ' · language model' : model.text ? ' · text' : ''}
                {model.version !== '1' ? ` · version ${model.version}` : ''}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function State({ model }: { model: ServedModel }) {
  if (model.state === 'failed') return <span class="tag bad">failed</span>;
  if (model.running + model.waiting + (model.generation?.running ?? 0) + (model.generation?.waiting ?? 0) > 0) return <span class="tag accent">busy</span>;
  if (model.state === 'ready') return <span class="tag good">in memory</span>;
  return <span class="tag">{model.state === 'unloaded' ? 'on disk' : model.state}</span>;
}

function DropField({ onFile }: { onFile: (file: File) => void }) {
  const [over, setOver] = useState(false);
  return (
    <label
      class={`drop ${over ? 'over' : ''}`}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const file = event.dataTransfer?.files[0];
        if (file) onFile(file);
      }}
    >
      <span>Drop an ONNX file here, or choose one</span>
      <input
        type="file"
        class="hidden"
        accept=".onnx"
        aria-label="ONNX file"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = '';
          if (file) onFile(file);
        }}
      />
    </label>
  );
}
