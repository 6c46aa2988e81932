// The live best-so-far curve. The columns come from the study; here they only become points (picture.py draws the same).

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [760, 330, 62, 742, 46, 284];

function axes(curve, total) {
  const count = Math.max(total, curve.numbers.length, 2);
  const known = curve.microseconds.filter((time) => time !== null);
  const times = known.length ? known : [1, 10];
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
      const found = [];
      for (let d = Math.floor(low); d <= Math.floor(high); d += 1) {
        for (const m of steps) if (Math.log10(m * 10 ** d) >= low && Math.log10(m * 10 ** d) <= high) found.push(m * 10 ** d);
      }
      return found;
    },
    counts() {
      const sizes = [...Array(9).keys()].flatMap((d) => [10 ** d, 2 * 10 ** d, 5 * 10 ** d]);
      const step = sizes.find((size) => count / size <= 8);
      return [...Array(Math.ceil(count / step)).keys()].map((i) => i * step);
    },
  };
}

function bestPath(scale, best) {
  let path = "";
  let before = null;
  best.forEach((time, i) => {
    if (time === null) return;
    const [x, y] = [scale.x(i).toFixed(1), scale.y(time).toFixed(1)];
    path += before === null ? `M${x} ${y}` : time === before ? `H${x}` : `H${x}V${y}`;
    before = time;
  });
  return path;
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-curve";
  root.innerHTML = `<div class="problem" role="alert" hidden></div>
    <div class="bar"><button type="button" data-lm-suppress-shortcuts="true" hidden>Stop</button><div class="say" aria-live="polite"></div></div>
    <div class="stage" tabindex="0" data-lm-suppress-shortcuts="true" role="application"
      aria-label="Tuning curve: left and right arrow keys visit the trials"></div>`;
  const [problem, stage, button, say] = [".problem", ".stage", "button", ".say"].map((name) => root.querySelector(name));
  el.append(root);

  let frame = 0;
  let scale = null;

  function draw() {
    frame = 0;
    const curve = model.get("curve");
    scale = axes(curve, model.get("total"));
    const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "sb-curve-svg", role: "img" });
    svg.setAttribute("aria-label", model.get("alternative"));
    svg.append(label(LEFT, 18, model.get("title"), "h"), label(LEFT, 36, model.get("status"), "s"));
    grid(svg);
    const dots = curve.microseconds.map((t, i) => (t === null ? "" : `M${scale.x(i).toFixed(1)} ${scale.y(t).toFixed(1)}h0`));
    const crosses = curve.failures.map((kind, i) =>
      kind ? `M${(scale.x(i) - 3).toFixed(1)} ${(BOTTOM - 9).toFixed(1)}l6 6m0 -6l-6 6` : "");
    const paths = { dots: dots.join(""), failed: crosses.join(""), best: bestPath(scale, curve.best_microseconds) };
    for (const [name, d] of Object.entries(paths)) svg.append(node("path", { d, class: name, "data-of": "study" }));
    const last = curve.best_microseconds.findLastIndex((time) => time !== null);
    if (last >= 0) {
      const [x, y, time] = [scale.x(last), scale.y(curve.best_microseconds[last]), curve.best_microseconds[last]];
      svg.append(node("circle", { cx: x, cy: y, r: 5, class: "end" }));
      svg.append(label(x - 4, y + 18, `${time.toFixed(2)} us`, "best-label e"));
    }
    stage.replaceChildren(svg);
    problem.hidden = !model.get("error");
    problem.textContent = model.get("error");
    button.hidden = !model.get("running");
    button.disabled = model.get("stop_requested");
    button.textContent = button.disabled ? "Stopping\u2026" : "Stop";
    cursor(svg, curve);
  }

  function grid(svg) {
    for (const time of scale.times()) {
      const y = scale.y(time);
      svg.append(node("path", { d: `M${LEFT} ${y.toFixed(1)}H${RIGHT}`, class: "rule" }));
      svg.append(label(LEFT - 8, y + 4, String(Number(time.toPrecision(6))), "s e"));
    }
    for (const count of scale.counts()) svg.append(label(scale.x(count), BOTTOM + 18, count, "s m"));
    svg.append(node("path", { d: `M${LEFT} ${BOTTOM}H${RIGHT}`, class: "axis" }));
    svg.append(label((LEFT + RIGHT) / 2, BOTTOM + 38, "trial", "s m"));
    const middle = (TOP + BOTTOM) / 2;
    const side = label(14, middle, "us (log)", "s m");
    side.setAttribute("transform", `rotate(-90 14 ${middle})`);
    svg.append(side);
    const marks = [["M456 14h0", "dots", 464, "measured"], ["M535 11l6 6m0 -6l-6 6", "failed", 546, "failed"],
      ["M598 14h22", "best", 626, "best so far"]];
    for (const [d, name, x, words] of marks) svg.append(node("path", { d, class: name }), label(x, 18, words, "s"));
  }

  // The visited trial: a dotted line, a ring and one sentence.
  function cursor(svg, curve) {
    const place = model.get("selected");
    if (place < 0 || place >= curve.numbers.length) {
      say.textContent = curve.numbers.length ? "Click into the picture, or use the arrow keys, to read single trials." : "";
      return;
    }
    const x = scale.x(place);
    const time = curve.microseconds[place];
    svg.append(node("path", { d: `M${x} ${TOP}V${BOTTOM}`, class: "cursor" }));
    if (time !== null) svg.append(node("circle", { cx: x, cy: scale.y(time), r: 7, class: "cursor-dot" }));
    const came = time === null ? `failed (${curve.failures[place]})` : `${time.toFixed(2)} us`;
    say.textContent = `Trial ${curve.numbers[place]}: ${came}, ${model.get("labels")[place] ?? ""}`;
  }

  function node(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function label(x, y, words, name) {
    const made = node("text", { x, y, class: name });
    made.textContent = words;
    return made;
  }

  function visit(place) {
    const count = model.get("curve").numbers.length;
    model.set("selected", count ? Math.min(Math.max(place, 0), count - 1) : -1);
    model.save_changes();
    schedule();
  }

  function onKey(event) {
    const here = model.get("selected");
    const count = model.get("curve").numbers.length;
    const moves = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: count - 1 };
    if (!(event.key in moves)) return;
    visit(moves[event.key]);
    event.preventDefault();
    event.stopPropagation();
  }

  function onMove(event) {
    const box = stage.firstChild.getBoundingClientRect();
    visit(scale.place(((event.clientX - box.left) / box.width) * WIDTH));
  }

  function onStop() {
    model.set("stop_requested", true);
    model.save_changes();
    schedule();
  }

  // However many points arrive between two frames, the picture is drawn once.
  function schedule() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  stage.addEventListener("keydown", onKey);
  stage.addEventListener("click", onMove);
  button.addEventListener("click", onStop);
  const watched = ["curve", "status", "title", "total", "running", "error", "selected", "stop_requested"];
  for (const name of watched) model.on(`change:${name}`, schedule);
  draw();
  return () => {
    cancelAnimationFrame(frame);
    for (const name of watched) model.off(`change:${name}`, schedule);
  };
}

export default { render };
