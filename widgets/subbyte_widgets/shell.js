// What the views of one picture share: an error in its place, the focus kept over a new drawing, what is listened to.
// The text of a view's own file follows this one.

// `name`: class of the view; `above`: what stands over the picture; `watched`: traits that matter; `picture()`: the text
// of the drawing, empty for none yet; `index(svg)`: looks up what is in a new one; `mark()`: shows the selection in it;
// `onKey(event)`: takes the keys of its panel.
function shell({ model, el, name, above = "", watched, picture, index, mark, onKey }) {
  const root = document.createElement("div");
  root.className = name;
  root.innerHTML = `${above}<div class="problem" role="alert" hidden></div><div class="stage"></div><div class="say" aria-live="polite"></div>`;
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
      index?.(stage.querySelector("svg"));
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

