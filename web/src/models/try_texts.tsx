// Texts to vectors: a plot of them, and the nearest neighbours of one.
import { useState } from 'preact/hooks';
import { post, type ProblemBody } from '../api';
import { problemFrom, ProblemNotice } from '../parts/problem';
import { neighbours, plane } from './vectors';

const kExample = `A cat sits on the mat.
A kitten is resting on a rug.
The stock market fell today.
Shares lost value this morning.
How do I reset my device?
The accelerator must be restarted.`;

interface Answer {
  data: { index: number; embedding: number[] }[];
  usage: { prompt_tokens: number };
}
interface Embedded {
  texts: string[];
  vectors: number[][];
  tokens: number;
  seconds: number;
}

export function TryTexts({ model }: { model: string }) {
  const [text, setText] = useState(kExample);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const [embedded, setEmbedded] = useState<Embedded | undefined>(undefined);
  const [chosen, setChosen] = useState(0);
  const texts = text.split('\n').filter((line) => line.trim() !== '');
  const embed = async () => {
    setBusy(true);
    setProblem(undefined);
    const begin = performance.now();
    try {
      const answer = await post<Answer>('/v1/embeddings', { model, input: texts, encoding_format: 'float', truncate: true });
      setEmbedded({ texts, vectors: answer.data.map((each) => each.embedding), tokens: answer.usage.prompt_tokens, seconds: (performance.now() - begin) / 1000 });
      setChosen(0);
    } catch (error) {
      setProblem(problemFrom(error));
    }
    setBusy(false);
  };
  return (
    <section class="card stack" aria-labelledby="texts-title">
      <h2 id="texts-title">Try it: texts to vectors</h2>
      <div class="field">
        <label for="texts">Texts, one per line</label>
        <textarea id="texts" rows={7} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </div>
      <div class="row">
        <button type="button" class="primary" disabled={busy || texts.length === 0} onClick={() => void embed()}>
          {busy ? 'Computing …' : 'Compute vectors'}
        </button>
        {embedded && (
          <span class="small soft" role="status">
            {embedded.vectors.length} vectors of {embedded.vectors[0].length} from {embedded.tokens} tokens in {(embedded.seconds * 1000).toFixed(0)} ms
          </span>
        )}
      </div>
      {problem && <ProblemNotice problem={problem} />}
      {embedded && <Plot embedded={embedded} chosen={chosen} onChoose={setChosen} />}
    </section>
  );
}

function Plot({ embedded, chosen, onChoose }: { embedded: Embedded; chosen: number; onChoose: (index: number) => void }) {
  const places = plane(embedded.vectors);
  const near = neighbours(embedded.vectors, chosen);
  const at = ([x, y]: [number, number]) => ({ x: 200 + x * 180, y: 140 - y * 120 });
  return (
    <div class="plot-pair">
      <svg class="plot" viewBox="0 0 400 280" role="img" aria-label="The vectors on a plane">
        {near.slice(0, 3).map((each) => {
          const from = at(places[chosen]);
          const to = at(places[each.index]);
          return <line key={each.index} x1={from.x} y1={from.y} x2={to.x} y2={to.y} />;
        })}
        {places.map((place, i) => {
          const { x, y } = at(place);
          return (
            <g key={i} class={i === chosen ? 'chosen' : ''} onClick={() => onChoose(i)}>
              <title>{embedded.texts[i]}</title>
              <circle cx={x} cy={y} r={6} />
              <text x={x + 9} y={y + 4}>{i + 1}</text>
            </g>
          );
        })}
      </svg>
      <div class="stack tight">
        <div class="field">
          <label for="neighbour-of">Nearest neighbours of</label>
          <select id="neighbour-of" value={chosen} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
            {embedded.texts.map((each, i) => (
              <option key={i} value={i}>{`${i + 1}. ${each}`}</option>
            ))}
          </select>
        </div>
        <ol class="neighbours" aria-label="Nearest neighbours">
          {near.slice(0, 8).map((each) => (
            <li key={each.index}>
              <span class="number">{each.cosine.toFixed(3)}</span> <span class="break">{`${each.index + 1}. ${embedded.texts[each.index]}`}</span>
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}
