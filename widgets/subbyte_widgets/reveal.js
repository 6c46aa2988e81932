// Step-through views whose picture is whole from the beginning: a step shows more of it, a place fills its rows anew.
// `data`: the `svg`; `steps`, a sentence for each, with {names} of what a place says; `stops`; `places`, each with `rows`
// (texts by the name of a row, bits as one text; `a&b` are the bits of both) and what it `say`s; `far`: places from one
// larger part to the next. Or `sets` of such data by name, of which `variant` is shown, and the `word` before their
// buttons. The text of a view's own file follows the player's and this one.

function paint(cell, kind, words) {
  if (kind === "marks") return cell.classList.toggle("on", words === "1");
  if (kind === "states") return cell.setAttribute("class", `s${words}`);
  const label = cell.tagName === "text" ? cell : cell.lastElementChild;
  label.textContent = words;
  if (kind === "bits") cell.setAttribute("class", words ? `b${words}` : "none");
  return undefined;
}

function wordsOf(rows, name) {
  if (name in rows || !name.includes("&")) return rows[name] ?? "";
  const [one, other] = name.split("&").map((part) => rows[part]);
  return [...one].map((bit, i) => (bit === "1" && other[i] === "1" ? "1" : "0")).join("");
}

// What a sentence takes from a place: its words, else those of a row; of a row of bits, how many are set.
function told({ say, rows }, name) {
  const row = say[name] ?? wordsOf(rows, name);
  return typeof row === "string" && !(name in say) ? row.split("1").length - 1 : row;
}

function revealer({ model, el, name, label }) {
  let svg = null;
  let filled = -1;

  const sets = () => model.get("data").sets;
  const all = () => (sets() ? sets()[model.get("variant")] : model.get("data"));
  const count = () => (all().steps?.length ?? 1) - 1;
  const place = () => Math.min(model.get("place"), all().places.length - 1);

  function fill(rows) {
    for (const row of svg.querySelectorAll("[data-row]")) {
      const words = wordsOf(rows, row.dataset.row);
      [...row.children].forEach((cell, i) => paint(cell, row.dataset.kind, words[i] ?? ""));
    }
  }

  function draw(step) {
    const here = all().places[place()];
    if (filled !== place()) fill(here.rows);
    filled = place();
    svg.dataset.step = step;
    for (const group of svg.querySelectorAll("[data-from]")) {
      const from = Number(group.dataset.from);
      group.classList.toggle("later", step < from || step > Number(group.dataset.until ?? step));
      group.classList.toggle("now", step > 0 && step === from);
    }
    return all().steps[step].replace(/\{([\w&]+)\}/g, (_, word) => told(here, word));
  }

  function choose(number) {
    model.set("place", Math.max(0, Math.min(all().places.length - 1, number)));
    model.save_changes();
  }

  function onKey(event) {
    const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (way) choose(place() + way * (event.shiftKey ? all().far : 1));
    return Boolean(way);
  }

  function turn(name) {
    model.set("variant", name);
    model.set("place", sets()[name].start);
    model.save_changes();
  }

  function rebuild(stage, extra) {
    if (sets()) radios(extra, model.get("data").word, model.get("data").word, Object.keys(sets()), model.get("variant"), turn);
    stage.innerHTML = all().svg ?? "";
    svg = stage.querySelector("svg");
    filled = -1;
  }

  function listen(stage, show, renew) {
    stage.addEventListener("click", (event) => {
      const number = event.target.closest?.("[data-go]")?.dataset.go;
      if (number !== undefined) choose(Number(number));
    });
    return [["place", show], ["variant", renew]];
  }

  return player({ model, el, rate: 1, name, label, count, stops: () => all().stops, draw, rebuild, listen, onKey });
}
