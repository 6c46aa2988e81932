// The windows of the taps: marks a tap in the picture and puts what the kernel drew of it below.

function render({ model, el }) {
  const watched = ["svg", "details", "tap", "error", "alternative"];
  const view = shell({ model, el, name: "sb-taps", watched, picture: () => model.get("svg"), mark, onKey });
  const { stage, panel } = view;

  function mark() {
    panel().querySelector(".detail")?.remove();
    for (const tap of panel().querySelectorAll(".tap")) tap.classList.toggle("on", Number(tap.dataset.tap) === model.get("tap"));
    const drawing = model.get("details")[model.get("tap")];
    if (drawing) panel().insertAdjacentHTML("beforeend", drawing);
    panel().setAttribute("aria-description", model.get("alternative"));
  }

  function choose(tap) {
    if (tap === model.get("tap") || !model.get("details")[tap]) return;
    view.write("tap", tap);
  }

  function onPoint(event) {
    const tap = event.target.closest?.(".tap");
    if (tap) choose(Number(tap.dataset.tap));
    if (tap && event.type === "click") panel().focus();
  }

  // Up and down go to the tap above or below: the one nearest in x among those of the next kernel row.
  function onKey(event) {
    const taps = [...stage.querySelectorAll(".tap")];
    const boxes = taps.map((tap) => tap.querySelector(".ring").getBBox());
    const here = model.get("tap");
    const next = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: taps.length - 1 }[event.key];
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (next === undefined && !down) return;
    if (down) {
      const beyond = boxes.map((box, i) => [i, (box.y - boxes[here].y) * down, Math.abs(box.x - boxes[here].x)]);
      const [found] = beyond.filter(([, far]) => far > 1).sort((a, b) => a[1] - b[1] || a[2] - b[2]);
      if (found) choose(found[0]);
    } else if (taps[next]) choose(next);
    event.preventDefault();
    event.stopPropagation();
  }

  stage.addEventListener("pointerover", onPoint);
  stage.addEventListener("click", onPoint);
  return view.start();
}

export default { render };
