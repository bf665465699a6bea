// The distribution of a result's values, and its error against the reference.
import type { Comparison, Result, Scalar } from '../api';
import { formatError, formatValue } from '../numbers';

const numeric = (value: Scalar | null | undefined) => (value === null || value === undefined ? NaN : Number(value));

export const Samples = ({ result }: { result: Result }) => (
  <p class="number break">{result.elements === 0 ? 'The result has no elements.' : result.sample_values.map((value) => formatValue(value, result.dtype)).join(', ')}</p>
);

export function HistogramView({ result }: { result: Result }) {
  const { histogram, statistics } = result;
  if (!histogram || !statistics) return <Samples result={result} />;
  const low = numeric(histogram.low);
  const high = numeric(histogram.high);
  const odd = statistics.nan + statistics.positive_infinity + statistics.negative_infinity;
  const step = (high - low) / histogram.counts.length;
  const labels = histogram.counts.map((_, i) => `${formatError(low + i * step)} to ${formatError(low + (i + 1) * step)}`);
  return (
    <div class="stack tight">
      <Bars counts={histogram.counts} labels={labels} name="Distribution of the values" />
      <p class="row between small soft number">
        <span>{formatValue(histogram.low, result.dtype)}</span>
        <span>{formatValue(histogram.high, result.dtype)}</span>
      </p>
      <dl class="facts small">
        <Fact name="Smallest" value={formatValue(statistics.min, result.dtype)} />
        <Fact name="Largest" value={formatValue(statistics.max, result.dtype)} />
        <Fact name="Mean" value={formatError(statistics.mean)} />
        <Fact name="Deviation" value={formatError(statistics.deviation)} />
        <Fact name="Zeros" value={String(statistics.zero)} />
        <Fact name="NaN, infinite" value={odd === 0 ? 'none' : `${statistics.nan}, ${statistics.positive_infinity + statistics.negative_infinity}`} />
      </dl>
    </div>
  );
}

export function Bars({ counts, labels, name }: { counts: number[]; labels: string[]; name: string }) {
  const most = Math.max(...counts, 1);
  const width = 100 / counts.length;
  const largest = counts.indexOf(most);
  return (
    <svg class="bars" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`${name}: ${counts.length} bins, the largest has ${counts[largest] ?? 0} elements (${labels[largest] ?? ''})`}>
      {counts.map((count, i) => {
        const height = count === 0 ? 0 : Math.max(0.6, (count / most) * 40);
        return (
          <rect x={i * width + width * 0.06} y={40 - height} width={width * 0.88} height={height}>
            <title>{`${labels[i]}: ${count}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

export const Fact = ({ name, value, title }: { name: string; value: string; title?: string }) => (
  <div title={title}>
    <dt>{name}</dt>
    <dd class="number">{value}</dd>
  </div>
);

export function ErrorView({ comparison, result, isPending }: { comparison: Comparison | null; result: Result; isPending: boolean }) {
  if (!comparison && isPending) return <p class="soft">The reference is still computing.</p>;
  if (!comparison) return <p class="soft">The result was not compared with the reference.</p>;
  if (comparison.skipped) return <p class="soft">Not compared: {comparison.skipped}.</p>;
  const { edges, counts } = comparison.ulp_histogram;
  const labels = edges.map((edge, i) => (i + 1 < edges.length ? `${edge} to ${edges[i + 1]} ULP` : `${edge} ULP and more`));
  const odd = comparison.nan + comparison.reference_nan + comparison.infinity + comparison.reference_infinity > 0;
  return (
    <div class="stack tight">
      <dl class="facts small">
        <Fact name="Largest error" value={formatError(comparison.max_abs)} title="Absolute, over the whole tensor" />
        <Fact name="Relative" value={formatError(comparison.max_rel)} title="Relative, where the reference is not 0" />
        <Fact name="In ULP" value={formatError(comparison.max_ulp)} title={`Units in the last place of ${result.dtype}`} />
        <Fact name="Correlation" value={comparison.pcc === null ? '–' : formatPcc(comparison.pcc)} title="Pearson's correlation with the reference" />
        <Fact name="Beyond tolerance" value={`${comparison.mismatches} of ${result.elements}`} />
        {odd && <Fact name="NaN in result, reference" value={`${comparison.nan}, ${comparison.reference_nan}`} />}
        {odd && <Fact name="Infinities in result, reference" value={`${comparison.infinity}, ${comparison.reference_infinity}`} />}
      </dl>
      {comparison.worst_index && comparison.max_abs !== 0 && (
        <p class="small soft break">
          Worst at <span class="number">[{comparison.worst_index.join(', ')}]</span>: <span class="number">{formatValue(comparison.worst_value, result.dtype)}</span> here,{' '}
          <span class="number">{formatValue(comparison.worst_reference, 'float64')}</span> by the reference.
        </p>
      )}
      <Bars counts={counts} labels={labels} name="Errors in ULP" />
      <p class="row between small soft number edges">
        {edges.map((edge) => (
          <span>{edge}</span>
        ))}
      </p>
      <p class="small soft">
        {comparison.tolerance.ulp === 0
          ? `An element of ${result.dtype} matches only if it is equal.`
          : `Errors in ULP of ${result.dtype}. An element matches within ${comparison.tolerance.ulp} of them, or within ${formatError(comparison.tolerance.relative_to_largest)} of the largest value.`}
      </p>
    </div>
  );
}

const formatPcc = (pcc: number) => (pcc === 1 ? '1' : pcc > 0.9999 ? `1 - ${formatError(1 - pcc)}` : pcc.toFixed(5));
