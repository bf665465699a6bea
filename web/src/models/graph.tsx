// The graph of a model: its ops counted, and its nodes in the order in which they run.
import { useEffect, useState } from 'preact/hooks';
import { get, type ProblemBody } from '../api';
import { problemFrom, ProblemNotice } from '../parts/problem';

interface ModelNode {
  name: string | null;
  op: string;
  inputs: string[];
  weights: string[];
  outputs: string[];
}
interface Part {
  nodes: ModelNode[];
  next: number | null;
}

export function Graph({ model, ops }: { model: string; ops: Record<string, number> }) {
  const [open, setOpen] = useState(false);
  const [op, setOp] = useState('');
  const [nodes, setNodes] = useState<ModelNode[]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [problem, setProblem] = useState<ProblemBody | undefined>(undefined);
  const more = () => {
    if (next === null) return;
    get<Part>(`/api/models/${encodeURIComponent(model)}/graph?first=${next}`).then(
      (part) => {
        setNodes((known) => [...known, ...part.nodes]);
        setNext(part.next);
      },
      (error) => setProblem(problemFrom(error)),
    );
  };
  useEffect(() => {
    if (open && nodes.length === 0) more();
  }, [open]);
  const counted = Object.entries(ops).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const most = Math.max(1, ...counted.map(([, count]) => count));
  const shown = nodes.map((node, i) => ({ node, i })).filter(({ node }) => op === '' || node.op === op);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="small">Graph</summary>
      <div class="stack tight">
        <ul class="op-counts small" aria-label="Ops of the model">
          {counted.map(([name, count]) => (
            <li key={name}>
              <span class="mono break">{name}</span> <meter min={0} max={most} value={count} aria-label={`${count} nodes`} /> <span class="number">{count}</span>
            </li>
          ))}
        </ul>
        <div class="field">
          <label for="graph-op">Show</label>
          <select id="graph-op" value={op} onChange={(event) => setOp(event.currentTarget.value)}>
            <option value="">every node</option>
            {counted.map(([name]) => (
              <option value={name}>{name}</option>
            ))}
          </select>
        </div>
        <div class="scroll graph" tabIndex={0} role="region" aria-label="Nodes of the graph">
          <table class="small">
            <thead>
              <tr>
                <th scope="col" class="number">Node</th>
                <th scope="col">Op</th>
                <th scope="col">Reads</th>
                <th scope="col">Makes</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(({ node, i }) => (
                <tr key={i}>
                  <td class="number">{i + 1}</td>
                  <th scope="row" class="mono" title={node.name ?? ''}>{node.op}</th>
                  <td class="mono break">
                    {node.inputs.join(', ')}
                    {node.weights.length > 0 && <span class="soft">{`${node.inputs.length > 0 ? '; ' : ''}weights ${node.weights.join(', ')}`}</span>}
                  </td>
                  <td class="mono break">{node.outputs.join(', ')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {problem && <ProblemNotice problem={problem} />}
        {next !== null && nodes.length > 0 && (
          <p class="row small">
            <span class="soft">The first {nodes.length} nodes.</span>
            <button type="button" class="plain small" onClick={more}>
              Show more
            </button>
          </p>
        )}
      </div>
    </details>
  );
}
