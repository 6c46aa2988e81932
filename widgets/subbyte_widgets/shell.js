// What the views of one picture share: an error in its place, the focus kept over a new drawing, what is listened to.
// The text of a view's own file follows this one.

// `name`: class of the view; `above`: what stands over the picture; `watched`: traits that matter; `picture()`: the text
// of the drawing, empty for none yet; `index(svg)`: looks up what is in a new one; `mark()`: shows the selection in it;
// `onKey(event)`: takes the keys of its panel.
function shell({ model, el, name, above = "", watched, picture, index, mark, onKey }) {
  const root = document.createElement("div");
  root.className = name;
  root.innerHTML = `${above}<div class="problem" role="alert" hidden></div><div class="say" aria-live="polite"></div><div class="stage"></div>`;
  const [problem, stage, say] = [".problem", ".stage", ".say"].map((part) => root.querySelector(part));
  const panel = () => stage.querySelector(".panel");
  el.append(root);
  let shown = "";

  function draw() {
    problem.textContent = model.get("error");
    problem.hidden = !problem.textContent;
    stage.hidden = say.hidden = !problem.hidden; // an older picture would be taken for what the words speak of
    const wanted = picture();
    if (wanted && wanted !== shown) {
      const focused = stage.contains(document.activeElement);
      stage.innerHTML = shown = wanted;
      panel().addEventListener("keydown", onKey);
      const svg = stage.querySelector("svg");
      if (!svg.hasAttribute("role")) svg.setAttribute("role", "group");
      if (!svg.hasAttribute("aria-label")) svg.setAttribute("aria-label", model.get("alternative") || name);
      index?.(svg);
      if (focused) panel().focus();
    }
    if (shown) mark();
  }

  function write(trait, value) {
    model.set(trait, value);
    model.save_changes();
    draw();
  }

  function start() {
    for (const trait of watched) model.on(`change:${trait}`, draw);
    draw();
    return () => {
      for (const trait of watched) model.off(`change:${trait}`, draw);
    };
  }

  return { root, stage, say, panel, write, start };
}

// Things with numbers from 0, one of them chosen (-1: none), one perhaps under the pointer: `at(event)`: the one that an
// event points at; `count()`: how many; `row`: how far up and down go; `chosen()`; `choose(number, clicked)`; `mark()`;
// `jump(key, here)`: where the view's own keys lead. `shown()` is the one to mark; `onKey` is for the shell.
function numbered({ at, count, row, chosen, choose, mark, jump }) {
  let hovered = -1;

  function onPoint(event) {
    const number = event.type === "pointerleave" ? -1 : at(event);
    if (number === hovered) return;
    hovered = number;
    mark();
  }

  function onKey(event) {
    const here = chosen();
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -row, ArrowDown: row }[event.key];
    const next = step ? (here < 0 ? 0 : here + step) : { Home: 0, End: count() - 1, Escape: -1 }[event.key] ?? jump?.(event.key, here);
    if (next === undefined) return;
    if (event.key === "Escape" || (next >= 0 && next < count())) {
      hovered = -1;
      choose(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  function listen({ stage, panel }) {
    stage.addEventListener("pointermove", onPoint);
    stage.addEventListener("pointerleave", onPoint);
    stage.addEventListener("click", (event) => {
      const number = at(event);
      if (number < 0) return;
      panel().focus();
      hovered = -1;
      choose(number, true);
    });
  }

  return { onKey, listen, shown: () => (hovered >= 0 ? hovered : chosen()) };
}
