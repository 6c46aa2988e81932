// The path of a byte: all bytes of a warp go from panel to panel, the one pointed at or else the one that is followed is
// marked, with its values on the way.

function render({ model, el }) {
  let svg = null;
  let hovered = -1;
  let bytes = []; // index -> its path with a square in each place
  let marked = null;
  let reached = 0; // the panel up to which all is drawn

  const data = () => model.get("data");
  const count = () => (data().moves?.[0].length ?? 1) - 1;
  const stops = () => [...Array(count()).keys()].slice(1);
  const followed = () => (hovered >= 0 ? hovered : model.get("follow"));

  function draw(step, early = false) {
    reached = step - Number(early);
    const byte = followed();
    marked?.classList.remove("on");
    marked = bytes[byte] ?? null;
    marked?.classList.add("on");
    svg.querySelectorAll(".veil").forEach((veil, panel) => veil.classList.toggle("later", panel <= reached));
    svg.querySelectorAll(".value").forEach((place, panel) => {
      const said = data().values[byte]?.[panel] ?? ["", ""];
      [...place.children].forEach((line, i) => (line.textContent = said[i]));
      place.classList.toggle("now", panel === step);
      place.classList.toggle("dim", panel > reached);
    });
    const way = data().sentences[byte] ?? "Point at a byte, or press the up and down arrow keys, to follow it.";
    return `${data().says[step]}\n${way}`;
  }

  // All 32 lanes at once: every byte goes from its place in one panel to that in the next.
  function travel(step) {
    const layer = svg.querySelector(".flight");
    const made = data().moves.map((places, byte) => {
      const kind = `u p${data().pixels[byte]}${byte === followed() ? " on" : ""}`;
      const node = layer.appendChild(svgNode("rect", { class: kind, width: 11.5, height: 14 }));
      return { node, from: places[step - 1], to: places[step], lag: data().lags[step][byte] };
    });
    const on = made[followed()]?.node;
    if (on) layer.append(on);
    return (t) => {
      for (const { node, from, to, lag } of made) {
        const part = smooth(Math.max(0, Math.min(1, t * 1.35 - 0.35 * lag)));
        const at = from.map((start, i) => (start + (to[i] - start) * part).toFixed(2));
        node.setAttribute("transform", `translate(${at.join(" ")})`);
      }
    };
  }

  const landed = () => svg.querySelector(".flight").replaceChildren();

  function lines(step) {
    const lit = data().code.steps[data().steps[step]];
    return [lit, data().code.accesses.find((access) => lit.includes(access.line)) ?? null];
  }

  // A clicked line lights the panel that it fills.
  function lined(line) {
    const panel = data().steps.findIndex((step) => data().code.steps[step].includes(line));
    svg.querySelectorAll(".frame").forEach((frame, i) => frame.classList.toggle("lined", line && i === panel));
  }

  function rebuild(stage) {
    stage.innerHTML = data().svg ?? "";
    svg = stage.querySelector("svg");
    bytes = [...stage.querySelectorAll("[data-u]")];
    marked = null;
    hovered = -1;
    for (const [x, y, width, height] of data().veils ?? []) {
      const box = { x, y, width, height, rx: 4 };
      svg.append(svgNode("rect", { class: "veil", ...box }), svgNode("rect", { class: "frame", ...box }));
    }
    svg?.append(svgNode("g", { class: "flight" }));
  }

  function keep(byte) {
    model.set("follow", byte);
    model.save_changes();
  }

  // The index of a byte is 16 * image + 8 * pixel + pair of channels.
  function onKey(event) {
    const [here, last] = [model.get("follow"), bytes.length - 1];
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by) keep(here < 0 ? (by > 0 ? 0 : last) : Math.max(0, Math.min(last, here + by * (event.shiftKey ? 16 : 1))));
    else if (event.key === "p") keep(here < 0 ? 0 : here ^ 8);
    else if (event.key === "Escape") keep(-1);
    else return false;
    return true;
  }

  function listen(stage, show) {
    const under = (event) => Number(event.target.closest?.("[data-u]")?.dataset.u ?? -1);
    const hover = (byte) => {
      if (byte === hovered) return;
      hovered = byte;
      show();
    };
    stage.addEventListener("pointerover", (event) => hover(under(event)));
    stage.addEventListener("pointerleave", () => hover(-1));
    stage.addEventListener("click", (event) => under(event) >= 0 && keep(under(event)));
    return [["follow", show]];
  }

  return player({
    model, el, rate: 0.6, name: "sb-stores", label: "Path of a byte; up and down arrow keys follow another channel, with Shift "
      + "another image, p the other pixel", count, stops, draw, travel, landed, code: () => data().code, lines, lined, rebuild,
    listen, onKey,
  });
}

export default { render };
