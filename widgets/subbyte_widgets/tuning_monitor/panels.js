// The tuning monitor. The columns come from the toolkit; here they only become points (picture.py draws the same).

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, LEFT, RIGHT, TOP, BOTTOM] = [760, 62, 742, 76, 264];
const [GPU, GPU_ROW, GPU_LEFT] = [306, 24, 236];
const [PLOT, PLOT_HEIGHT] = [[62, 330], 176];
const [KNOBS, CELLS, KNOB_ROW, CELL] = [372, 492, 29, 22];
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"];
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 3"];
const MODELLED = ["plan", "model"];
const MARKS = [["M440 14h0", "dots", 448, "model's choice"], ["M552 14h0", "other", 560, "other trial"],
  ["M648 11l6 6m0 -6l-6 6", "failed", 660, "failed"]];
const f1 = (value) => value.toFixed(1);

function axes(studies, total) {
  const count = Math.max(total, 2, ...studies.map((study) => study.numbers.length));
  let times = studies.flatMap((study) => study.microseconds.filter((time) => time !== null));
  if (!times.length) times = [1, 10];
  const [least, most] = [Math.min, Math.max].map((f) => Math.log10(times.reduce((a, b) => f(a, b))));
  const span = Math.max(most - least, 0.1);
  const [low, high] = [least - 0.2 * span, most + 0.06 * span];
  return {
    count,
    x: (place) => LEFT + (place / (count - 1)) * (RIGHT - LEFT),
    y: (time) => BOTTOM - ((Math.log10(time) - low) / (high - low)) * (BOTTOM - TOP),
    place: (x) => Math.round(((x - LEFT) / (RIGHT - LEFT)) * (count - 1)),
    times() {
      const few = high - low > 1.2 ? [1, 2, 5] : [1, 2, 3, 5, 7];
      const steps = high - low > 0.55 ? few : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
      const decades = [...Array(Math.floor(high) - Math.floor(low) + 1).keys()].map((i) => 10 ** (i + Math.floor(low)));
      return decades.flatMap((d) => steps.map((m) => m * d)).filter((t) => Math.log10(t) >= low && Math.log10(t) <= high);
    },
    counts() {
      const sizes = [...Array(9).keys()].flatMap((d) => [10 ** d, 2 * 10 ** d, 5 * 10 ** d]);
      const step = sizes.find((size) => count / size <= 8);
      return [...Array(Math.ceil(count / step)).keys()].map((i) => i * step);
    },
  };
}

function bestPath(scale, best) {
  let [path, before] = ["", null];
  best.forEach((time, i) => {
    if (time === null || (time === before && i < best.length - 1)) return;
    const [x, y] = [f1(scale.x(i)), f1(scale.y(time))];
    path += before === null ? `M${x} ${y}` : time === before ? `H${x}` : `H${x}V${y}`;
    before = time;
  });
  return path;
}

const lower = (study) => GPU + GPU_ROW * Math.max(study.readings.length, 1) + 14;

const heightOf = (study, top) =>
  top + 46 + Math.max(PLOT_HEIGHT + 30, KNOB_ROW * study.knobs.length + 18 * study.selection_words.length + 8);

function judged(study) {
  return study.models.filter((model) => model.spearman !== null).at(-1);
}

function scatterPoint(study, place, top) {
  const [left, right] = PLOT;
  return [left + study.predicted[place] * (right - left), top + 46 + PLOT_HEIGHT - study.speeds[place] * PLOT_HEIGHT];
}

function node(name, attributes, ...inside) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

const label = (x, y, words, name, more = {}) => node("text", { x, y, class: name, ...more }, String(words));
const path = (d, name, of) => node("path", { d, class: name, "data-of": of });

function grid(svg, scale) {
  for (const time of scale.times()) {
    svg.append(path(`M${LEFT} ${f1(scale.y(time))}H${RIGHT}`, "rule"));
    svg.append(label(LEFT - 8, scale.y(time) + 4, Number(time.toPrecision(6)), "s e"));
  }
  for (const count of scale.counts()) svg.append(label(scale.x(count), BOTTOM + 17, count, "s m"));
  svg.append(path(`M${LEFT} ${BOTTOM}H${RIGHT}`, "axis"), label(RIGHT, BOTTOM + 30, "trial", "s e"));
  svg.append(label(14, 170, "us (log)", "s m", { transform: "rotate(-90 14 170)" }));
  for (const [d, name, x, words] of MARKS) svg.append(path(d, name), label(x, 18, words, "s"));
}

function legend(svg, studies, shown) {
  const step = (RIGHT - LEFT) / Math.max(studies.length, 3);
  const room = Math.floor(step / 7) - 5;
  studies.forEach((study, i) => {
    const words = study.strategy.length <= room ? study.strategy : `${study.strategy.slice(0, room - 1)}\u2026`;
    const line = path(`M${f1(LEFT + i * step)} 55h22`, "best");
    svg.append(styled(line, i), label(LEFT + i * step + 28, 59, words, i === shown ? "name shown" : "name", { "data-study": i }));
  });
}

function styled(line, place) {
  line.setAttribute("stroke", COLOURS[place % 6]);
  if (DASHES[place % 6]) line.setAttribute("stroke-dasharray", DASHES[place % 6]);
  return line;
}

function curves(svg, scale, studies, shown) {
  const study = studies[shown];
  const paths = { other: "", dots: "", failed: "" };
  study.microseconds.forEach((time, i) => {
    if (time !== null) paths[MODELLED.includes(study.origins[i]) ? "dots" : "other"] += `M${f1(scale.x(i))} ${f1(scale.y(time))}h0`;
    if (study.failures[i]) paths.failed += `M${f1(scale.x(i) - 3)} ${f1(BOTTOM - 9)}l6 6m0 -6l-6 6`;
  });
  for (const [name, d] of Object.entries(paths)) svg.append(path(d, name, name));
  const order = [...studies.keys()].filter((place) => place !== shown);
  for (const place of [...order, shown]) {
    const name = place === shown ? "best shown" : "best";
    svg.append(styled(path(bestPath(scale, studies[place].best_microseconds), name, `best${place}`), place));
  }
  const best = study.best_microseconds.at(-1) ?? null;
  if (best === null) return;
  const [x, y] = [scale.x(study.numbers.length - 1), scale.y(best)];
  svg.append(node("circle", { cx: x, cy: y, r: 5, class: "end", fill: COLOURS[shown % 6] }));
  svg.append(label(x - 4, y + 18, `${best.toFixed(2)} us`, "best-label e"));
}

function readings(svg, scale, study) {
  if (!study.readings.length) svg.append(label(LEFT, GPU + 14, "These results came without readings of GPU clock, power and temperature.", "s"));
  study.readings.forEach(({ name, unit, values, low, high }, row) => {
    const [top, span] = [GPU + row * GPU_ROW, Math.max(high - low, 1e-9)];
    let d = "";
    values.forEach((value, i) => {
      if (value === null) return;
      const x = GPU_LEFT + (i / (scale.count - 1)) * (RIGHT - GPU_LEFT);
      d += `${d ? "L" : "M"}${f1(x)} ${f1(top + 17 - (14 * (value - low)) / span)}`;
    });
    const reach = low === high ? low : `${low} to ${high}`;
    svg.append(label(LEFT, top + 14, `${name} ${reach} ${unit}`, "s"), path(d, "reading", `reading${row}`));
  });
}

function predictions(svg, study, top) {
  const [[left, right], ground, last] = [PLOT, top + 46 + PLOT_HEIGHT, judged(study)];
  svg.append(label(14, top + 16, "Predicted against measured", "h"), label(14, top + 33, study.model_words, "s"));
  for (const share of [0, 0.5, 1]) {
    const y = ground - share * PLOT_HEIGHT;
    svg.append(path(`M${left} ${f1(y)}H${right}`, share === 0 ? "axis" : "rule"), label(left - 8, y + 4, share, "s e"));
  }
  svg.append(label(left, ground + 16, "predicted slowest", "s"), label(right, ground + 16, "predicted fastest", "s e"));
  const middle = ground - PLOT_HEIGHT / 2;
  svg.append(label(14, middle, "speed, 1 = best found", "s m", { transform: `rotate(-90 14 ${middle})` }));
  const paths = { earlier: "", latest: "" };
  study.predicted.forEach((share, i) => {
    if (share === null) return;
    const [x, y] = scatterPoint(study, i, top);
    paths[study.fits[i] === last?.fit ? "latest" : "earlier"] += `M${f1(x)} ${f1(y)}h0`;
  });
  for (const [name, d] of Object.entries(paths)) svg.append(path(d, name, name));
}

function knobs(svg, study, top) {
  const words = `stronger: tried more often${study.selection ? "; orange: share of its mutants kept" : ""}`;
  svg.append(label(KNOBS, top + 16, "Knob values tried", "h"), label(KNOBS, top + 33, words, "s"));
  const width = (RIGHT - CELLS) / Math.max(1, ...study.knobs.map((knob) => knob.values.length));
  study.knobs.forEach((knob, row) => {
    const [y, most] = [top + 46 + row * KNOB_ROW, Math.max(1, ...knob.tried)];
    svg.append(label(KNOBS, y + 15, knob.name, "knob"));
    knob.values.forEach((value, place) => {
      const [x, tried, kept] = [CELLS + place * width, knob.tried[place], knob.kept[place]];
      const cell = { x: x + 1, y, width: width - 2, height: CELL, class: tried ? "cell" : "cell never", "data-cell": `${row}.${place}` };
      svg.append(node("rect", { ...cell, "fill-opacity": ((0.6 * tried) / most).toFixed(2) }), ...(width > 16 ? [label(x + width / 2, y + 15, value.slice(0, 8), "value m")] : []));
      if (kept !== null) svg.append(node("rect", { x: x + 1, y: y + CELL, width: (width - 2) * kept, height: 4, class: "kept" }));
    });
  });
  study.selection_words.forEach((line, i) => svg.append(label(KNOBS, top + 60 + KNOB_ROW * study.knobs.length + 18 * i, line, "s")));
}

// The visited trial in every panel, and one sentence about it.
function mark(svg, scale, study, place, top) {
  if (!study || place < 0 || place >= study.numbers.length) return "";
  const [x, time, share] = [scale.x(place), study.microseconds[place], study.predicted[place]];
  svg.append(path(`M${f1(x)} ${TOP}V${BOTTOM}`, "cursor"));
  if (time !== null) svg.append(node("circle", { cx: x, cy: scale.y(time), r: 7, class: "ring" }));
  const [px, py] = share === null ? [0, 0] : scatterPoint(study, place, top);
  if (share !== null) svg.append(node("circle", { cx: px, cy: py, r: 7, class: "ring" }));
  const values = study.knobs.map((knob, row) => {
    const digit = parseInt(study.digits[place][row], 36);
    const cell = svg.querySelector(`[data-cell="${row}.${digit}"]`);
    if (cell) svg.append(node("rect", { ...Object.fromEntries(["x", "y", "width", "height"].map((n) => [n, cell.getAttribute(n)])), class: "ring" }));
    return `${knob.name} ${knob.values[digit]}`;
  });
  const came = time === null ? `failed (${study.failures[place]})` : `${time.toFixed(2)} us`;
  const why = study.origins[place] ? `, proposed as ${study.origins[place]}` : "";
  const said = share === null ? "" : `, predicted at ${Math.round(100 * share)} % of its batch`;
  return `Trial ${study.numbers[place]}: ${came}${why}${said}. ${values.join(", ")}`;
}

