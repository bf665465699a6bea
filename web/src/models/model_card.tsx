// One model: its facts, its batches as they run, and a form to try it.
import { formatBytes, formatSeconds, formatShare } from '../numbers';
import { Chat } from './chat';
import { Graph } from './graph';
import { State } from './models';
import { type Generation, type ModelDetails, paddingShare, type ServedModel, valueText } from './served';
import { TryTensors } from './try_tensors';
import { TryTexts } from './try_texts';

export function ModelCard({ model, details }: { model: ServedModel; details: ModelDetails }) {
  const info = model.info ?? details.model.info;
  const generation = model.generation;
  return (
    <>
      <article class="card stack" aria-label={`Model ${model.name}`}>
        <header class="row between">
          <h2 class="break">{model.name}</h2>
          <State model={model} />
        </header>
        {model.problem && <p class="wrong break">{model.problem}</p>}
        {info && (
          <dl class="facts">
            <Fact name="Format" value={`${info.format}${info.opset > 0 ? ` opset ${info.opset}` : ''}${info.producer ? `, by ${info.producer}` : ''}`} />
            <Fact name="Parameters" value={info.parameters.toLocaleString('en')} />
            <Fact name="Weights" value={formatBytes(info.weight_bytes)} />
            {generation ? <Fact name="Context" value={`${generation.context ?? '–'} tokens`} /> : <Fact name="Nodes" value={String(info.nodes)} />}
            <Fact name="Loaded in" value={formatSeconds(model.load_seconds)} />
            <Fact name="Runs on" value={details.route ? details.route.device : (generation?.device ?? 'depends on the inputs')} title={details.route?.reason} />
          </dl>
        )}
        {info && !generation && <Values title="Inputs" values={info.inputs.map(valueText)} />}
        {info && !generation && <Values title="Outputs" values={info.outputs.map(valueText)} />}
        {info && !generation && <Graph key={model.name} model={model.name} ops={info.ops} />}
      </article>
      {generation ? <Generations generation={generation} /> : <Batches model={model} />}
      {generation ? <Chat key={model.name} model={model.name} chats={!!(generation.chat_format ?? details.model.generation?.chat_format)} /> : model.text ? <TryTexts model={model.name} /> : info && <TryTensors key={model.name} model={model.name} inputs={info.inputs} />}
    </>
  );
}

const Fact = ({ name, value, title }: { name: string; value: string; title?: string }) => (
  <div title={title}>
    <dt>{name}</dt>
    <dd class="break">{value}</dd>
  </div>
);

const Values = ({ title, values }: { title: string; values: string[] }) => (
  <div>
    <h3 class="label">{title}</h3>
    <ul class="mono break">
      {values.map((value) => (
        <li key={value}>{value}</li>
      ))}
    </ul>
  </div>
);

function Generations({ generation }: { generation: Generation }) {
  return (
    <section class="card stack" aria-labelledby="generations-title">
      <h2 id="generations-title">Requests</h2>
      <p class="small soft">Requests advance together, a token each at a time.</p>
      <dl class="facts">
        <Fact name="Waiting" value={String(generation.waiting)} />
        <Fact name="Running" value={String(generation.running)} />
        <Fact name="Answered" value={generation.requests.toLocaleString('en')} />
        <Fact name="Failed or left" value={generation.failures.toLocaleString('en')} />
        <Fact name="Prompt tokens" value={generation.prompt_tokens.toLocaleString('en')} />
        <Fact name="Tokens" value={generation.tokens.toLocaleString('en')} />
      </dl>
    </section>
  );
}

// What the queue does now, and how many rows ran together.
function Batches({ model }: { model: ServedModel }) {
  const most = Math.max(1, ...model.batches.map((batch) => batch.count));
  return (
    <section class="card stack" aria-labelledby="batches-title">
      <h2 id="batches-title">Batches</h2>
      <p class="small soft">
        {model.batched ? `Up to ${model.max_batch_size} rows together: ` : 'Not batched: '}
        {model.batching}.
      </p>
      <dl class="facts">
        <Fact name="Waiting" value={String(model.waiting)} />
        <Fact name="Running" value={String(model.running)} />
        <Fact name="Rows" value={model.inferences.toLocaleString('en')} />
        <Fact name="Rows per batch" value={model.executions > 0 ? (model.inferences / model.executions).toFixed(1) : '–'} />
        <Fact name="Padding" value={formatShare(paddingShare(model))} />
        <Fact name="Dropped" value={String(model.departed + model.late + model.refused)} title={`${model.departed} clients left, ${model.late} were late, ${model.refused} were refused`} />
      </dl>
      {model.batches.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col" class="number">Rows</th>
                <th scope="col">Batches</th>
                <th scope="col" class="number">Mean time</th>
                <th scope="col" class="number">Rows per second</th>
              </tr>
            </thead>
            <tbody>
              {model.batches.map((batch) => (
                <tr key={batch.rows}>
                  <td class="number">{batch.rows}</td>
                  <td>
                    <meter min={0} max={most} value={batch.count} aria-label={`${batch.count} batches of ${batch.rows} rows`} /> {batch.count}
                  </td>
                  <td class="number">{formatSeconds(batch.seconds / batch.count)}</td>
                  <td class="number">{batch.seconds > 0 ? ((batch.rows * batch.count) / batch.seconds).toFixed(0) : '–'}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
