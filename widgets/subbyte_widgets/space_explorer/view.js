// The space explorer: parallel coordinates, a map of two knobs, the sentence about the selected configuration.
// Times, reasons and maps come with the record; lines.js draws the lines.

function render({ model, el }) {
  const root = node("div", "sb-space");
  const quiet = 'data-lm-suppress-shortcuts="true"';
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="all"><div class="head"></div>
    <div class="counts"></div><div class="lines" tabindex="0" role="application" ${quiet} aria-label="Configurations as
      lines: up and down arrow keys go to the next slower and faster one, left and right choose a knob, plus and minus
      change its value, F keeps only configurations with its value, Home is the fastest"><canvas></canvas></div>
    <div class="kept" hidden aria-live="polite"><span></span><button type="button" ${quiet}>Keep all</button></div>
    <div class="say" aria-live="polite"></div>
    <div class="bar"><label>down<select class="y" ${quiet}></select></label><label>across<select class="x" ${quiet}></select></label>
      <label>shows<select class="statistic" ${quiet}><option value="best">best over the other knobs</option>
      <option value="median">median over the other knobs</option></select></label>
      <span>fast<span class="scale"></span>slow</span></div>
    <div class="grid" tabindex="0" role="application" ${quiet} aria-label="Map of two knobs: arrow keys visit its cells"></div>
    <div class="effects"></div></div>`;
  const [problem, all, head, counts, lines, canvas, say, grid, effects] = [".problem", ".all", ".head", ".counts", ".lines",
    "canvas", ".say", ".grid", ".effects"].map((name) => root.querySelector(name));
  const pickers = ["x", "y", "statistic"].map((name) => root.querySelector(`select.${name}`));
  el.append(root);
  const picture = parallel(root, canvas);

  const kept = root.querySelector(".kept");
  let points = null;
  let order = []; // what the brush keeps, the fastest first
  let dragged = null;
  let knob = 0;
  let frame = 0;
  let width = 700;
  let stale = true;

  function paint() {
    frame = 0;
    fresh();
    if (all.hidden) return;
    const place = points.at.get(model.get("selected"));
    picture.paint(place, knob);
    describe(place);
    const [i, j] = cellOf(place);
    for (const cell of grid.querySelectorAll("td")) cell.classList.toggle("on", Number(cell.dataset.i) === i && Number(cell.dataset.j) === j);
  }

  // What is asked between two frames is answered from what is true now, not from what was drawn last.
  function fresh() {
    if (stale) draw();
    stale = false;
  }

  function describe(place) {
    const index = model.get("selected");
    if (place === undefined) {
      say.textContent = index < 0 ? "Click a line or a cell, or use the keys: up and down by speed, left and right to a knob, + and \u2212 change it, F keeps its value. Drag along an axis to keep a range."
        : `Configuration ${index} is not in this record.`;
      return;
    }
    const { record } = points;
    const time = record.time[place];
    const values = points.names.map((name, i) => `${name} ${points.values[i][points.turns[place][i]]}`).join(", ");
    const came = time === null ? `refused: ${record.reasons[record.reason[place]]}`
      : `${time.toFixed(2)} \u00b5s, ${(time / points.best).toFixed(2)} times the best, number ${points.rank.get(place) + 1} of ${points.byTime.length}`;
    say.textContent = `Configuration ${index}, ${came}. ${values}.`;
  }

  function draw() {
    const record = model.get("points");
    if (record.knobs && points?.raw !== record) points = lookUp(record);
    problem.hidden = !model.get("error");
    problem.textContent = model.get("error");
    all.hidden = !points || Boolean(model.get("error"));
    if (all.hidden) return;
    const dark = document.body.dataset.jpThemeLight ?? String(!matchMedia("(prefers-color-scheme: dark)").matches);
    root.classList.toggle("dark", dark === "false");
    const { names, byTime } = points;
    head.textContent = model.get("title");
    const refused = Object.entries(record.refused).map(([kind, count]) => `${kind} ${count.toLocaleString("en")}`).join(", ");
    counts.textContent = `${record.size.toLocaleString("en")} configurations: ${byTime.length.toLocaleString("en")} measured${refused ? `; refused: ${refused}` : ""}. ${model.get("fastest")}`;
    for (const [i, trait] of ["x", "y"].entries()) {
      if (pickers[i].children.length !== names.length) pickers[i].replaceChildren(...names.map((name) => new Option(name)));
      for (const option of pickers[i].options) option.disabled = option.value === model.get(trait === "x" ? "y" : "x");
    }
    for (const picker of pickers) picker.value = model.get(picker.className);
    if (effects.dataset.of !== model.get("title")) effects.innerHTML = model.get("effects");
    effects.dataset.of = model.get("title");
    width = lines.clientWidth || width; // none while the page is laid out anew, as when the theme changes
    picture.paintBase(points, width, model.get("brush"));
    keep();
    map();
  }

  // How many the brush keeps; up and down go among them.
  function keep() {
    const brush = model.get("brush");
    order = points.byTime.filter((place) => keeps(points, brush, place));
    const names = Object.keys(brush);
    kept.hidden = !names.length;
    kept.firstChild.textContent = order.length
      ? `Kept by ${names.join(", ")}: ${order.length.toLocaleString("en")}, the fastest ${points.record.time[order[0]].toFixed(2)} \u00b5s.`
      : `Kept by ${names.join(", ")}: none.`;
  }

  function brushed(name, range) {
    const { [name]: _, ...rest } = model.get("brush");
    write({ brush: range ? { ...rest, [name]: range } : rest });
  }

  const axisName = (axis) => points.names[axis] ?? "time";

  // F: only the chosen configuration's value of the chosen knob, or only what is as fast; again: everything.
  function only(place) {
    const name = axisName(knob);
    const at = place === undefined ? undefined : points.turns[place][knob] ?? points.record.time[place];
    brushed(name, name in model.get("brush") || at === undefined || at === null ? null : [name === "time" ? 0 : at, at]);
  }

  // The maps are recorded once for every two knobs; the other way round is the same map turned.
  function map() {
    const [across, down] = [model.get("x"), model.get("y")];
    const turned = model.get("maps")[`${across}|${down}`] === undefined;
    const found = model.get("maps")[turned ? `${down}|${across}` : `${across}|${down}`];
    if (!found) return grid.replaceChildren();
    const { knobs } = points.record;
    const colour = picture.ramp();
    const table = node("table");
    const first = node("tr");
    first.append(node("th", "", `${down} \u2193`), ...knobs[across].map((value) => node("th", "", value)));
    table.append(first);
    knobs[down].forEach((value, i) => {
      const row = node("tr");
      row.append(node("th", "", value));
      knobs[across].forEach((_, j) => {
        const at = turned ? j * knobs[down].length + i : i * knobs[across].length + j;
        const time = found[model.get("statistic")][at];
        const cell = node("td", time === null ? "none" : "", time === null ? found.reason[at].split(":")[0] : time.toFixed(2));
        cell.append(node("small", "", time === null ? "" : `${found.measured[at]} of ${found.measured[at] + found.refused[at]}`));
        cell.title = time === null ? found.reason[at] : `${found.measured[at]} measured, ${found.refused[at]} refused; a click selects the fastest`;
        Object.assign(cell.dataset, { i, j, index: found.index[at] });
        if (time !== null) {
          const rgb = colour(picture.level(time));
          Object.assign(cell.style, { background: `rgb(${rgb})`, color: inkOn(rgb) });
        }
        row.append(cell);
      });
      table.append(row);
    });
    grid.replaceChildren(table);
  }

  // Row and column of a configuration in the map.
  const cellOf = (place) => ["y", "x"].map((trait) => points.turns[place]?.[points.names.indexOf(model.get(trait))]);

  function write(values) {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  }

  const choose = (place) => place !== undefined && write({ selected: points.record.index[place] });

  function done(event) {
    event.preventDefault();
    event.stopPropagation();
  }

  function onLineKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    fresh();
    const place = points.at.get(model.get("selected"));
    const rank = order.indexOf(place);
    const steps = { ArrowUp: 1, ArrowDown: -1, PageUp: 20, PageDown: -20 };
    if (event.key in steps) {
      const to = rank < 0 ? 0 : Math.min(Math.max(rank + steps[event.key], 0), order.length - 1);
      choose(order[to]);
    } else if (event.key === "Home") choose(order[0]);
    else if (event.key === "End") choose(order.at(-1));
    else if (event.key === "Escape") write(Object.keys(model.get("brush")).length ? { brush: {} } : { selected: -1 });
    else if (event.key === "f" || event.key === "F") only(place);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      knob = Math.min(Math.max(knob + (event.key === "ArrowRight" ? 1 : -1), 0), points.names.length);
      later();
    } else if ("+=-".includes(event.key) && place !== undefined && knob < points.names.length) turn(place, event.key === "-" ? -1 : 1);
    else return;
    done(event);
  }

  // The same configuration with the chosen knob one value further, refused or not.
  function turn(place, way) {
    const digits = [...points.turns[place]];
    digits[knob] = Math.min(Math.max(digits[knob] + way, 0), points.values[knob].length - 1);
    choose(points.like.get(digits.map((digit) => digit.toString(16)).join("")));
  }

  function onGridKey(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!(event.key in steps)) return;
    fresh();
    const [row, column] = cellOf(points.at.get(model.get("selected")));
    const [i, j] = row === undefined ? [0, 0] : [row + steps[event.key][0], column + steps[event.key][1]];
    const cell = grid.querySelector(`[data-i="${i}"][data-j="${j}"]`);
    if (cell) write({ selected: Number(cell.dataset.index) });
    done(event);
  }

  const later = () => { frame ||= requestAnimationFrame(paint); };
  const renew = () => later((stale = true));
  lines.addEventListener("keydown", onLineKey);
  grid.addEventListener("keydown", onGridKey);
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { axis: picture.axisAt(event.offsetX), from: event.offsetY, far: false };
    if (dragged.axis >= 0) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!dragged || dragged.axis < 0) return;
    dragged.far ||= Math.abs(event.offsetY - dragged.from) > 5;
    if (dragged.far) brushed(axisName(dragged.axis), picture.between(dragged.axis, dragged.from, event.offsetY));
  });
  canvas.addEventListener("pointerup", (event) => {
    if (dragged && !dragged.far) choose(order.length ? picture.nearest(event.offsetX, event.offsetY) : undefined);
    dragged = null;
  });
  kept.lastChild.addEventListener("click", () => write({ brush: {} }));
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell) write({ selected: Number(cell.dataset.index) });
  });
  for (const picker of pickers) picker.addEventListener("change", () => write({ [picker.className]: picker.value }));
  const theme = new MutationObserver(renew);
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const size = new ResizeObserver(renew);
  size.observe(lines);
  const watched = ["points", "maps", "effects", "title", "x", "y", "statistic", "brush", "error"];
  for (const name of watched) model.on(`change:${name}`, renew);
  model.on("change:selected", later);
  paint();
  return () => {
    cancelAnimationFrame(frame);
    theme.disconnect();
    size.disconnect();
    for (const name of watched) model.off(`change:${name}`, renew);
    model.off("change:selected", later);
  };
}

export default { render };
