// The live origin of a layer: rows are chosen and told of, all of it in the browser. The shell is before it.

function render({ model, el }) {
  const data = () => model.get("data");
  const rows = numbered({
    at: (event) => Number(event.target.closest?.("[data-item]")?.dataset.item ?? -1),
    count: () => data().says.length,
    row: 1,
    chosen: () => model.get("chosen"),
    choose: (number) => view.write("chosen", number),
    mark,
  });
  const view = shell({
    model, el, name: "sb-turn sb-origin", watched: ["data", "chosen", "error"], picture: () => data().svg ?? "", mark, onKey: rows.onKey,
  });

  function mark() {
    const shown = rows.shown();
    for (const row of view.stage.querySelectorAll("[data-item]")) {
      row.classList.toggle("on", Number(row.dataset.item) === model.get("chosen"));
      row.classList.toggle("over", Number(row.dataset.item) === shown);
    }
    view.say.textContent = data().says[shown] ?? data().whole;
  }

  rows.listen(view);
  return view.start();
}

export default { render };
