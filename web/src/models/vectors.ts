// Vectors on a plane: the two directions in which they differ most, and who is near whom.

export const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i], 0);

export function cosine(a: readonly number[], b: readonly number[]): number {
  const length = Math.sqrt(dot(a, a) * dot(b, b));
  return length > 0 ? dot(a, b) / length : 0;
}

// The other vectors by their cosine to |index|, nearest first.
export function neighbours(vectors: readonly number[][], index: number): { index: number; cosine: number }[] {
  return vectors
    .map((vector, i) => ({ index: i, cosine: cosine(vector, vectors[index]) }))
    .filter((each) => each.index !== index)
    .sort((a, b) => b.cosine - a.cosine);
}

// The largest principal component of |rows| (power iteration on the small Gram matrix), as one coordinate per row.
function component(rows: number[][]): number[] {
  const gram = rows.map((a) => rows.map((b) => dot(a, b)));
  let scores = rows.map((_, i) => 1 + i * 0.37);
  for (let step = 0; step < 100; step++) {
    const next = gram.map((row) => dot(row, scores));
    const length = Math.sqrt(dot(next, next));
    if (length < 1e-12) return rows.map(() => 0);
    scores = next.map((value) => value / length);
  }
  return scores;
}

// Two coordinates per vector, each from -1 to 1.
export function plane(vectors: readonly number[][]): [number, number][] {
  if (vectors.length === 0) return [];
  const mean = vectors[0].map((_, k) => vectors.reduce((sum, vector) => sum + vector[k], 0) / vectors.length);
  let rows = vectors.map((vector) => vector.map((value, k) => value - mean[k]));
  const axes = [0, 1].map(() => {
    const scores = component(rows);
    // The direction of these scores, and what is left without it.
    const direction = mean.map((_, k) => rows.reduce((sum, row, i) => sum + row[k] * scores[i], 0));
    const length = Math.sqrt(dot(direction, direction));
    if (length < 1e-12) return rows.map(() => 0);
    const unit = direction.map((value) => value / length);
    const along = rows.map((row) => dot(row, unit));
    rows = rows.map((row, i) => row.map((value, k) => value - along[i] * unit[k]));
    return along;
  });
  const largest = Math.max(1e-12, ...axes.flat().map(Math.abs));
  return vectors.map((_, i) => [axes[0][i] / largest, axes[1][i] / largest]);
}
