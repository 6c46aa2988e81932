// The path of a byte: marks one byte in all five places, the one pointed at or else the one that is followed.

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-stores";
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="stage"></div><div class="say" aria-live="polite"></div>`;
  const [problem, stage, say] = [".problem", ".stage", ".say"].map((name) => root.querySelector(name));
  el.append(root);
  let shown = "";
  let hovered = -1;
  let marked = null;

  function draw() {
    problem.textContent = model.get("error");
    problem.hidden = !problem.textContent;
    stage.hidden = say.hidden = !problem.hidden; // an older picture would be taken for what the words speak of
    const picture = model.get("svg");
    if (!picture) return;
    if (picture !== shown) {
      const focused = stage.contains(document.activeElement);
      stage.innerHTML = picture;
      shown = picture;
      marked = null;
      const panel = stage.querySelector(".panel");
      panel.addEventListener("keydown", onKey);
      if (focused) panel.focus();
    }
    mark();
  }

  function mark() {
    marked?.classList.remove("on");
    const byte = hovered >= 0 ? hovered : model.get("follow");
    marked = stage.querySelector(`[data-u="${byte}"]`);
    marked?.classList.add("on");
    say.textContent = model.get("sentences")[byte] ?? "Point at a byte, or press Tab and the arrow keys.";
  }

  function choose(byte) {
    hovered = -1;
    model.set("follow", byte);
    model.save_changes();
    mark();
  }

  const at = (event) => Number(event.target.closest?.("[data-u]")?.dataset.u ?? -1);

  function onPoint(event) {
    const byte = event.type === "pointerleave" ? -1 : at(event);
    if (byte === hovered) return;
    hovered = byte;
    mark();
  }

  function onClick(event) {
    const byte = at(event);
    if (byte < 0) return;
    stage.querySelector(".panel").focus();
    choose(byte);
  }

  // The index of a byte is 16 * image + 8 * pixel + pair of channels.
  function onKey(event) {
    const here = model.get("follow");
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -16, ArrowDown: 16 };
    let next = here;
    if (event.key in steps) next = here < 0 ? 0 : here + steps[event.key];
    else if (event.key === " ") next = here < 0 ? 0 : here ^ 8;
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = model.get("sentences").length - 1;
    else if (event.key === "Escape") next = -1;
    else return;
    if (next === -1 ? event.key === "Escape" : model.get("sentences")[next]) choose(next);
    event.preventDefault();
    event.stopPropagation();
  }

  stage.addEventListener("pointermove", onPoint);
  stage.addEventListener("pointerleave", onPoint);
  stage.addEventListener("click", onClick);
  const watched = ["svg", "sentences", "follow", "error"];
  for (const name of watched) model.on(`change:${name}`, draw);
  draw();
  return () => {
    for (const name of watched) model.off(`change:${name}`, draw);
  };
}

export default { render };
