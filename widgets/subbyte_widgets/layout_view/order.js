// Two layouts as orders: a warp's access goes over both strips, lane by lane, while its sectors are counted; a datum that
// is pointed at or chosen is marked in all pictures. What lies where, the kernel has said.

function render({ model, el }) {
  let svg = null;
  let hovered = -1;

  const data = () => model.get("data");
  const count = () => data().lanes?.length ?? 0;
  const stops = () => [8, 16, 24];
  const marked = () => (hovered >= 0 ? hovered : model.get("datum"));

  function draw(step, early = false) {
    const arrived = step - Number(early);
    const asked = new Set(data().lanes.slice(0, step));
    const now = step ? data().lanes[step - 1] : -1;
    for (const node of svg.querySelectorAll("[data-d]")) {
      const { d, lane } = node.dataset;
      const got = lane === undefined ? asked.has(Number(d)) : Number(lane) < arrived;
      node.sbKind ??= node.getAttribute("class");
      const states = [node.sbKind, got && "asked", Number(d) === marked() && "on", Number(d) === now && "now"];
      node.setAttribute("class", states.filter(Boolean).join(" "));
    }
    for (const layout of data().layouts) {
      const hit = new Set([...asked].map((datum) => data().sectors[layout][datum]));
      svg.querySelectorAll(`[data-sector^="${layout} "]`).forEach((node, i) => node.classList.toggle("moved", hit.has(i)));
      svg.querySelector(`[data-moved="${layout}"]`).textContent = data().counts[layout][step];
    }
    const said = data().says[marked()] ?? "Point at a box, or press the up and down arrow keys: the same datum lights up in the tensor and in both orders.";
    const access = step === 0 ? `One load of a warp, 32 lanes of 16 bytes: play it.`
      : step === count() ? "All 32 lanes at once are one instruction; they were counted one after the other."
        : `Lane ${step - 1} asks for its 16 bytes; memory gives whole sectors of 32.`;
    return `${access}\n${said}`;
  }

  // A lane's datum goes from memory to the lane, in both orders at once.
  function travel(step) {
    const ways = data().layouts.map((layout) => {
      const [x0, y0] = data().places[layout][data().lanes[step - 1]];
      const [x1, y1] = data().places[`${layout} lanes`][step - 1];
      return { d: `M${x0} ${y0}C${x0} ${y0 + 30} ${x1} ${y1 - 30} ${x1} ${y1}`, lanes: 4, face: "words" };
    });
    return swarms(svg.querySelector(".flight"), ways);
  }

  const landed = () => svg.querySelector(".flight").replaceChildren();

  function rebuild(stage) {
    stage.innerHTML = data().svg ?? "";
    svg = stage.querySelector("svg");
    svg?.append(svgNode("g", { class: "flight" }));
    hovered = -1;
  }

  function keep(datum) {
    model.set("datum", datum);
    model.save_changes();
  }

  function onKey(event) {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const here = model.get("datum");
    const last = data().says.length - 1;
    if (by) keep(here < 0 ? (by > 0 ? 0 : last) : Math.max(0, Math.min(last, here + by * (event.shiftKey ? 8 : 1))));
    else if (event.key === "Escape") keep(-1);
    else return false;
    return true;
  }

  function listen(stage, show) {
    const under = (event) => Number(event.target.closest?.("[data-d]")?.dataset.d ?? -1);
    const hover = (datum) => {
      if (datum === hovered) return;
      hovered = datum;
      show();
    };
    stage.addEventListener("pointerover", (event) => hover(under(event)));
    stage.addEventListener("pointerleave", () => hover(-1));
    stage.addEventListener("click", (event) => under(event) >= 0 && keep(under(event)));
    return [["datum", show]];
  }

  return player({
    model, el, rate: 4, name: "sb-order", label: "Layouts as orders; up and down arrow keys choose a datum, with Shift another image",
    word: "lane", count, stops, draw, travel, landed, rebuild, listen, onKey,
  });
}

export default { render };
