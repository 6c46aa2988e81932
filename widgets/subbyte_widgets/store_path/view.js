// The path of a byte: marks one byte in all five places, the one pointed at or else the one that is followed.

function render({ model, el }) {
  let marked = null;
  // The index of a byte is 16 * image + 8 * pixel + pair of channels.
  const bytes = numbered({
    at: (event) => Number(event.target.closest?.("[data-u]")?.dataset.u ?? -1), count: () => model.get("sentences").length,
    row: 16, chosen: () => model.get("follow"), choose: (byte) => view.write("follow", byte), mark,
    jump: (key, here) => (key === " " ? (here < 0 ? 0 : here ^ 8) : undefined),
  });
  const view = shell({
    model, el, name: "sb-stores", watched: ["svg", "sentences", "follow", "error"], picture: () => model.get("svg"), mark,
    onKey: bytes.onKey,
  });

  function mark() {
    const byte = bytes.shown();
    marked?.classList.remove("on");
    marked = view.stage.querySelector(`[data-u="${byte}"]`);
    marked?.classList.add("on");
    view.say.textContent = model.get("sentences")[byte] ?? "Point at a byte, or press Tab and the arrow keys.";
  }

  bytes.listen(view);
  return view.start();
}

export default { render };
