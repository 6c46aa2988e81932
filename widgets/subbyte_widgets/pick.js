// Views of one record in several pictures in which things with numbers are chosen. `data`: `pictures`, an svg by name;
// `word` before the buttons that choose one of them; `says`, a sentence for each thing; `whole`, what is said of all;
// both are given by picture where each has things of its own; `row`: how far up and down arrow keys go. The text of a view's own file follows those of buttons and shell and this one.

function picker({ model, el, name }) {
  const data = () => model.get("data");
  const says = () => (Array.isArray(data().says) ? data().says : data().says[model.get("variant")]);
  const whole = () => (typeof data().whole === "string" ? data().whole : data().whole[model.get("variant")]);
  const FAR = 5; // Page Up and Page Down
  const things = numbered({
    at: (event) => Number(event.target.closest?.("[data-item]")?.dataset.item ?? -1),
    count: () => says().length,
    get row() {
      return data().row;
    },
    chosen: () => model.get("chosen"),
    choose: (number) => view.write("chosen", number),
    mark,
    jump: (key, here) => {
      const by = { PageUp: -FAR, PageDown: FAR }[key];
      return by && Math.max(0, Math.min(says().length - 1, here + by * data().row));
    },
  });
  const watched = ["data", "variant", "chosen", "error"];
  const picture = () => data().pictures?.[model.get("variant")] ?? "";
  const above = `<div class="pick"></div>`;
  const view = shell({ model, el, name: `sb-turn ${name}`, above, watched, picture, mark, onKey: things.onKey });
  let offered = "";

  function turn(name) {
    if (!Array.isArray(data().says)) model.set("chosen", -1); // its things are others
    view.write("variant", name);
  }

  function offer() {
    const names = Object.keys(data().pictures);
    const wanted = JSON.stringify([names, model.get("variant")]);
    if (wanted === offered) return;
    offered = wanted;
    radios(view.root.querySelector(".pick"), data().word, data().word, names, model.get("variant"), turn);
  }

  function mark() {
    offer();
    const shown = things.shown();
    for (const thing of view.stage.querySelectorAll("[data-item]")) {
      thing.classList.toggle("on", Number(thing.dataset.item) === model.get("chosen"));
      thing.classList.toggle("over", Number(thing.dataset.item) === shown);
    }
    view.say.textContent = says()[shown] ?? whole();
  }

  things.listen(view);
  return view.start();
}
