// What the step-through views share: buttons, slider, keys and playing. The text of a view's own file follows this one.
// All steps are in the page: going from one to another asks nobody.

const SVG_NS = "http://www.w3.org/2000/svg";
const SPEEDS = [0.5, 1, 2, 4, 8];
const BUTTONS = [
  ["first", "to the start (Home)", "M4 3h2v10H4zM14 3v10L7 8z"],
  ["reverse", "play backwards (Shift+Space)", "M13 2.5v11L3 8z"],
  ["back", "one step back (left arrow)", "M10.5 3v10L4 8zM11 3h1.8v10H11z"],
  ["next", "one step on (right arrow)", "M5.5 3v10L12 8zM3.2 3H5v10H3.2z"],
  ["play", "play (Space)", "M3 2.5v11L13 8z"],
  ["last", "to the end (End)", "M10 3h2v10h-2zM2 3v10l7-5z"],
];
const PAUSE = "M3.5 3h3v10h-3zM9.5 3h3v10h-3z";

function svgNode(name, attributes) {
  const made = document.createElementNS(SVG_NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// `count()`: steps; `stops()`: where phases begin; `draw(step)` shows a step and returns its sentence; `onKey(event)`
// takes the keys that are left and says whether it did; `rebuild()` makes the stage anew from the data; `rate`: steps
// per second; `listen` gives the view's own traits with what to do when they change.
function player({ model, el, name, label, rate, count, stops, draw, onKey, rebuild, listen }) {
  const root = document.createElement("div");
  root.className = `sb-step ${name}`;
  const buttons = BUTTONS.map(([key, title, path]) => `<button type="button" data-do="${key}" title="${title}"
    aria-label="${title}" data-lm-suppress-shortcuts="true"><svg aria-hidden="true" viewBox="0 0 16 16"><path d="${path}"/></svg></button>`);
  const speeds = SPEEDS.map((s) => `<option value="${s}"${s === 1 ? " selected" : ""}>${s}\u00d7</option>`);
  root.innerHTML = `<div class="problem" role="alert" hidden></div>
    <div class="tools"><span class="extra"></span><span class="buttons">${buttons.join("")}</span>
      <input type="range" min="0" step="1" aria-label="step" data-lm-suppress-shortcuts="true">
      <span class="count"></span><select aria-label="speed" title="speed" data-lm-suppress-shortcuts="true">${speeds.join("")}</select></div>
    <div class="stage" tabindex="0" role="application" data-lm-suppress-shortcuts="true" aria-label="${label}: left and
      right arrow keys step, Page Up and Page Down go by phases, Home and End to the ends, Space plays"></div>
    <div class="say" aria-live="polite"></div>`;
  el.append(root);
  const [problem, tools, range, number, speed, stage, say] = [
    ".problem", ".tools", "input", ".count", "select", ".stage", ".say",
  ].map((selector) => root.querySelector(selector));
  const button = (key) => root.querySelector(`[data-do="${key}"]`);
  let timer = 0;
  let direction = 0;

  function show() {
    const words = model.get("error");
    problem.hidden = !words;
    problem.textContent = words;
    tools.hidden = stage.hidden = say.hidden = Boolean(words) || !count();
    if (tools.hidden) return stop();
    const step = model.get("step");
    range.max = count();
    range.value = step;
    number.textContent = `step ${step} of ${count()}`;
    say.textContent = draw(step);
    button("first").disabled = button("back").disabled = button("reverse").disabled = step === 0;
    button("last").disabled = button("next").disabled = button("play").disabled = step === count();
  }

  function go(step) {
    model.set("step", Math.max(0, Math.min(count(), step)));
    model.save_changes();
  }

  function stop() {
    clearInterval(timer);
    timer = direction = 0;
    marks();
  }

  function marks() {
    for (const [key, , path] of BUTTONS) {
      const running = (key === "play" && direction > 0) || (key === "reverse" && direction < 0);
      button(key).querySelector("path").setAttribute("d", running ? PAUSE : path);
      button(key).classList.toggle("running", running);
    }
    say.setAttribute("aria-live", direction ? "off" : "polite");
  }

  function play(way) {
    const again = direction === way;
    stop();
    if (again) return;
    direction = way;
    marks();
    timer = setInterval(() => {
      const before = model.get("step");
      go(before + way);
      if (model.get("step") === before || model.get("step") === (way > 0 ? count() : 0)) stop();
    }, 1000 / (rate * Number(speed.value)));
  }

  function phase(way) {
    const step = model.get("step");
    const places = way > 0 ? stops().filter((s) => s > step) : stops().filter((s) => s < step).reverse();
    return places.length ? places[0] : way > 0 ? count() : 0;
  }

  const moves = {
    first: () => go(0), last: () => go(count()), back: () => go(model.get("step") - 1), next: () => go(model.get("step") + 1),
  };
  const keys = {
    ArrowRight: moves.next, ArrowLeft: moves.back, Home: moves.first, End: moves.last,
    PageDown: () => go(phase(1)), PageUp: () => go(phase(-1)),
  };

  root.addEventListener("click", (event) => {
    const key = event.target.closest("[data-do]")?.dataset.do;
    if (!key) return;
    if (key === "play" || key === "reverse") return play(key === "play" ? 1 : -1);
    stop();
    moves[key]();
  });
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") play(event.shiftKey ? -1 : 1);
    else if (keys[event.key]) {
      stop();
      keys[event.key]();
    } else if (!onKey(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  stage.addEventListener("pointerdown", () => stage.focus({ preventScroll: true }));
  range.addEventListener("input", () => {
    stop();
    go(Number(range.value));
  });
  speed.addEventListener("change", () => {
    const way = direction;
    stop();
    if (way) play(way);
  });

  const renew = () => {
    rebuild(stage, root.querySelector(".extra"));
    show();
  };
  const heard = [["step", show], ["error", renew], ["data", renew], ...listen(stage, show, renew)];
  for (const [trait, act] of heard) model.on(`change:${trait}`, act);
  renew();
  return () => {
    stop();
    for (const [trait, act] of heard) model.off(`change:${trait}`, act);
  };
}
