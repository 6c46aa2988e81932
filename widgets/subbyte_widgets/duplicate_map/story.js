// The story of one input pixel: fetched anew for each of its uses, as im2col does; then fetched once, and each use is an
// address. The text of the view's own file follows this one.

const TELL = 0.9; // seconds of one fetch
const PLAY = "M3 2.5v11L13 8z";
const HOLD = "M3.5 3h3v10h-3zM9.5 3h3v10h-3z";
const ONWARD = "M5.5 3v10L12 8zM3.2 3H5v10H3.2z";

// `map()`: { grids, nodes, pixelOf, lists } of what is drawn; `source()`: the genuine index of the pixel; `svg`; `changed()`:
// told when another cell was told of, `ended()` when the story gives the picture back. Gives the `bar` and `stop()`.
function storyteller({ svg, map, source, changed, ended }) {
  const bar = document.createElement("div");
  bar.className = "story";
  const icon = (path) => `<svg aria-hidden="true" viewBox="0 0 16 16"><path d="${path}"/></svg>`;
  bar.innerHTML = `<button type="button" data-do="play" aria-label="play the story of one pixel">${icon(PLAY)}<span></span></button>
    <button type="button" data-do="step" title="one fetch on" aria-label="one fetch on">${icon(ONWARD)}</button>
    <select aria-label="speed of the story" title="speed">${[0.5, 1, 2, 4].map((s) => `<option value="${s}"${s === 1 ? " selected" : ""}>${s}\u00d7</option>`).join("")}</select>
    <span class="told" aria-live="polite"></span>`;
  for (const control of bar.querySelectorAll("button, select")) control.dataset.lmSuppressShortcuts = "true";
  const [name, told, speed, face] = ["span", ".told", "select", "path"].map((part) => bar.querySelector(part));
  const clock = flightClock();
  const layer = svg.appendChild(shape("g", { class: "flight" }));
  let scenes = null;
  let at = 0; // scenes told
  let playing = false;

  const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];

  function write() {
    const pixel = scenes?.pixel;
    name.textContent = playing ? "pause" : scenes ? "go on" : "one pixel, fetched for each use";
    face.setAttribute("d", playing ? HOLD : PLAY);
    if (!pixel) return void (told.textContent = "");
    const uses = pixel.copies.length;
    const [fetched, addresses] = [Math.min(at, uses), Math.max(0, at - uses - 1)];
    const second = at > uses ? ` Shared: fetched once, ${addresses} of ${uses} uses by address.` : "";
    told.textContent = `Pixel ${pixel.g}. im2col: fetched ${fetched} of ${uses} times.${second}`;
  }

  // A scene: what flies from where to where, the cell that is filled then.
  function begin() {
    const { grids, nodes, pixelOf, lists } = map();
    const pixel = pixelOf.get(source());
    const wide = lists.kernel[0] * lists.kernel[1];
    const here = middle(grids.input.face(pixel.row, pixel.column));
    const slotAt = [Math.floor(pixel.slot / grids.slots.columns), pixel.slot % grids.slots.columns];
    const slot = middle(grids.slots.face(...slotAt));
    const cells = pixel.copies.map((k) => ({ to: middle(grids.lowered.face(Math.floor(k / wide), k % wide)), cell: nodes.lowered[k] }));
    const order = [...pixelOf.keys()].indexOf(pixel.g);
    const face = `c${pixel.colour}`;
    svg.classList.add("telling");
    nodes.input[order].classList.add("told");
    changed();
    scenes = [
      ...cells.map((one) => ({ from: here, ...one, lanes: 32, face })),
      { from: here, to: slot, cell: nodes.slots[order], lanes: 32, face, anew: cells.map(({ cell }) => cell) },
      ...cells.map((one) => ({ from: slot, ...one, lanes: 1, face: "address" })),
    ];
    scenes.pixel = pixel;
    at = 0;
  }

  function next() {
    clock.land();
    if (!scenes) begin();
    if (at === scenes.length) return stop();
    const { from, to, cell, lanes, face, anew = [] } = scenes[at];
    for (const node of anew) node.classList.remove("told");
    at += 1;
    write();
    const [[x0, y0], [x1, y1]] = [from, to];
    const lift = Math.min(y0, y1) - 40;
    const frame = swarms(layer, [{ d: `M${x0} ${y0}C${x0 + (x1 - x0) / 3} ${lift} ${x1 - (x1 - x0) / 3} ${lift} ${x1} ${y1}`, lanes, face }]);
    clock.start(frame, CALM.matches ? 0.001 : TELL / Number(speed.value), () => {
      layer.replaceChildren();
      cell.classList.add("told");
      changed();
      if (!playing) return;
      if (at === scenes.length) playing = false;
      else if (CALM.matches) setTimeout(() => playing && next(), (1000 * TELL) / Number(speed.value));
      else next();
      write();
    });
  }

  // The picture without the story.
  function stop() {
    playing = false;
    clock.land();
    if (!scenes) return;
    scenes = null;
    layer.replaceChildren();
    svg.classList.remove("telling");
    svg.querySelectorAll(".told").forEach((node) => node.classList.remove("told"));
    write();
    ended();
  }

  bar.addEventListener("click", (event) => {
    const act = event.target.closest("[data-do]")?.dataset.do;
    if (act === "step") {
      playing = false;
      next();
      write();
    } else if (act === "play") {
      playing = !playing;
      if (scenes && at === scenes.length && !clock.flying()) stop(), (playing = true);
      if (!playing) clock.hold();
      else if (clock.flying()) clock.go();
      else next();
      write();
    }
  });
  bar.sbFlight = (t) => clock.set(t); // a test sets the time of the flight
  write();
  return { bar, stop };
}
