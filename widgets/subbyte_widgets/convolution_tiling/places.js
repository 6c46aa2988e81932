// What belongs together in the pictures of a tiling, looked up in the record (trait "data"): from a selection to the places of
// its markers and to a sentence, and from a place under the pointer back to a selection. view.js follows.

const key = (...parts) => parts.join(",");

function boxes(data, at) {
  const [row, column] = [data.rows[at.i], data.columns[at.j]];
  const [warp, multiply, step] = [data.warps[at.warp], data.multiplies[at.multiply], data.steps[at.step]];
  const { depth, images, tile, block } = data.size;
  const inside = [data.pixels.map((_, i) => i), warp.pixels, [...new Set(multiply.pixels.map((p) => warp.pixels[p]))]].map((all) =>
    all.map((p) => data.pixels[p]).filter(([p, q]) => p < row.outputs && q < column.outputs));
  const stage = data.steps.filter((one) => one.iteration === step.iteration).flatMap((one) => one.columns);
  const starts = row.gemm.map((first) => data.groups[at.group] + first + column.gemm[0]);
  const rows = inside.map((pixels) => pixels.map(([p, q]) => [starts[p] + q * images, images]));
  const whole = starts.map((start) => [start, column.gemm[1]]);
  const first = at.block * data.block_channels;
  const wide = [[first, data.block_channels], [first + warp.columns[0] * tile, warp.columns.length * tile],
    [first + warp.columns[multiply.column] * tile, tile]];
  const reads = (pixels) => {
    const found = new Map();
    for (const [p, q] of pixels) for (const y of row.reads[p]) for (const x of column.reads[q]) found.set(key(x, y), [x, y, 1, 1]);
    return [...found.values()].sort(([x, y], [u, v]) => x - u || y - v);
  };
  const outputs = (pixels) => pixels.map(([p, q]) => [column.first + q, row.first + p, 1, 1]);
  return {
    "out-tile": [[column.first, row.first, column.outputs, row.outputs]],
    "out-warp": outputs(inside[1]),
    "out-now": outputs(inside[2]),
    "in-tile": reads(inside[0]),
    "in-warp": reads(inside[1]),
    "in-now": inside[2].map(([p, q]) => [column.reads[q][step.s], row.reads[p][step.r], 1, 1]),
    "a-tile": whole.map(([start, count]) => [0, start, depth, count]),
    "a-warp": rows[1].map(([start, count]) => [0, start, depth, count]),
    "a-stage": stage.flatMap((c) => whole.map(([start, count]) => [c, start, block, count])),
    "a-now": step.columns.flatMap((c) => rows[2].map(([start, count]) => [c, start, block, count])),
    "b-tile": [[wide[0][0], 0, wide[0][1], depth]],
    "b-stage": stage.map((c) => [wide[0][0], c, wide[0][1], block]),
    "b-warp": [[wide[1][0], 0, wide[1][1], depth]],
    "b-now": step.columns.map((c) => [wide[2][0], c, wide[2][1], block]),
    "c-tile": whole.map(([start, count]) => [wide[0][0], start, wide[0][1], count]),
    "c-warp": rows[1].map(([start, count]) => [wide[1][0], start, wide[1][1], count]),
    "c-now": rows[2].map(([start, count]) => [wide[2][0], start, wide[2][1], count]),
  };
}

function sentence(data, at) {
  const [warp, multiply, step] = [data.warps[at.warp], data.multiplies[at.multiply], data.steps[at.step]];
  const [row, column] = [data.rows[at.i], data.columns[at.j]];
  const span = (first, count) => (count === 1 ? `${first}` : `${first} to ${first + count - 1}`);
  const first = at.block * data.block_channels;
  const places = [...new Set(multiply.pixels)].map((p) => data.pixels[warp.pixels[p]]);
  const outside = places.some(([p, q]) => p >= row.outputs || q >= column.outputs);
  const names = places.map(([p, q]) => `(${row.first + p}, ${column.first + q})`).join(" and ");
  const channels = step.blocks.map((b) => span(b * data.size.block, data.size.block)).join(" and ");
  const filters = span(first + warp.columns[multiply.column] * data.size.tile, data.size.tile);
  return `Block ${at.tile}, ${at.block}: output rows ${span(row.first, row.outputs)}, columns ${span(column.first, column.outputs)}, `
    + `channels ${span(first, data.block_channels)} of images ${span(at.group * data.size.images, data.size.images)}. `
    + `Warp ${at.warp}, instruction ${at.multiply + 1} of ${data.multiplies.length}, step ${at.step + 1} of ${data.steps.length}: `
    + `output pixel ${names}, kernel offset (${step.r}, ${step.s}), input channels ${channels}, output channels ${filters}.`
    + (outside ? " A pixel beyond the edge is computed and thrown away." : "");
}

// From a place in a panel, in its own units, to what is selected there; `instruction` finds a square's warp and instruction.
function placeOf(data, at, name, u, v, instruction) {
  if (name === "in") return tileReading(data, at, Math.floor(u), Math.floor(v));
  if (name === "out") return tileComputing(data, at, u, v);
  const column = () => Math.floor(u / data.size.tile) % (data.block_channels / data.size.tile);
  const block = () => ({ column_block: Math.floor(u / data.block_channels) });
  if (name === "b") return { ...block(), ...stepOf(data, at, v), ...instruction(squareOf(data, at)[0], column()) };
  const row = rowOf(data, v);
  if (!row) return null;
  const { pixel, ...tile } = row;
  if (name === "c") return { ...tile, ...block(), ...instruction(pixel, column()) };
  return { ...tile, ...stepOf(data, at, u), ...instruction(pixel, squareOf(data, at)[1]) };
}

// Pixel and column tile of the selected instruction.
function squareOf(data, at) {
  const [warp, multiply] = [data.warps[at.warp], data.multiplies[at.multiply]];
  return [warp.pixels[multiply.pixels[0]], warp.columns[multiply.column]];
}

const tileAt = (data, group, i, j) => ({ tile: (group * data.rows.length + i) * data.columns.length + j });

// The block tile that computes an output position.
function tileComputing(data, at, u, v) {
  const band = (bands, place) => bands.findIndex((one) => one.first <= place && place < one.first + one.outputs);
  const [i, j] = [band(data.rows, v), band(data.columns, u)];
  return i < 0 || j < 0 ? null : tileAt(data, at.group, i, j);
}

// A block tile that reads an input position: of several the middle one, or the selected one when it does.
function tileReading(data, at, x, y) {
  const [i, j] = [[data.rows, y, at.i], [data.columns, x, at.j]].map(([bands, place, now]) => {
    const reading = [...bands.keys()].filter((one) => bands[one].reads.some((taps) => taps.includes(place)));
    return reading.includes(now) ? now : reading[reading.length >> 1];
  });
  return i === undefined || j === undefined ? null : tileAt(data, at.group, i, j);
}

// The block tile and the pixel in it that a row of the matrix product belongs to.
function rowOf(data, v) {
  const group = data.groups.findLastIndex((start) => start <= v);
  const rest = v - data.groups[group];
  for (const [i, row] of data.rows.entries()) {
    for (const [p, start] of row.gemm.entries()) {
      const j = data.columns.findIndex(({ gemm }) => start + gemm[0] <= rest && rest < start + gemm[0] + gemm[1]);
      if (j < 0) continue;
      const q = Math.floor((rest - start - data.columns[j].gemm[0]) / data.size.images);
      return { ...tileAt(data, group, i, j), pixel: data.pixels.findIndex(([a, b]) => a === p && b === q) };
    }
  }
  return null;
}

// The step that takes a position along K.
function stepOf(data, at, place) {
  const found = data.steps.findIndex(({ columns }) => columns.some((first) => first <= place && place < first + data.size.block));
  return found < 0 ? {} : { step: found };
}

// The step at which the selected pixel meets an enlarged input pixel, in the channels of the present step.
function offsetOf(data, at, i, j) {
  const [row, column] = [data.rows[at.i], data.columns[at.j]];
  const order = (band) => [...new Set(band.reads.flat())].sort((a, b) => a - b);
  const [p, q] = data.pixels[squareOf(data, at)[0]];
  const [r, s] = [row.reads[p].indexOf(order(row)[i]), column.reads[q].indexOf(order(column)[j])];
  const step = data.steps.findIndex((one) => one.r === r && one.s === s && key(one.blocks) === key(data.steps[at.step].blocks));
  return step < 0 ? null : { step };
}

