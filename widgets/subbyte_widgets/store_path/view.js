// The path of a byte: marks one byte in all five places, the one pointed at or else the one that is followed.

function render({ model, el }) {
  let hovered = -1;
  let marked = null;
  const view = shell({
    model, el, name: "sb-stores", watched: ["svg", "sentences", "follow", "error"], picture: () => model.get("svg"), mark, onKey,
  });
  const { stage, say, panel } = view;

  function mark() {
    marked?.classList.remove("on");
    const byte = hovered >= 0 ? hovered : model.get("follow");
    marked = stage.querySelector(`[data-u="${byte}"]`);
    marked?.classList.add("on");
    say.textContent = model.get("sentences")[byte] ?? "Point at a byte, or press Tab and the arrow keys.";
  }

  function choose(byte) {
    hovered = -1;
    view.write("follow", byte);
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
    panel().focus();
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
  return view.start();
}

export default { render };
