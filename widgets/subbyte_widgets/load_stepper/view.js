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

  function draw(step, early = false) {
    const way = here();
    const wanted = new Map();
    const arrived = step - Number(early);
    for (const { set } of way.steps.slice(0, arrived)) for (const setting of set) wanted.set(setting[0], setting);
    for (const id of shown.keys()) if (!wanted.has(id)) paint(id, ...first.get(id));
    for (const [id, setting] of wanted) if (shown.get(id) !== setting) paint(id, ...look(setting));
    shown = wanted;
    for (const node of marked) node.classList.remove("on");
    const now = step ? way.steps[step - 1] : null;
    marked = (now?.on ?? []).map((id) => cells.get(id)).filter(Boolean);
    for (const node of marked) node.classList.add("on");
    svg.querySelector(".links").replaceChildren(...(now?.links ?? []).map((d) => svgNode("path", { d })));
    svg.setAttribute("class", `sb-step-svg sb-load-svg ${now?.kind ?? "start"}`);
    const done = arrived > 0 ? way.steps[arrived - 1].done : [0, 0, 0];
    svg.querySelectorAll("[data-bar]").forEach((bar, i) => bar.setAttribute("width", done[i] * bar.dataset.unit));
    svg.querySelectorAll("[data-count]").forEach((label, i) => (label.textContent = done[i]));
    for (const label of svg.querySelectorAll("[data-saved]")) label.classList.toggle("later", done[label.dataset.saved] < label.dataset.loads);
    lined(0);
    if (!now) return way.start;
    return step === way.steps.length ? way.end : now.say;
  }

  // The data travels in formations of the lanes that move it; a cell is filled when its data arrives.
  function travel(step) {
    const { links, flights } = here().steps[step - 1] ?? { links: [] };
    const ways = links.map((d, i) => ({ d, lanes: flights[i][0], face: flights[i][1], from: flights[i][2], to: flights[i][3] }));
    return ways.length ? swarms(svg.querySelector(".flight"), ways) : null;
  }

  const landed = () => svg.querySelector(".flight").replaceChildren();
  const code = () => here()?.code;

  function lines(step) {
    const { of, accesses } = code();
    return step ? [[here().steps[step - 1].line], accesses[of[step - 1]]] : [[], null];
  }

  // All cells that a line of the CUDA text touches, in all of its steps.
  function lined(line) {
    svg.querySelectorAll(".lined").forEach((node) => node.classList.remove("lined"));
    for (const step of line ? here().steps : []) if (step.line === line) for (const id of step.on) cells.get(id)?.classList.add("lined");
  }

  function rebuild(stage, extra) {
    const ways = Object.keys(model.get("data").ways ?? {});
    if (ways.length > 1) radios(extra, "sharing", "sharing", ways, model.get("way"), choose);
    else extra.replaceChildren();
    stage.innerHTML = here()?.svg ?? "";
    svg = stage.querySelector("svg");
    svg?.append(svgNode("g", { class: "flight" }));
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
  return player({
    model, el, rate: 1, name: "sb-load", label: "Duplicate-aware load", count, stops, draw, travel, landed, code, lines, lined, rebuild,
    listen, onKey: () => false,
  });
}

export default { render };
