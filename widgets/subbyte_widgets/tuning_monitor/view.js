// The live part of the tuning monitor: drawn at most once per frame; keys, clicks and buttons write traits. panels.js is before it.

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-monitor";
  root.innerHTML = `<div class="problem" role="alert" hidden></div>
    <div class="bar"><button type="button" class="pause" data-lm-suppress-shortcuts="true" hidden></button><button type="button" class="stop" data-lm-suppress-shortcuts="true" hidden></button><div class="say" aria-live="polite"></div></div>
    <div class="stage" tabindex="0" data-lm-suppress-shortcuts="true" role="application"
      aria-label="Tuning monitor: left and right arrow keys visit the trials, up and down the studies"></div>`;
  const [problem, stage, pause, stop, say] = [".problem", ".stage", ".pause", ".stop", ".say"].map((name) => root.querySelector(name));
  el.append(root);
  let [frame, scale] = [0, null];
  const study = () => model.get("studies")[model.get("shown")];

  function draw() {
    frame = 0;
    const [studies, shown] = [model.get("studies"), model.get("shown")];
    scale = axes(studies, model.get("total"));
    const top = study() ? lower(study()) : 0;
    const height = study() ? heightOf(study(), top) : BOTTOM + 40;
    const svg = node("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "sb-monitor-svg", role: "img", "aria-label": model.get("alternative") });
    svg.append(label(LEFT, 18, model.get("title"), "h"), label(LEFT, 36, model.get("status"), "s"));
    legend(svg, studies, shown);
    grid(svg, scale);
    if (study()) {
      curves(svg, scale, studies, shown);
      for (const panel of [readings]) panel(svg, scale, study());
      for (const panel of [predictions, knobs]) panel(svg, study(), top);
    }
    const words = mark(svg, scale, study(), model.get("selected"), top);
    say.textContent = words || (study() ? "Click into the picture, or use the arrow keys, to read single trials." : "");
    stage.replaceChildren(svg);
    [problem.hidden, problem.textContent] = [!model.get("error"), model.get("error")];
    const [running, stopping] = [model.get("running"), model.get("stop_requested")];
    [stop.hidden, stop.disabled, stop.textContent] = [!running, stopping, stopping ? "Stopping\u2026" : "Stop"];
    [pause.hidden, pause.textContent] = [!running || stopping, model.get("paused") ? "Go on" : "Pause"];
  }

  function write(name, value) {
    model.set(name, value);
    model.save_changes();
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function visit(place) {
    const count = study()?.numbers.length ?? 0;
    write("selected", count ? Math.min(Math.max(place, 0), count - 1) : -1);
  }

  function turn(place) {
    if (!(place in model.get("studies"))) return;
    model.set("selected", -1);
    write("shown", place);
  }

  function onKey(event) {
    const [here, shown] = [model.get("selected"), model.get("shown")];
    const moves = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: study()?.numbers.length - 1 };
    const turns = { ArrowUp: shown - 1, ArrowDown: shown + 1 };
    if (event.key in moves) visit(moves[event.key]);
    else if (event.key in turns) turn(turns[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function onClick(event) {
    const box = stage.firstChild.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.width) * WIDTH];
    if (event.target.dataset.study) turn(Number(event.target.dataset.study));
    else if (study() && y < lower(study())) visit(scale.place(x));
    else if (study() && x < KNOBS) {
      const away = study().predicted.map((share, i) => {
        const [px, py] = scatterPoint(study(), i, lower(study()));
        return share === null ? Infinity : Math.hypot(px - x, py - y);
      });
      const near = away.indexOf(Math.min(...away));
      if (away[near] < 20) visit(near);
    }
  }

  stage.addEventListener("keydown", onKey);
  stage.addEventListener("click", onClick);
  pause.addEventListener("click", () => write("paused", !model.get("paused")));
  stop.addEventListener("click", () => write("stop_requested", true));
  // However many results arrive between two frames, the picture is drawn once.
  const schedule = () => { frame ||= requestAnimationFrame(draw); };
  const watched = ["studies", "status", "total", "running", "error", "shown", "selected", "paused", "stop_requested"];
  for (const name of watched) model.on(`change:${name}`, schedule);
  draw();
  return () => {
    cancelAnimationFrame(frame);
    for (const name of watched) model.off(`change:${name}`, schedule);
  };
}

export default { render };
