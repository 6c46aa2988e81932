// The tiled convolution: puts the picture the kernel drew into the page and moves its markers with the selection.
// Positions come from the record (trait "data"), a panel's scale is written on it: here they are looked up and scaled.
// places.js is before it.

const CHOICE = ["tile", "column_block", "warp", "multiply", "step"];
const SMALLEST = 2;

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-tiling";
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="say" aria-live="polite"></div><div class="stage"></div>`;
  const [problem, stage, say] = [".problem", ".stage", ".say"].map((name) => root.querySelector(name));
  el.append(root);

  let [svg, data] = [null, null];
  let panels = {}; // name -> { node, x, y, sx, sy }
  let cells = new Map(); // "pixel,column" -> square of the block tile
  let owners = new Map(); // "pixel,column,share" -> [warp, instruction]
  let [twins, loupe, steps] = [[], [], []]; // twins: warp -> the warps with the same pixels and columns
  let preview = {}; // what the pointer is over, instead of the selection
  let half = 0; // which pixel of a two-pixel instruction the keys stand on

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
    for (const [name, found] of Object.entries(boxes(data, at))) {
      const panel = panels[name.split("-")[0]];
      panel.node.querySelector(`[data-mark="${name}"]`).setAttribute("d", path(panel, found));
    }
    const [warp, multiply, step] = [data.warps[at.warp], data.multiplies[at.multiply], data.steps[at.step]];
    const own = new Set(warp.pixels.flatMap((p) => warp.columns.map((c) => key(p, c))));
    const now = new Set(multiply.pixels.map((p) => key(warp.pixels[p], warp.columns[multiply.column])));
    for (const [name, cell] of cells) toggle(cell, { own: own.has(name), now: now.has(name) });
    steps.forEach((cell, i) => toggle(cell, { stage: data.steps[i].iteration === step.iteration, now: i === at.step }));
    enlarge(at, warp, multiply, step);
    say.textContent = sentence(data, at);
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

  function write(values) {
    preview = {};
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
    mark();
  }

  // What lies under the pointer, in any panel: the numbers of the selection that it stands for.
  function under(event) {
    const cell = event.target.closest?.(".rt, .st, .px");
    if (cell?.dataset.step) return { step: Number(cell.dataset.step) };
    if (cell) {
      const [row, column] = cell.dataset.at.split(",").map(Number);
      return cell.classList.contains("rt") ? instruction(row, column) : offsetOf(data, chosen(), row, column);
    }
    const panel = event.target.closest?.("[data-sx]");
    if (!panel) return null;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const name = Object.keys(panels).find((one) => panels[one].node === panel);
    if (!name) return null;
    const { x, y, sx, sy } = panels[name];
    return placeOf(data, chosen(), name, (point.x - x) / sx, (point.y - y) / sy, instruction);
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
    const found = under(event); // before the focus moves and scrolls
    event.target.closest?.(".panel")?.focus();
    write(found ?? {});
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
