// The live load stepper: applies the lists of cells that each step sets and marks. What a cell is, the kernel has said.

const NUMBER = "plain";

function render({ model, el }) {
  let svg = null;
  let cells = new Map(); // data-id -> group
  let first = new Map(); // data-id -> [face, ink, words] before the first step
  let shown = new Map(); // data-id -> the setting that is drawn
  let marked = [];

  const here = () => model.get("data").ways?.[model.get("way")];
  const count = () => here()?.steps.length ?? 0;
  const stops = () => here().stops;

  function paint(id, face, ink, words) {
    const [rect, label] = cells.get(id).children;
    rect.setAttribute("class", `face ${face}`);
    label.setAttribute("class", ink);
    label.textContent = words;
  }

  function look([, colour, words]) {
    if (colour === -1) return ["zero", "", words];
    return colour === -2 ? [NUMBER, "", words] : [`c${colour}`, model.get("data").ink[colour], words];
  }

  function draw(step) {
    const way = here();
    const wanted = new Map();
    for (const { set } of way.steps.slice(0, step)) for (const setting of set) wanted.set(setting[0], setting);
    for (const id of shown.keys()) if (!wanted.has(id)) paint(id, ...first.get(id));
    for (const [id, setting] of wanted) if (shown.get(id) !== setting) paint(id, ...look(setting));
    shown = wanted;
    for (const node of marked) node.classList.remove("on");
    const now = step ? way.steps[step - 1] : null;
    marked = (now?.on ?? []).map((id) => cells.get(id)).filter(Boolean);
    for (const node of marked) node.classList.add("on");
    svg.querySelector(".links").replaceChildren(...(now?.links ?? []).map((d) => svgNode("path", { d })));
    svg.setAttribute("class", `sb-step-svg sb-load-svg ${now?.kind ?? "start"}`);
    svg.querySelectorAll("[data-bar]").forEach((bar, i) => bar.setAttribute("width", (now?.done[i] ?? 0) * bar.dataset.unit));
    svg.querySelectorAll("[data-count]").forEach((label, i) => (label.textContent = now?.done[i] ?? 0));
    if (!now) return way.start;
    return step === way.steps.length ? way.end : now.say;
  }

  function rebuild(stage, extra) {
    const ways = Object.keys(model.get("data").ways ?? {});
    if (ways.length > 1) radios(extra, "sharing", "sharing", ways, model.get("way"), choose);
    else extra.replaceChildren();
    stage.innerHTML = here()?.svg ?? "";
    svg = stage.querySelector("svg");
    cells = new Map([...stage.querySelectorAll("[data-id]")].map((cell) => [cell.dataset.id, cell]));
    const before = ([rect, label]) => [rect.getAttribute("class").slice(5), label.getAttribute("class"), label.textContent];
    first = new Map([...cells].map(([id, cell]) => [id, before(cell.children)]));
    shown = new Map();
    marked = [];
  }

  // The same moment with another way of sharing: as many multiplications done, in the same phase.
  function choose(way) {
    const step = model.get("step");
    const now = step ? here().steps[step - 1] : null;
    const target = model.get("data").ways[way].steps;
    let moment = step === count() ? target.length : 0;
    if (now && !moment) {
      const done = now.kind === "copy" ? 0 : now.done[2];
      moment = target.findIndex((other) => other.kind === now.kind && other.done[2] === done) + 1;
      moment ||= target.findLastIndex((other) => other.done[2] <= done) + 1;
    }
    model.set("way", way);
    model.set("step", moment);
    model.save_changes();
  }

  const listen = (stage, show, renew) => [["way", renew]];
  return player({ model, el, rate: 2, name: "sb-load", label: "Duplicate-aware load", count, stops, draw, rebuild, listen, onKey: () => false });
}

export default { render };
