// Views of several pictures, one of them shown: a slider and the arrow keys turn to others. `data`: for each picture the
// `svg`, what the slider says (`label`) and the sentence below (`say`). The text of a view's own file follows the shell's
// and this one.

const FAR = 5; // up and down, Page Up and Page Down

function turner({ model, el, name, word }) {
  const above = `<div class="turn"><label>${word} <input type="range" min="0" step="1" data-lm-suppress-shortcuts="true"
    aria-label="${word}"></label><output></output></div>`;
  const all = () => model.get("data");
  const chosen = () => Math.min(model.get("chosen"), all().length - 1);
  const picture = () => all()[chosen()]?.svg ?? "";
  const view = shell({ model, el, name: `sb-turn ${name}`, above, watched: ["data", "chosen", "error"], picture, mark, onKey });
  const [range, output] = ["input", "output"].map((tag) => view.root.querySelector(tag));

  function mark() {
    const { label, say } = all()[chosen()];
    range.max = all().length - 1;
    range.value = chosen();
    range.setAttribute("aria-valuetext", label);
    output.textContent = label;
    view.say.textContent = say;
  }

  const turn = (number) => view.write("chosen", Math.max(0, Math.min(all().length - 1, number)));

  function onKey(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -FAR, ArrowDown: FAR, PageUp: -FAR, PageDown: FAR }[event.key];
    const to = { Home: 0, End: all().length - 1 }[event.key] ?? (by && chosen() + by);
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    turn(to);
    event.preventDefault();
    event.stopPropagation();
  }

  view.stage.addEventListener("click", (event) => {
    const number = event.target.closest?.("[data-go]")?.dataset.go;
    if (number !== undefined) turn(Number(number));
    view.panel()?.focus();
  });
  range.addEventListener("input", () => turn(Number(range.value)));
  return view.start();
}
