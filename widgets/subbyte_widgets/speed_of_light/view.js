// The speed of light: shows one of the pictures the kernel drew, with the roofline that all of them share, and marks
// in it the points of the layer and the chosen bar.

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-speed";
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="all">
    <label class="choice">Layer <select data-lm-suppress-shortcuts="true"></select></label>
    <div class="say" aria-live="polite"></div>
    <div class="stage" tabindex="0" role="application" data-lm-suppress-shortcuts="true"
      aria-label="Floors, measured times and speed-ups: up and down choose a bar, left and right a layer"></div></div>`;
  const [problem, all, picker, stage, say] = [".problem", ".all", "select", ".stage", ".say"].map((name) => root.querySelector(name));
  el.append(root);

  let shown = "";
  let items = [];

  function draw() {
    const layers = model.get("layers");
    const names = Object.keys(layers);
    const layer = layers[model.get("layer")];
    problem.hidden = !model.get("error");
    problem.textContent = model.get("error");
    all.hidden = !layer || Boolean(model.get("error"));
    if (all.hidden) return;
    if (names.join() !== [...picker.options].map((option) => option.value).join()) {
      picker.replaceChildren(...names.map((name) => new Option(name)));
    }
    picker.value = model.get("layer");
    const picture = layer.svg.replace("<!--roofline-->", () => model.get("roof"));
    if (picture !== shown) {
      stage.innerHTML = picture;
      shown = picture;
      items = [...stage.querySelectorAll("[data-item]")];
    }
    for (const point of stage.querySelectorAll("[data-spec]")) point.classList.toggle("here", point.dataset.spec === layer.spec);
    const item = model.get("item");
    items.forEach((node, i) => node.classList.toggle("on", i === item));
    say.textContent = items[item]?.querySelector("title").textContent
      ?? "Up and down visit the bars, left and right the layers; a click on a point of the roofline shows its layer.";
  }

  function write(values) {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
    draw();
  }

  function step(by) {
    const names = Object.keys(model.get("layers"));
    const to = names.indexOf(model.get("layer")) + by;
    if (names[to]) write({ layer: names[to] });
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = model.get("item");
    const last = items.length - 1;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") step(event.key === "ArrowLeft" ? -1 : 1);
    else if (event.key === "ArrowDown") write({ item: Math.min(item + 1, last) });
    else if (event.key === "ArrowUp") write({ item: item < 0 ? last : Math.max(item - 1, 0) });
    else if (event.key === "Home") write({ item: 0 });
    else if (event.key === "End") write({ item: last });
    else if (event.key === "Escape") write({ item: -1 });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function onClick(event) {
    const row = event.target.closest?.("[data-item]");
    const point = event.target.closest?.("[data-spec]");
    if (row) write({ item: Number(row.dataset.item) });
    if (!point) return;
    const found = Object.entries(model.get("layers")).find(([, layer]) => layer.spec === point.dataset.spec);
    if (found) write({ layer: found[0] });
  }

  stage.addEventListener("keydown", onKey);
  stage.addEventListener("click", onClick);
  picker.addEventListener("change", () => write({ layer: picker.value }));
  const watched = ["layers", "roof", "layer", "item", "error"];
  for (const name of watched) model.on(`change:${name}`, draw);
  draw();
  return () => {
    for (const name of watched) model.off(`change:${name}`, draw);
  };
}

export default { render };
