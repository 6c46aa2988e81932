// The live duplicate map: draws the record the kernel sent and follows the selection.
// What it knows about the convolution are the lists of `map`; where things go is in them too.

const LINES = 400; // more connecting lines than this only blacken the picture
const WATCHED = ["words", "map", "error", "selected"];
const PANELS = { input: "Input pixels", lowered: "Lowered matrix" };

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2); // hatch patterns of its own: those of a hidden view are not drawn
  const root = document.createElement("div");
  root.className = "sb-map";
  const box = (attributes) => Object.assign(document.createElement("div"), attributes);
  const [stage, problem] = [box({ className: "stage" }), box({ className: "problem", hidden: true, role: "alert" })];
  const say = box({ className: "say", ariaLive: "polite" });
  el.append(root);

  const [svg, hatchings] = [shape("svg", { class: "sb-map-svg", role: "group" }), shape("defs")];
  const parts = Object.fromEntries(["words", "links", "tile", "slots", "frame"].map((name) => [name, shape("g", { class: name })]));
  const panels = Object.fromEntries(Object.keys(PANELS).map((name) => [name, panel(name)]));
  svg.append(hatchings, parts.links, parts.words, panels.input.group, parts.tile, parts.slots, panels.lowered.group, parts.frame);
  const fill = {
    input: pool(panels.input.cells), lowered: pool(panels.lowered.cells), tile: pool(parts.tile), slots: pool(parts.slots),
  };
  const sheet = stage.appendChild(box({ className: "sheet" }));
  const letters = lettering(sheet);
  sheet.prepend(svg);
  const story = storyteller({
    svg, map: () => ({ grids, nodes, pixelOf, lists: map }), source: () => map.genuine[model.get("selected")] ?? map.story,
    changed: telling, ended: () => mark(),
  });
  root.append(story.bar, say, problem, stage);

  let shown = {}; // what of the model is drawn
  let map = null; // the record's lists
  let grids = {};
  let pixelOf = new Map(); // genuine index -> its pixel: { g, row, column, slot, colour, zero, copies }
  let nodes = {}; // cells of each grid, in the order of the record
  let labels = [];
  let marked = [];
  let tallest = 0;

  // While the story is told, only what was told is marked.
  function telling() {
    unmark();
    for (const part of [parts.links, parts.frame, panels.lowered.chosen]) part.replaceChildren();
    const told = ({ grid, n }) => nodes[grid][n].classList.contains("told");
    const inked = (label) => (told(label) ? { ink: map.inks[label.on.colour] } : { faint: true });
    letters.write(labels.map((label) => ({ ...label, ...inked(label) })), map.size);
  }

  function panel(name) {
    const group = shape("g", {
      class: `panel ${name}`, tabindex: 0, role: "application", "data-lm-suppress-shortcuts": "true", // the attribute keeps JupyterLab's shortcuts out
      "aria-label": `${PANELS[name]}: arrow keys move the selection`,
    });
    const [ground, ring] = ["ground", "ring"].map((part) => shape("rect", { class: part, rx: part === "ring" ? 6 : 0 }));
    const [unread, hatches, chosen] = ["unread", "hatches", "hatches on"].map((part) => shape(part === "unread" ? "path" : "g", { class: part }));
    const cells = shape("g", { class: "cells" });
    group.append(ground, ring, unread, hatches, chosen, cells);
    group.addEventListener("keydown", (event) => onKey(event, name));
    return { group, ground, ring, unread, hatches, chosen, cells };
  }

  const columns = () => map.kernel[0] * map.kernel[1];
  const rowOf = (k) => Math.floor(k / columns());
  const placeOf = (k) => [rowOf(k), k % columns()];

  function draw() {
    const now = Object.fromEntries(WATCHED.map((name) => [name, model.get(name)]));
    const other = (...names) => names.some((name) => now[name] !== shown[name]);
    const [renamed, moved, changed] = [other("words"), other("map"), other(...WATCHED)];
    shown = now;
    if (!changed) return; // one message that changes several traits is told once for each
    story.stop();
    if (!stage.hidden && now.error) problem.style.minHeight = `${stage.offsetHeight}px`; // what is below stays where it is
    problem.hidden = !now.error;
    problem.textContent = now.error;
    story.bar.hidden = stage.hidden = say.hidden = Boolean(now.error) || !now.words;
    if (!now.words) return;
    unmark();
    if (renamed) parts.words.innerHTML = now.words.replaceAll("sb-hatch-", `sb-hatch-${view}-`);
    if (moved) place(now.map);
    mark();
  }

  function place(lists) {
    map = lists;
    grids = Object.fromEntries(Object.entries(map.grids).map(([name, grid]) => [name, places(grid, map.gap)]));
    pixelOf = new Map(map.pixels.map(([g, row, column, slot, colour, zero]) => [g, { g, row, column, slot, colour, zero, copies: [] }]));
    map.genuine.forEach((g, k) => pixelOf.get(g).copies.push(k));
    tallest = Math.max(tallest, map.size[1]); // a slider that is dragged does not move what is below
    map.size = [map.size[0], tallest];
    put(svg, { viewBox: `0 0 ${map.size.join(" ")}`, "aria-label": model.get("alternative") });
    if (!hatchings.childNodes.length) {
      hatchings.innerHTML = map.colours.map((colour, i) => `<pattern id="sb-hatch-${view}-${i}" width="6" height="6"
        patternUnits="userSpaceOnUse"><path class="hatch" d="M-1 1L1 -1M0 6L6 0M5 7L7 5" stroke="${colour}"/></pattern>`).join("");
    }
    for (const name of Object.keys(PANELS)) {
      const { x, y, width, height } = grids[name].all;
      put(panels[name].ground, { x, y, width, height });
      put(panels[name].ring, { x: x - 5, y: y - 5, width: width + 10, height: height + 10 });
    }
    put(panels.input.unread, { d: outlines(grids.input, map.unread, 3) });
    labels = [];
    const pixels = [...pixelOf.values()];
    const kind = (pixel, k) => `face ${pixel.zero ? "zero" : k === pixel.g ? "genuine" : "copy"} c${pixel.colour}`;
    nodes = {
      input: fill.input(pixels.map((pixel, n) => {
        const { g, row, column } = pixel;
        write("input", [row, column], g, { n, bold: true, on: pixel });
        return { class: `cell g ${kind(pixel, g)}`, "data-g": g, "data-row": row, "data-col": column, ...grids.input.face(row, column) };
      })),
      tile: fill.tile(map.outputs.map(([row, column, masked], p) => {
        write("tile", [row, column], `p${p}`, { n: p });
        return { class: `out${masked ? " masked" : ""}`, "data-p": p, ...grids.tile.face(row, column) };
      })),
      slots: fill.slots(pixels.map((pixel, n) => {
        const at = [Math.floor(pixel.slot / grids.slots.columns), pixel.slot % grids.slots.columns];
        write("slots", at, pixel.slot, { n, on: pixel });
        return { class: `slot ${kind(pixel, pixel.g)}`, "data-slot": pixel.slot, "data-g": pixel.g, ...grids.slots.face(...at) };
      })),
      lowered: fill.lowered(map.genuine.map((g, k) => {
        const [pixel, at] = [pixelOf.get(g), placeOf(k)];
        write("lowered", at, g, { n: k, bold: k === g, copy: k !== g, on: pixel });
        return { class: `cell${k === g ? " g" : ""} ${kind(pixel, k)}`, "data-k": k, "data-g": g, "data-row": at[0], "data-col": at[1], ...grids.lowered.face(...at) };
      })),
    };
    hatch(panels.lowered.hatches, map.genuine.map((_, k) => k));
  }

  function write(grid, at, words, { n, bold = false, copy = false, on = null }) {
    const { font, centre } = grids[grid];
    const ink = on && !copy && !on.zero ? map.inks[on.colour] : null;
    if (font) labels.push({ words: String(words), at: centre(...at), font, bold, ink, grid, on, n });
  }

  // One path for each colour: many would be slow to paint.
  function hatch(group, entries) {
    const copies = map.colours.map(() => []);
    for (const k of grids.lowered.hatched ? entries : []) {
      const pixel = pixelOf.get(map.genuine[k]);
      if (k !== pixel.g && !pixel.zero) copies[pixel.colour].push(placeOf(k));
    }
    const paths = copies.map((cells, i) => cells.length && shape("path", { d: outlines(grids.lowered, cells), fill: `url(#sb-hatch-${view}-${i})` }));
    group.replaceChildren(...paths.filter(Boolean));
  }

  function unmark() {
    for (const [node, name] of marked) node.classList.remove(name);
    marked = [];
  }

  function mark() {
    unmark();
    const add = (node, name) => marked.push([node, name]) && node.classList.add(name);
    const here = map.genuine[model.get("selected")] === undefined ? -1 : model.get("selected");
    parts.links.replaceChildren();
    parts.frame.replaceChildren();
    hatch(panels.lowered.chosen, here < 0 ? [] : pixelOf.get(map.genuine[here]).copies);
    if (here < 0) {
      letters.write(labels, map.size);
      say.textContent = "Click a number, or press Tab and the arrow keys: every copy of the same input pixel lights up.";
      return;
    }
    const source = pixelOf.get(map.genuine[here]);
    const order = [...pixelOf.keys()];
    const first = rowOf(here) * columns();
    const window_ = new Set(map.genuine.slice(first, first + columns()));
    add(svg, "chosen");
    for (const name of ["input", "slots"]) add(nodes[name][order.indexOf(source.g)], "on");
    for (const k of source.copies) {
      add(nodes.lowered[k], "on");
      add(nodes.tile[rowOf(k)], "uses");
    }
    add(nodes.lowered[here], "here");
    add(nodes.tile[rowOf(here)], "on");
    for (const g of window_) add(nodes.input[order.indexOf(g)], "tap");
    parts.frame.append(frameAround(grids.input, [...window_].map((g) => pixelOf.get(g))));
    parts.links.append(...source.copies.slice(0, LINES).map((k) => link(source, k)));
    const plain = ({ grid, on }) => !on || on === source || (grid === "input" && window_.has(on.g));
    letters.write(labels.map((label) => ({ ...label, faint: !plain(label) })), map.size);
    say.textContent = `${meeting(map, here)} ${about(source)}`;
  }

  function link(source, k) {
    const [x0, y0] = grids.input.centre(source.row, source.column);
    const [x1, y1] = grids.lowered.centre(...placeOf(k));
    const d = `M${x0} ${y0}C${x0 + 90} ${y0} ${x1 - 90} ${y1} ${x1} ${y1}`;
    return shape("path", { d, class: k === source.g ? "gen" : "dup", "data-k": k });
  }

  function choose(k) {
    model.set("selected", k);
    model.save_changes();
  }

  function onClick(event) {
    const cell = event.target.closest(".cell, .slot");
    if (!cell) return;
    (cell.closest(".panel") ?? panels.input.group).focus();
    choose(Number(cell.dataset.k ?? cell.dataset.g));
  }

  // The next cell in a direction; positions of the input that no output pixel reads are stepped over.
  function next(name, from, rows, wide) {
    const grid = grids[name];
    let [row, column] = from;
    for (;;) {
      [row, column] = [row + rows, column + wide];
      if (row < 0 || column < 0 || row >= grid.rows || column >= grid.columns) return from;
      if (name === "lowered" || pixelAt(row, column)) return [row, column];
    }
  }

  const pixelAt = (row, column) => [...pixelOf.values()].find((pixel) => pixel.row === row && pixel.column === column);

  function onKey(event, name) {
    const chosen = map.genuine[model.get("selected")];
    const source = pixelOf.get(chosen);
    const from = source && (name === "input" ? [source.row, source.column] : placeOf(model.get("selected")));
    const entry = ([row, column]) => (name === "input" ? pixelAt(row, column).g : row * columns() + column);
    const { columns: wide } = grids[name];
    const moves = {
      ArrowLeft: () => next(name, from, 0, -1), ArrowRight: () => next(name, from, 0, 1),
      ArrowUp: () => next(name, from, -1, 0), ArrowDown: () => next(name, from, 1, 0),
      Home: () => next(name, [from[0], -1], 0, 1), End: () => next(name, [from[0], wide], 0, -1),
    };
    if (event.key === "Escape") choose(-1);
    else if (moves[event.key]) choose(from ? entry(moves[event.key]()) : 0);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  stage.addEventListener("click", onClick);
  stage.addEventListener("pointerover", ({ target }) => {
    const cell = target.closest(".cell, .slot");
    const { k, g } = cell?.dataset ?? {};
    stage.title = !cell ? "" : k === undefined ? about(pixelOf.get(Number(g))) : meeting(map, Number(k));
  });
  for (const name of WATCHED) model.on(`change:${name}`, draw);
  draw();
  return () => {
    story.stop();
    letters.end();
    for (const name of WATCHED) model.off(`change:${name}`, draw);
  };
}

export default { render };
