// Views of one record in several pictures in which things with numbers are chosen. `data`: `pictures`, an svg by name;
// `word` before the buttons that choose one of them; `says`, a sentence for each thing; `whole`, what is said of all;
// `row`: how far up and down arrow keys go. The text of a view's own file follows those of buttons and shell and this one.

function picker({ model, el, name }) {
  const data = () => model.get("data");
  const FAR = 5; // Page Up and Page Down
  const things = numbered({
    at: (event) => Number(event.target.closest?.("[data-item]")?.dataset.item ?? -1),
    count: () => data().says.length,
    get row() {
      return data().row;
    },
    chosen: () => model.get("chosen"),
    choose: (number) => view.write("chosen", number),
    mark,
    jump: (key, here) => {
      const by = { PageUp: -FAR, PageDown: FAR }[key];
      return by && Math.max(0, Math.min(data().says.length - 1, here + by * data().row));
    },
  });
  const watched = ["data", "variant", "chosen", "error"];
  const picture = () => data().pictures?.[model.get("variant")] ?? "";
  const above = `<div class="pick"></div>`;
  const view = shell({ model, el, name: `sb-turn ${name}`, above, watched, picture, mark, onKey: things.onKey });
  let offered = "";

  function offer() {
    const names = Object.keys(data().pictures);
    const wanted = JSON.stringify([names, model.get("variant")]);
    if (wanted === offered) return;
    offered = wanted;
    radios(view.root.querySelector(".pick"), data().word, data().word, names, model.get("variant"), (one) => view.write("variant", one));
  }

  function mark() {
    offer();
    const shown = things.shown();
    for (const thing of view.stage.querySelectorAll("[data-item]")) {
      thing.classList.toggle("on", Number(thing.dataset.item) === model.get("chosen"));
      thing.classList.toggle("over", Number(thing.dataset.item) === shown);
    }
    view.say.textContent = data().says[shown] ?? data().whole;
  }

  things.listen(view);
  return view.start();
}
