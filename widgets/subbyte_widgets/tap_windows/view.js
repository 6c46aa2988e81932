// The windows of the taps: from tap to tap the window goes over the rows of shared memory, and its pixels into the matrix
// instruction. What a tap is, the kernel has said.

function render({ model, el }) {
  let svg = null;

  const data = () => model.get("data");
  const count = () => (data().details?.length ?? 1) - 1;
  const stops = () => data().ways.map((way, i) => (i && way.row !== data().ways[i - 1].row ? i : 0)).filter(Boolean);

  function draw(tap) {
    const panel = svg.querySelector(".panel");
    panel.querySelector(".detail")?.remove();
    panel.insertAdjacentHTML("beforeend", data().details[tap]);
    for (const one of svg.querySelectorAll(".tap")) one.classList.toggle("on", Number(one.dataset.tap) === tap);
    return data().says[tap];
  }

  // First the window comes from where the last tap had it, or the pixels come out of global memory; then they are read.
  function travel(tap) {
    const [before, way] = [data().ways[tap - 1], data().ways[tap]];
    const layer = svg.querySelector(".flight");
    const windows = [...svg.querySelectorAll(".detail .window")];
    const by = before.row === way.row ? before.x - way.x : 0;
    const pixels = { lanes: data().width, face: "pixels" };
    const fly = swarms(layer, [
      ...(way.stored ? [{ ...pixels, d: way.stored, from: 0, to: 0.45 }] : []), { ...pixels, d: way.read, from: 0.45, to: 1 },
    ]);
    return (t) => {
      fly(t);
      const left = by * (1 - smooth(Math.min(1, t / 0.4)));
      for (const node of windows) node.setAttribute("transform", `translate(${left.toFixed(2)} 0)`);
    };
  }

  function landed() {
    svg.querySelector(".flight").replaceChildren();
    for (const node of svg.querySelectorAll(".detail .window")) node.removeAttribute("transform");
  }

  function lines(tap) {
    const lit = data().code.steps[data().taps[tap]] ?? [];
    return [lit, data().code.accesses.find((access) => lit.includes(access.line)) ?? null];
  }

  // A clicked line lights the tap that it multiplies, or all where it stores pixels.
  function lined(line) {
    const { steps } = data().code;
    for (const one of svg.querySelectorAll(".tap")) {
      const mine = steps[data().taps[one.dataset.tap]] ?? [];
      one.querySelector(".ring").classList.toggle("lined", line > 0 && (mine.includes(line) || steps.stored.includes(line)));
    }
  }

  function rebuild(stage) {
    stage.innerHTML = data().svg ?? "";
    svg = stage.querySelector("svg");
    svg?.append(svgNode("g", { class: "flight" }));
  }

  function choose(tap) {
    model.set("tap", tap);
    model.save_changes();
  }

  // Up and down go to the tap above or below: the one nearest in x among those of the next kernel row.
  function onKey(event) {
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!down) return false;
    const boxes = [...svg.querySelectorAll(".tap .ring")].map((ring) => ring.getBBox());
    const here = boxes[model.get("tap")];
    const beyond = boxes.map((box, i) => [i, (box.y - here.y) * down, Math.abs(box.x - here.x)]);
    const [found] = beyond.filter(([, far]) => far > 1).sort((a, b) => a[1] - b[1] || a[2] - b[2]);
    if (found) choose(found[0]);
    return true;
  }

  function listen(stage) {
    stage.addEventListener("click", (event) => {
      const tap = event.target.closest?.(".tap")?.dataset.tap;
      if (tap !== undefined) choose(Number(tap));
    });
    return [];
  }

  return player({
    model, el, rate: 0.7, name: "sb-taps", label: "Taps; up and down arrow keys go to other kernel rows", trait: "tap", word: "tap",
    count, stops, draw, travel, landed, code: () => data().code, lines, lined, rebuild, listen, onKey,
  });
}

export default { render };
