// The tiled convolution: puts the picture the kernel drew into the page and moves its markers with the selection.
// Positions come from the record (trait "data"), a panel's scale is written on it: here they are looked up and scaled.

const CHOICE = ["tile", "column_block", "warp", "multiply", "step"];
const SMALLEST = 2;

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-tiling";
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="stage"></div><div class="say" aria-live="polite"></div>`;
  const [problem, stage, say] = [".problem", ".stage", ".say"].map((name) => root.querySelector(name));
  el.append(root);

  let [svg, data] = [null, null];
  let panels = {}; // name -> { node, x, y, sx, sy }
  let cells = new Map(); // "pixel,column" -> square of the block tile
  let owners = new Map(); // "pixel,column,share" -> [warp, instruction]
  let [twins, loupe, steps] = [[], [], []]; // twins: warp -> the warps with the same pixels and columns
  let preview = {}; // what the pointer is over, instead of the selection
  let half = 0; // which pixel of a two-pixel instruction the keys stand on

  const key = (...parts) => parts.join(",");
  function toggle(node, classes) {
    for (const [name, on] of Object.entries(classes)) node.classList.toggle(name, on);
  }

  function draw() {
    const words = model.get("error");
    problem.hidden = !words;
    problem.textContent = words;
    stage.hidden = say.hidden = Boolean(words) || !model.get("svg");
    const focused = svg?.contains(document.activeElement) ? document.activeElement.classList[1] : null;
    stage.innerHTML = model.get("svg");
    svg = stage.querySelector("svg");
    data = model.get("data");
    preview = {};
    if (!svg) return;
    index();
    if (focused) svg.querySelector(`.panel.${focused}`)?.focus();
    mark();
  }

  function index() {
    panels = {};
    for (const name of ["in", "out", "a", "b", "c"]) {
      const node = svg.querySelector(`g.${name}[data-sx]`);
      panels[name] = { node, ...Object.fromEntries(["x", "y", "sx", "sy"].map((at) => [at, Number(node.dataset[at])])) };
    }
    cells = new Map([...svg.querySelectorAll(".rt")].map((cell) => [cell.dataset.at, cell]));
    loupe = [...svg.querySelectorAll(".px")].map((cell) => [cell, ...cell.dataset.at.split(",").map(Number)]);
    steps = [...svg.querySelectorAll(".st")];
    owners = new Map();
    twins = data.warps.map((one) => data.warps.flatMap((other, i) =>
      (key(one.pixels) === key(other.pixels) && key(one.columns) === key(other.columns) ? [i] : [])));
    data.warps.forEach((warp, w) => data.multiplies.forEach((multiply, m) => multiply.pixels.forEach((pixel) =>
      owners.set(key(warp.pixels[pixel], warp.columns[multiply.column], warp.share), [w, m]))));
    for (const panel of svg.querySelectorAll(".panel")) panel.addEventListener("keydown", onKey);
  }

  // The selection with every number inside its range, and a warp that takes part in the step.
  function chosen() {
    const limits = [data.groups.length * data.rows.length * data.columns.length, data.column_blocks, data.warps.length,
      data.multiplies.length, data.steps.length];
    const [tile, block, number, multiply, step] = CHOICE.map((name, i) =>
      Math.min(Math.max(preview[name] ?? model.get(name), 0), limits[i] - 1));
    const warp = twins[number].find((other) => data.warps[other].share === data.steps[step].share);
    const across = data.columns.length;
    const [group, i] = [Math.floor(tile / (across * data.rows.length)), Math.floor(tile / across) % data.rows.length];
    return { tile, block, warp, multiply, step, group, i, j: tile % across };
  }

  function boxes(at) {
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

  function path({ x, y, sx, sy }, found) {
    return found.map(([column, row, w, h]) => {
      const sides = [x + column * sx, y + row * sy, Math.max(w * sx, SMALLEST), Math.max(h * sy, SMALLEST)];
      const [left, top, wide, high] = sides.map((side) => side.toFixed(1));
      return `M${left} ${top}h${wide}v${high}h-${wide}z`;
    }).join("");
  }

  function mark() {
    if (!svg) return;
    const at = chosen();
    for (const [name, found] of Object.entries(boxes(at))) {
      const panel = panels[name.split("-")[0]];
      panel.node.querySelector(`[data-mark="${name}"]`).setAttribute("d", path(panel, found));
    }
    const [warp, multiply, step] = [data.warps[at.warp], data.multiplies[at.multiply], data.steps[at.step]];
    const own = new Set(warp.pixels.flatMap((p) => warp.columns.map((c) => key(p, c))));
    const now = new Set(multiply.pixels.map((p) => key(warp.pixels[p], warp.columns[multiply.column])));
    for (const [name, cell] of cells) toggle(cell, { own: own.has(name), now: now.has(name) });
    steps.forEach((cell, i) => toggle(cell, { stage: data.steps[i].iteration === step.iteration, now: i === at.step }));
    enlarge(at, warp, multiply, step);
    describe(at, warp, multiply, step);
  }

  function enlarge(at, warp, multiply, step) {
    const [row, column] = [data.rows[at.i], data.columns[at.j]];
    const order = (band) => [...new Set(band.reads.flat())].sort((a, b) => a - b);
    const [ys, xs] = [order(row), order(column)];
    const pixels = warp.pixels.map((p) => data.pixels[p]);
    const current = multiply.pixels.map((p) => pixels[p]);
    const all = (one) => one.flatMap(([p, q]) => row.reads[p].flatMap((y) => column.reads[q].map((x) => key(y, x))));
    const [mine, window_] = [new Set(all(pixels)), new Set(all([current[0]]))];
    const now = new Set(current.map(([p, q]) => key(row.reads[p][step.r], column.reads[q][step.s])));
    for (const [cell, i, j] of loupe) {
      const name = key(ys[i], xs[j]);
      const pad = ys[i] < 0 || ys[i] >= data.size.h || xs[j] < 0 || xs[j] >= data.size.w;
      toggle(cell, { pad, warp: mine.has(name), window: window_.has(name), now: now.has(name) });
    }
    for (const tick of svg.querySelectorAll("[data-tick]")) {
      tick.textContent = (tick.dataset.tick[0] === "r" ? ys : xs)[Number(tick.dataset.tick.slice(1))];
    }
  }

  function describe(at, warp, multiply, step) {
    const [row, column] = [data.rows[at.i], data.columns[at.j]];
    const span = (first, count) => (count === 1 ? `${first}` : `${first} to ${first + count - 1}`);
    const first = at.block * data.block_channels;
    const places = [...new Set(multiply.pixels)].map((p) => data.pixels[warp.pixels[p]]);
    const outside = places.some(([p, q]) => p >= row.outputs || q >= column.outputs);
    const names = places.map(([p, q]) => `(${row.first + p}, ${column.first + q})`).join(" and ");
    const channels = step.blocks.map((b) => span(b * data.size.block, data.size.block)).join(" and ");
    const filters = span(first + warp.columns[multiply.column] * data.size.tile, data.size.tile);
    say.textContent = `Block ${at.tile}, ${at.block}: output rows ${span(row.first, row.outputs)}, columns ${span(column.first, column.outputs)}, `
      + `channels ${span(first, data.block_channels)} of images ${span(at.group * data.size.images, data.size.images)}. `
      + `Warp ${at.warp}, instruction ${at.multiply + 1} of ${data.multiplies.length}, step ${at.step + 1} of ${data.steps.length}: `
      + `output pixel ${names}, kernel offset (${step.r}, ${step.s}), input channels ${channels}, output channels ${filters}.`
      + (outside ? " A pixel beyond the edge is computed and thrown away." : "");
  }

  function write(values) {
    preview = {};
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
    mark();
  }

  // What lies under the pointer: a block tile, an instruction's square, or a step.
  function under(event) {
    const cell = event.target.closest?.(".rt, .st")?.dataset;
    if (cell) return cell.step ? { step: Number(cell.step) } : instruction(...cell.at.split(",").map(Number));
    const panel = event.target.closest?.(".panel.out, .panel.c");
    if (!panel) return null;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const { x, y, sx, sy } = panels[panel.classList[1]];
    const [u, v] = [(point.x - x) / sx, (point.y - y) / sy];
    const at = (bands, place) => bands.findIndex((band) => band.first <= place && place < band.first + band.outputs);
    if (panel.classList.contains("c")) {
      const block = Math.floor(u / data.block_channels);
      return block >= 0 && block < data.column_blocks ? { column_block: block } : null;
    }
    const [i, j] = [at(data.rows, v), at(data.columns, u)];
    return i < 0 || j < 0 ? null : { tile: (chosen().group * data.rows.length + i) * data.columns.length + j };
  }

  function instruction(pixel, column) {
    const [warp, multiply] = owners.get(key(pixel, column, data.steps[chosen().step].share)) ?? [];
    if (warp === undefined) return null;
    half = data.multiplies[multiply].pixels.indexOf(data.warps[warp].pixels.indexOf(pixel));
    return { warp, multiply };
  }

  function onPoint(event) {
    const next = (event.type === "pointermove" && under(event)) || {};
    if (JSON.stringify(next) === JSON.stringify(preview)) return;
    preview = next;
    mark();
  }

  function onClick(event) {
    event.target.closest?.(".panel")?.focus();
    write(under(event) ?? {});
  }

  function onKey(event) {
    const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -9999], End: [0, 9999] };
    if (!(event.key in arrows)) return;
    preview = {};
    const [down, right] = arrows[event.key];
    const at = chosen();
    const inside = (value, limit) => Math.min(Math.max(value, 0), limit - 1);
    const moves = {
      out: () => ({ tile: (at.group * data.rows.length + inside(at.i + down, data.rows.length)) * data.columns.length
        + inside(at.j + right, data.columns.length) }),
      c: () => ({ tile: at.tile + down, column_block: inside(at.block + right, data.column_blocks) }),
      steps: () => ({ step: inside(at.step + right, data.steps.length) }),
      block: () => {
        const [warp, multiply] = [data.warps[at.warp], data.multiplies[at.multiply]];
        const pixel = warp.pixels[multiply.pixels[half] ?? multiply.pixels[0]];
        const columns = data.block_channels / data.size.tile;
        return instruction(pixel + down, inside(warp.columns[multiply.column] + right, columns));
      },
    };
    const next = moves[event.currentTarget.classList[1]]();
    if (next && !(next.tile < 0)) write(next);
    event.preventDefault();
    event.stopPropagation();
  }

  for (const name of ["pointermove", "pointerleave"]) stage.addEventListener(name, onPoint);
  stage.addEventListener("click", onClick);
  const watched = [...["svg", "data", "error"].map((name) => [name, draw]), ...CHOICE.map((name) => [name, mark])];
  for (const [name, react] of watched) model.on(`change:${name}`, react);
  draw();
  return () => {
    for (const [name, react] of watched) model.off(`change:${name}`, react);
  };
}

export default { render };
