// The page's own arithmetic and parsing, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './page_modules.mjs';

const { quantise } = await load('quantise');
const numbers = await load('numbers');
const { freeNames, offsetOf, tokens } = await load('expression');
const { lanes, tickStep } = await load('devices/timeline');
const { parseTensor } = await load('tensor_text');
const { merged, withOthers } = await load('device_history');
const { largest, layoutOf, sourceRectangle, tensorOf } = await load('models/picture');
const { workOf } = await load('models/work');

test('bfloat16 and float16 round to nearest, ties to even', () => {
  assert.deepEqual(quantise([0.1, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 3.39e38, 3.4e38], 'bfloat16'), [0.10009765625, 1, 1 + 2 ** -6, 3.3895313892515355e38, Infinity]);
  assert.deepEqual(quantise([0.1, 65504, 65520, 1e-8], 'float16'), [0.0999755859375, 65504, Infinity, 0]);
});

test('block formats share the largest exponent of sixteen neighbours', () => {
  assert.deepEqual(quantise([1, 0.008], 'bfloat8_b'), [1, 0.015625]);
  assert.deepEqual(quantise([3.14159, 2.71828, 1.41421, 0.57721], 'bfloat8_b'), [3.15625, 2.71875, 1.40625, 0.5625]);
  assert.deepEqual(quantise([3.14159, 2.71828, 1.41421, 0.57721], 'bfloat4_b'), [3, 2.5, 1.5, 0.5]);
  assert.deepEqual(quantise([1.5, -0.3, 0.7, 0.1, 0.125, 0.375], 'bfloat4_b'), [1.5, -0.25, 0.75, 0, 0, 0.5]);
});

test('a block never crosses a row', () => {
  assert.deepEqual(quantise([1, 0.13, 0.13, 0.13], 'bfloat4_b', 2), [1, 0.25, 0.125, 0.125]);
});

test('shapes are read as people write them, and nothing else is', () => {
  for (const text of ['2, 3', '2x3', '[2, 3]', '(2,3)', '2 3']) assert.deepEqual(numbers.parseShape(text), [2, 3]);
  assert.deepEqual(numbers.parseShape(''), []);
  for (const text of ['a', '2,-3', '1.5']) assert.equal(numbers.parseShape(text), undefined);
});

test('pasted text is rows of numbers, with the place of what is none', () => {
  const read = (text) => {
    const { shape, values } = parseTensor(text);
    return { shape, values };
  };
  assert.deepEqual(read('1\t2\n3\t4'), { shape: [2, 2], values: [1, 2, 3, 4] });
  assert.deepEqual(read('1;2;3\n4;5;6'), { shape: [2, 3], values: [1, 2, 3, 4, 5, 6] });
  assert.deepEqual(read('1;2;3'), { shape: [3], values: [1, 2, 3] });
  assert.deepEqual(read('1 2; 3 4'), { shape: [2, 2], values: [1, 2, 3, 4] });
  assert.deepEqual(read('1,5;-2,25\n3;4'), { shape: [2, 2], values: [1.5, -2.25, 3, 4] });
  assert.deepEqual(parseTensor('[[1, nan], [-inf, 4e-2]]').values.map(String), ['1', 'NaN', '-Infinity', '0.04']);
  assert.deepEqual(read("tensor([[[1., 2.]]], device='cuda:0', grad_fn=<AddBackward0>)"), { shape: [1, 1, 2], values: [1, 2] });
  assert.deepEqual(read('np.array([(1, 2), (3, 4)])'), { shape: [2, 2], values: [1, 2, 3, 4] });
  assert.deepEqual(read('[]'), { shape: [0], values: [] });
  assert.deepEqual(parseTensor('[9007199254740993]').texts, ['9007199254740993']);
  assert.match(parseTensor('a,b\n1,2').note, /first row/);
  assert.throws(() => parseTensor('1 2\n3 x'), /row 2, value 2: 'x' is not a number/);
  assert.throws(() => parseTensor('1 2\n3'), /row 2 has 1 values, but row 1 has 2/);
  assert.throws(() => parseTensor('[[1, 2], [3]]'), /same length/);
  assert.throws(() => parseTensor('[[1, 2], 3]'), /same length/);
  assert.throws(() => parseTensor('[1, 2'), /not closed/);
  assert.throws(() => parseTensor('[1] 2'), /unexpected text/);
});

test('values are written exactly where that is short, else as float32 reads them back', () => {
  const { formatValue, formatMoney } = numbers;
  for (const [value, dtype, text] of [
    [1.3125, 'bfloat16', '1.3125'], [0.100097656, 'bfloat16', '0.10009765625'], [0.05960715, 'float32', '0.05960715'], [Math.fround(0.1), 'float32', '0.1'],
    [0.1, 'float64', '0.1'], [1 / 3, 'float64', '0.3333333333333333'], [3e38, 'float32', '3e+38'], [1e-10, 'bfloat16', '1e-10'], [16777216, 'float32', '16777216'],
    ['9007199254740993', 'int64', '9007199254740993'], ['Infinity', 'float32', 'inf'], [true, 'bool', 'true'], [-0, 'float32', '-0'], [123456.79, 'float32', '123456.79'],
  ]) assert.equal(formatValue(value, dtype), text);
  assert.equal(formatMoney(0.000019), '$0.000019');
  assert.equal(formatMoney(1.5), '$1.50');
});

test('names an expression reads without assigning them become inputs', () => {
  assert.deepEqual(freeNames('y = a @ b\ny / norm(y)'), ['a', 'b']);
  assert.deepEqual(freeNames('x.sum(axis=0) + x.T # and c'), ['x']);
  assert.deepEqual(freeNames('v, i = top_k(x, 3); v / sum(v)'), ['x']);
  assert.deepEqual(freeNames('cast(z, bfloat16) + pi * e'), ['z']);
  assert.deepEqual(freeNames('x = x + 1; x'), ['x']);
});

test('every character of an expression is in exactly one token', () => {
  const source = 'gelu(a @ b + 0.5e-3) # ünï\n"text" ? x[..., None]';
  assert.equal(tokens(source).map((token) => token.text).join(''), source);
  assert.equal(offsetOf('ab\ncd', 2, 2), 4);
});

test('events become bars: open, held, computing, waiting', () => {
  const event = (kind, time, more = {}) => ({ id: time, kind, device: 'd:0', time, seconds: 0, message: '', program: 'p', timeline: [], ...more });
  const [{ bars }] = lanes(
    [
      event('opened', 10, { seconds: 2 }), event('granted', 10),
      event('ran', 14, { seconds: 3, timeline: [{ stage: 'queued', start_seconds: 0, seconds: 1 }, { stage: 'computing', start_seconds: 1, seconds: 2 }] }),
      event('released', 15, { seconds: 5 }), event('closed', 18, { seconds: 1 }),
    ],
    ['d:0'], 20,
  );
  const bar = (kind) => bars.filter((each) => each.kind === kind).map(({ from, to }) => [from, to]);
  assert.deepEqual(bar('opening'), [[8, 10]]);
  assert.deepEqual(bar('held'), [[10, 15]]);
  assert.deepEqual(bar('waited'), [[11, 12]]);
  assert.deepEqual(bar('ran'), [[12, 14]]);
  assert.deepEqual(bar('open'), [[10, 18]]);
  assert.deepEqual(bar('closing'), [[17, 18]]);
});

test('what has not ended yet lasts until now', () => {
  const events = [{ id: 1, kind: 'opened', device: 'd:0', time: 10, seconds: 0, message: '', program: '', timeline: [] }];
  assert.deepEqual(lanes(events, [], 30)[0].bars.find((bar) => bar.kind === 'open').to, 30);
  assert.equal(tickStep(120, 10), 15);
});

test('events from the record and from the stream become one history', () => {
  const event = (id, time) => ({ id, time, kind: 'ran', device: 'd:0', seconds: 0, timeline: [] });
  const live = merged([], [event(5, 50), event(6, 60)]);
  const whole = merged(live, [event(1, 10), event(5, 50), event(2, 20)]);
  assert.deepEqual(whole.map(({ id }) => id), [1, 2, 5, 6]);
  assert.deepEqual(merged(whole, [event(1, 100)]).map(({ time }) => time), [10, 20, 50, 60, 100], 'a restarted server counts from 1');
  assert.equal(merged(whole, [event(6, 60)]), whole);
});

test('holds of other processes are kept and drawn', () => {
  const device = (users) => [{ id: 'd:0', status: { users } }];
  const user = (who, holding, here, seconds) => ({ who, holding, here, seconds });
  let seen = withOthers([], device([user('pid 7', true, false, 3), user('here', true, true, 1)]), 100);
  seen = withOthers(seen, device([user('pid 7', true, false, 4.1), user('pid 8', false, false, 1)]), 101);
  seen = withOthers(seen, device([user('pid 8', true, false, 0.5)]), 103);
  assert.deepEqual(seen.map(({ who, holding, from, to }) => [who, holding, from, to]), [['pid 7', true, 97, 101], ['pid 8', false, 100, 101], ['pid 8', true, 102.5, 103]]);
  const [{ bars }] = lanes([], ['d:0'], 110, seen);
  assert.deepEqual(bars.map(({ kind, text }) => [kind, text]), [['elsewhere', 'held by pid 7'], ['waited', 'pid 8 waited'], ['elsewhere', 'held by pid 8']]);
});

test('a picture fits shapes with one or three channels, first or last', () => {
  assert.deepEqual(layoutOf([1, 3, 224, 200]), { batch: 1, channels: 3, height: 224, width: 200, channelsFirst: true });
  assert.deepEqual(layoutOf([2, 28, 30, 1]), { batch: 2, channels: 1, height: 28, width: 30, channelsFirst: false });
  assert.deepEqual(layoutOf([3, 8, 9]), { batch: 1, channels: 3, height: 8, width: 9, channelsFirst: true });
  for (const shape of [[], [4], [2, 3], [1, 2, 8, 8], [1, 3, 0, 8], [1, 1, 3, 8, 8]]) assert.equal(layoutOf(shape), undefined, String(shape));
});

test('pixels become numbers in the order and scale that were chosen', () => {
  const pixels = new Uint8ClampedArray([255, 0, 51, 255, 0, 255, 102, 255]); // two pixels, one above the other
  const first = layoutOf([1, 3, 2, 1]);
  assert.deepEqual(tensorOf(pixels, first, 'rgb', 'unit'), [1, 0, 0, 1, 0.2, 0.4]);
  assert.deepEqual(tensorOf(pixels, first, 'bgr', 'bytes'), [51, 102, 0, 255, 255, 0]);
  assert.deepEqual(tensorOf(pixels, { batch: 2, channels: 3, height: 2, width: 1, channelsFirst: false }, 'rgb', 'signed'), [1, -1, -0.6, -1, 1, -0.19999999999999996, 1, -1, -0.6, -1, 1, -0.19999999999999996]);
  assert.ok(Math.abs(tensorOf(pixels, first, 'rgb', 'imagenet')[0] - (1 - 0.485) / 0.229) < 1e-12);
  const grey = tensorOf(pixels, { batch: 1, channels: 1, height: 2, width: 1, channelsFirst: true }, 'rgb', 'bytes');
  assert.ok(Math.abs(grey[0] - (0.299 * 255 + 0.114 * 51)) < 1e-9);
});

test('a cropped picture keeps its proportions', () => {
  assert.deepEqual(sourceRectangle({ width: 400, height: 200 }, { width: 10, height: 10 }, true), [100, 0, 200, 200]);
  assert.deepEqual(sourceRectangle({ width: 400, height: 200 }, { width: 10, height: 10 }, false), [0, 0, 400, 200]);
  assert.deepEqual(largest([1, 5, 3], 2), [[1, 5], [2, 3]]);
});

test('the work of a model is the sum of its runs on each device', () => {
  const ran = (time, program, timeline) => ({ id: time, kind: 'ran', device: 'd:0', time, seconds: 1, program, timeline });
  const span = (stage, start_seconds, seconds) => ({ stage, start_seconds, seconds });
  const events = [ran(10, 'model m', [span('queued', 0, 0), span('computing', 0.5, 0.5)]), ran(11, 'other', [span('computing', 0, 1)]), ran(12, 'model m', [span('computing', 0, 1)])];
  const [work, ...others] = workOf(events, 'model m');
  assert.equal(others.length, 0);
  assert.deepEqual([work.device, work.runs, work.begin, work.end], ['d:0', 2, 9, 12]);
  assert.deepEqual(work.sums.map(({ stage, seconds }) => [stage, seconds]), [['computing', 1.5]]);
  assert.deepEqual(work.bars.map(({ start_seconds, seconds }) => [start_seconds, seconds]), [[0.5, 0.5], [2, 1]]);
});
