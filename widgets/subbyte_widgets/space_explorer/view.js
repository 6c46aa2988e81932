// The space explorer: parallel coordinates, a map of two knobs, the sentence about the selected configuration.
// Times, reasons and maps come with the record; lines.js draws the lines.

function render({ model, el }) {
  const root = node("div", "sb-space");
  const quiet = 'data-lm-suppress-shortcuts="true"';
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="all"><div class="head"></div>
    <div class="counts"></div><div class="folded" hidden><span></span><button type="button" ${quiet}></button></div>
    <div class="say" aria-live="polite"></div><div class="beside"><div class="one"><div class="lines" tabindex="0" role="application" ${quiet} aria-label="Configurations as
      lines: up and down arrow keys go to the next slower and faster one, left and right choose a knob, plus and minus
      change its value, F keeps only configurations with its value, Home is the fastest"><canvas></canvas><i class="paper"></i></div>
    <div class="kept" aria-live="polite"><span></span><small>fast<i class="scale"></i>slow</small><button type="button" ${quiet}>Keep all</button></div></div>
    <div class="one"><div class="tabs" role="tablist" aria-label="Map or effects"><button type="button" role="tab" ${quiet}>Map of two knobs</button><button type="button" role="tab" ${quiet}>Effect of each knob</button></div>
    <div class="mapped"><div class="bar"><label>down<select class="y" ${quiet}></select></label><label>across<select class="x" ${quiet}></select></label>
      <label>shows<select class="statistic" ${quiet}><option value="best">best over the other knobs</option>
      <option value="median">median over the other knobs</option></select></label></div>
    <div class="grid" tabindex="0" role="application" ${quiet} aria-label="Map of two knobs: arrow keys visit its cells"></div></div>
    <div class="effects" hidden></div></div></div></div>`;
  const [problem, all, head, counts, lines, canvas, say, grid, effects] = [".problem", ".all", ".head", ".counts", ".lines",
    "canvas", ".say", ".grid", ".effects"].map((name) => root.querySelector(name));
  const pickers = ["x", "y", "statistic"].map((name) => root.querySelector(`select.${name}`));
  el.append(root);
  const picture = parallel(root, canvas);

  const [kept, folded, mapped] = [".kept", ".folded", ".mapped"].map((name) => root.querySelector(name));
  const tabs = [...root.querySelectorAll("[role=tab]")];
  let unfolded = false;
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
      say.textContent = index < 0 ? "Click a line or a cell, or use the keys: up and down by speed, left and right to a knob, + and \u2212 change it, F keeps its value."
        : `Configuration ${index} is not in this record.`;
      return;
    }
    const { record } = points;
    const time = record.time[place];
    const values = points.names.map((name, i) => `${name} ${points.values[i][points.turns[place][i]]}`).join(", ");
    const came = time === null ? `refused: ${record.reasons[record.reason[place]]}`
      : `${time.toFixed(2)} us, ${(time / points.best).toFixed(2)} times the best, number ${points.rank.get(place) + 1} of ${points.byTime.length}`;
    say.textContent = `Configuration ${index}, ${came}. ${values}.`;
  }

  function draw() {
    const record = model.get("points");
    if (record.knobs && points?.raw !== record) points = lookUp(record);
    if (points) fold(points.record);
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

  // What all that was measured has in common needs no axis.
  function fold(record) {
    points.shown = varying(record, unfolded);
    knob = Math.min(knob, points.shown.length);
    folded.hidden = !record.constant.length;
    folded.firstChild.textContent = `The same in all: ${record.constant.map((name) => `${name} ${common(name)}`).join(", ")}.`;
    folded.lastChild.textContent = unfolded ? "Fold their axes away" : "Show their axes";
  }

  const common = (name) => points.record.knobs[name][points.turns[points.byTime[0]][points.names.indexOf(name)]];

  // How many the brush keeps; up and down go among them.
  function keep() {
    const brush = model.get("brush");
    order = points.byTime.filter((place) => keeps(points, brush, place));
    const names = Object.keys(brush);
    kept.lastChild.hidden = !names.length;
    kept.firstChild.textContent = !names.length ? "Drag along an axis to keep a range."
      : order.length
      ? `Kept by ${names.join(", ")}: ${order.length.toLocaleString("en")}, the fastest ${points.record.time[order[0]].toFixed(2)} us.`
      : `Kept by ${names.join(", ")}: none.`;
  }

  function brushed(name, range) {
    const { [name]: _, ...rest } = model.get("brush");
    write({ brush: range ? { ...rest, [name]: range } : rest });
  }

  const axisName = (axis) => points.names[points.shown[axis]] ?? "time";

  // F: only the chosen configuration's value of the chosen knob, or only what is as fast; again: everything.
  function only(place) {
    const name = axisName(knob);
    const at = place === undefined ? undefined : points.turns[place][points.shown[knob]] ?? points.record.time[place];
    brushed(name, name in model.get("brush") || at === undefined || at === null ? null : [name === "time" ? 0 : at, at]);
  }

  function map() {
    const colour = picture.ramp();
    const tint = (time) => colour(picture.level(time));
    const knobs = ["x", "y"].map((trait) => model.get(trait));
    grid.replaceChildren(...cellsOf(model.get("maps"), points.record.knobs, knobs, model.get("statistic"), tint));
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
      knob = Math.min(Math.max(knob + (event.key === "ArrowRight" ? 1 : -1), 0), points.shown.length);
      later();
    } else if ("+=-".includes(event.key) && place !== undefined && knob < points.shown.length) turn(place, event.key === "-" ? -1 : 1);
    else return;
    done(event);
  }

  // The same configuration with the chosen knob one value further, refused or not.
  function turn(place, way) {
    const digits = [...points.turns[place]];
    const turned = points.shown[knob];
    digits[turned] = Math.min(Math.max(digits[turned] + way, 0), points.values[turned].length - 1);
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
  const turnTo = (tab) => {
    tabs.forEach((one) => one.setAttribute("aria-selected", String(one === tab)));
    [mapped.hidden, effects.hidden] = tabs.map((one) => one !== tab);
  };
  turnTo(tabs[0]);
  for (const tab of tabs) tab.addEventListener("click", () => turnTo(tab));
  kept.lastChild.addEventListener("click", () => write({ brush: {} }));
  folded.lastChild.addEventListener("click", () => renew((unfolded = !unfolded)));
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell) write({ selected: Number(cell.dataset.index) });
  });
  for (const picker of pickers) picker.addEventListener("change", () => write({ [picker.className]: picker.value }));
  const theme = new MutationObserver(renew);
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const dusk = matchMedia("(prefers-color-scheme: dark)");
  dusk.addEventListener("change", renew);
  const size = new ResizeObserver(renew);
  size.observe(lines);
  const watched = ["points", "maps", "effects", "title", "x", "y", "statistic", "brush", "error"];
  for (const name of watched) model.on(`change:${name}`, renew);
  model.on("change:selected", later);
  paint();
  return () => {
    cancelAnimationFrame(frame);
    theme.disconnect();
    dusk.removeEventListener("change", renew);
    size.disconnect();
    for (const name of watched) model.off(`change:${name}`, renew);
    model.off("change:selected", later);
  };
}

export default { render };
