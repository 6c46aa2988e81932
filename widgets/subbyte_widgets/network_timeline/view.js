// The network timeline: marks a layer of the picture and puts its sentence below.

function render({ model, el }) {
  const data = () => model.get("data");
  const FAR = 5; // Page Up and Page Down
  const layers = numbered({
    at: (event) => Number(event.target.closest?.("[data-layer]")?.dataset.layer ?? -1),
    count: () => data().says.length,
    row: 1,
    chosen: () => model.get("chosen"),
    choose: (number) => view.write("chosen", number),
    mark,
    jump: (key, here) => {
      const by = { PageUp: -FAR, PageDown: FAR }[key];
      return by && Math.max(0, Math.min(data().says.length - 1, here + by));
    },
  });
  const watched = ["data", "chosen", "error"];
  const picture = () => data().svg ?? "";
  const view = shell({ model, el, name: "sb-turn sb-timeline", watched, picture, mark, onKey: layers.onKey });

  function mark() {
    const shown = layers.shown();
    for (const layer of view.stage.querySelectorAll("[data-layer]")) {
      layer.classList.toggle("on", Number(layer.dataset.layer) === model.get("chosen"));
      layer.classList.toggle("over", Number(layer.dataset.layer) === shown);
    }
    view.say.textContent = data().says[shown] ?? data().whole;
  }

  layers.listen(view);
  return view.start();
}

export default { render };
