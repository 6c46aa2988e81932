// What the step-through views share: buttons, slider, keys and playing. The text of a view's own file follows this one.
// All steps are in the page: going from one to another asks nobody. One step on is shown as a flight where the view has
// one (motion.js), and the CUDA line that does the step is lit beside the picture (code.js).

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

// `count()`: steps; `stops()`: where phases begin; `draw(step, early)` shows a step, `early`: before its data arrived, and
// returns its sentence; `travel(step)` gives the `frame(t)` of the flight of a step, or nothing; `landed()` clears it away;
// `code()`: the listing, `lines(step)`: its lit lines and what is done there, `lined(line)`: shows a clicked line's doings;
// `onKey(event)` takes the keys that are left and says whether it did; `rebuild()` makes the stage anew from the data;
// `rate`: steps per second; `trait`: the number of the step; `listen` gives the view's own traits with what to do when
// they change. A test sets the time of a step's flight with `stage.sbFlight(t)`.
function player({
  model, el, name, label, rate, count, stops, draw, travel = () => null, landed = () => {}, code = () => null, lines, lined, onKey,
  rebuild, listen, trait = "step", word = "step",
}) {
  const root = document.createElement("div");
  root.className = `sb-step ${name}`;
  const buttons = BUTTONS.map(([key, title, path]) => `<button type="button" data-do="${key}" title="${title}"
    aria-label="${title}" data-lm-suppress-shortcuts="true"><svg aria-hidden="true" viewBox="0 0 16 16"><path d="${path}"/></svg></button>`);
  const speeds = SPEEDS.map((s) => `<option value="${s}"${s === 1 ? " selected" : ""}>${s}\u00d7</option>`);
  root.innerHTML = `<div class="problem" role="alert" hidden></div>
    <div class="tools"><span class="extra"></span><span class="buttons">${buttons.join("")}</span>
      <input type="range" min="0" step="1" aria-label="step" data-lm-suppress-shortcuts="true">
      <span class="count"></span><select aria-label="speed" title="speed" data-lm-suppress-shortcuts="true">${speeds.join("")}</select></div>
    <div class="say" aria-live="polite"></div>
    <div class="beside"><div class="stage" tabindex="0" role="application" data-lm-suppress-shortcuts="true" aria-label="${label}: left and
      right arrow keys step, Page Up and Page Down go by phases, Home and End to the ends, Space plays"></div>
      <div class="code" hidden></div></div>`;
  el.append(root);
  const [problem, tools, range, number, speed, beside, stage, say] = [
    ".problem", ".tools", "input", ".count", "select", ".beside", ".stage", ".say",
  ].map((selector) => root.querySelector(selector));
  const none = { fill: () => {}, light: () => {}, end: () => {} };
  const pane = typeof codePane === "undefined" ? none : codePane(root.querySelector(".code"), (line) => lined?.(line));
  const clock = flightClock();
  const button = (key) => root.querySelector(`[data-do="${key}"]`);
  let timer = 0;
  let direction = 0;
  let before = null; // the step that was shown last

  function show(asked) {
    const words = model.get("error");
    problem.hidden = !words;
    problem.textContent = words;
    tools.hidden = beside.hidden = stage.hidden = say.hidden = Boolean(words) || !count();
    clock.land();
    if (tools.hidden) return stop();
    const step = model.get(trait);
    range.max = count();
    range.value = step;
    number.textContent = `${word} ${step} of ${count()}`;
    const moves = (asked || !CALM.matches) && before !== null && step === before + 1;
    before = step;
    say.textContent = draw(step, moves);
    const frame = moves ? travel(step) : null;
    if (frame) clock.start(frame, 0.8 / (rate * Number(speed.value)), arrive);
    else if (moves) draw(step);
    if (lines) pane.light(...lines(step));
    button("first").disabled = button("back").disabled = button("reverse").disabled = step === 0;
    button("last").disabled = button("next").disabled = button("play").disabled = step === count();
  }

  function arrive() {
    landed();
    draw(before);
  }

  // The flight of the step that is shown, at one moment of it.
  stage.sbFlight = (t) => {
    if (!clock.flying()) {
      before = model.get(trait) - 1;
      show(true);
    }
    clock.set(t);
  };

  function go(step) {
    model.set(trait, Math.max(0, Math.min(count(), step)));
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

  // A pause holds what is flying where it is; playing lets it go on.
  function play(way) {
    const again = direction === way;
    stop();
    if (again) return clock.hold();
    direction = way;
    marks();
    const held = clock.flying();
    if (held) clock.go();
    else turn(way);
    if (direction) timer = setInterval(() => turn(way), 1000 / (rate * Number(speed.value)));
  }

  function turn(way) {
    const here = model.get(trait);
    go(here + way);
    if (model.get(trait) === here || model.get(trait) === (way > 0 ? count() : 0)) stop();
  }

  function phase(way) {
    const step = model.get(trait);
    const places = way > 0 ? stops().filter((s) => s > step) : stops().filter((s) => s < step).reverse();
    return places.length ? places[0] : way > 0 ? count() : 0;
  }

  const moves = {
    first: () => go(0), last: () => go(count()), back: () => go(model.get(trait) - 1), next: () => go(model.get(trait) + 1),
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

  const again = () => {
    before = null; // the same step once more, for another reason than to go on
    show();
  };
  const renew = () => {
    clock.land();
    rebuild(stage, root.querySelector(".extra"));
    pane.fill(code());
    again();
  };
  const heard = [[trait, () => show()], ["error", renew], ["data", renew], ...listen(stage, again, renew)];
  for (const [trait, act] of heard) model.on(`change:${trait}`, act);
  renew();
  return () => {
    stop();
    pane.end();
    clock.land();
    for (const [trait, act] of heard) model.off(`change:${trait}`, act);
  };
}
