// The live duplicate map: puts the picture the kernel drew into the page and follows the selection.
// Everything it knows about the convolution is written on the cells (data-k, data-g, row, column).

const SVG = "http://www.w3.org/2000/svg";
const LINES = 400; // more connecting lines than this only blacken the picture

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2); // hatch patterns of its own: those of a hidden view are not drawn
  const root = document.createElement("div");
  root.className = "sb-map";
  const stage = document.createElement("div");
  const problem = Object.assign(document.createElement("div"), { className: "problem", hidden: true });
  problem.setAttribute("role", "alert");
  const say = Object.assign(document.createElement("div"), { className: "say" });
  say.setAttribute("aria-live", "polite");
  root.append(problem, stage, say);
  el.append(root);

  let svg = null;
  let area = new Map(); // "row,column" -> input cell
  let lowered = new Map(); // "row,column" -> lowered cell
  let byIndex = []; // flat lowered index -> lowered cell
  let byGenuine = new Map(); // genuine index -> input cell
  let slots = new Map(); // genuine index -> its slot of shared memory
  let indexed = false;
  let marked = [];

  const place = (cell) => `${cell.dataset.row},${cell.dataset.col}`;
  const title = (cell) => cell.querySelector("title").textContent;

  // What an entry of the lowered matrix multiplies; a title in each would be half of the picture.
  function meeting({ dataset: { k, row, col } }) {
    const { offsets } = svg.querySelector(".lowered").dataset;
    const { at } = svg.querySelector(`.out[data-p="${row}"]`).dataset;
    return `Entry ${k}: output pixel p${row} = (${at}) meets kernel weight (${Math.floor(col / offsets)}, ${col % offsets}).`;
  }

  // From the attributes, not from the layout: the first drawing happens before the view is on the page.
  function box(cell) {
    const rect = cell.querySelector("rect");
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name)));
    return { x, y, width, height };
  }

  function centre(cell) {
    const { x, y, width, height } = box(cell);
    return [x + width / 2, y + height / 2];
  }

  function shape(name, attributes) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  }

  function draw() {
    const words = model.get("error");
    problem.hidden = !words;
    problem.textContent = words;
    stage.hidden = say.hidden = Boolean(words) || !model.get("svg");
    const focused = svg && svg.contains(document.activeElement) ? document.activeElement.classList[1] : null;
    stage.innerHTML = model.get("svg").replaceAll("sb-hatch-", `sb-hatch-${view}-`);
    svg = stage.querySelector("svg");
    if (!svg) return;
    indexed = false;
    svg.querySelectorAll(".panel").forEach((panel) => panel.addEventListener("keydown", onKey));
    marked = [];
    if (focused) svg.querySelector(`.panel.${focused}`)?.focus();
    mark();
  }

  // Looks the cells up once they are asked for: a slider draws many pictures in which nothing is selected.
  function index() {
    if (indexed) return;
    indexed = true;
    const cells = (panel) => [...svg.querySelectorAll(`.${panel} .cell[data-g]`)];
    area = new Map(cells("input").map((cell) => [place(cell), cell]));
    lowered = new Map(cells("lowered").map((cell) => [place(cell), cell]));
    byIndex = cells("lowered");
    byGenuine = new Map(cells("input").map((cell) => [cell.dataset.g, cell]));
    slots = new Map([...svg.querySelectorAll(".slot")].map((slot) => [slot.dataset.g, slot]));
  }

  function add(nodes, name) {
    for (const node of nodes) {
      node.classList.add(name);
      marked.push([node, name]);
    }
  }

  function mark() {
    if (!svg) return;
    for (const [node, name] of marked) node.classList.remove(name);
    marked = [];
    const links = svg.querySelector(".links");
    const frame = svg.querySelector(".frame");
    links.replaceChildren();
    frame.replaceChildren();
    if (model.get("selected") >= 0) index();
    const here = model.get("selected") >= 0 ? byIndex[model.get("selected")] : null;
    if (!here) {
      say.textContent = "Click a number, or press Tab and the arrow keys: every copy of the same input pixel lights up.";
      return;
    }
    const source = byGenuine.get(here.dataset.g);
    const copies = byIndex.filter((cell) => cell.dataset.g === here.dataset.g);
    const window_ = byIndex.filter((cell) => cell.dataset.row === here.dataset.row);
    add([svg], "chosen");
    add([source, slots.get(here.dataset.g), ...copies], "on");
    add([here], "here");
    add(window_.map((cell) => byGenuine.get(cell.dataset.g)), "tap");
    const output = (cell) => svg.querySelector(`.out[data-p="${cell.dataset.row}"]`);
    add(copies.map(output), "uses");
    add([output(here)], "on");
    frame.append(outline(window_));
    const [x0, y0] = centre(source);
    copies.slice(0, LINES).forEach((cell) => {
      const [x1, y1] = centre(cell);
      const d = `M${x0} ${y0}C${x0 + 90} ${y0} ${x1 - 90} ${y1} ${x1} ${y1}`;
      const kind = cell.dataset.k === cell.dataset.g ? "gen" : "dup";
      links.append(shape("path", { d, class: kind, "data-k": cell.dataset.k }));
    });
    say.textContent = `${meeting(here)} ${title(source)}`;
  }

  // The dashed frame around the input pixels that the selected output pixel reads.
  function outline(cells) {
    const boxes = cells.map((cell) => box(byGenuine.get(cell.dataset.g)));
    const x = Math.min(...boxes.map((b) => b.x)) - 2;
    const y = Math.min(...boxes.map((b) => b.y)) - 2;
    const width = Math.max(...boxes.map((b) => b.x + b.width)) + 2 - x;
    const height = Math.max(...boxes.map((b) => b.y + b.height)) + 2 - y;
    return shape("rect", { class: "window", x, y, width, height, rx: 5 });
  }

  function choose(cell) {
    model.set("selected", Number(cell.dataset.k ?? cell.dataset.g));
    model.save_changes();
  }

  function onClick(event) {
    const cell = event.target.closest(".cell[data-g], .slot");
    if (!cell) return;
    (cell.closest(".panel") ?? svg.querySelector(".panel.input")).focus();
    choose(cell);
  }

  // The next cell in a direction; positions that no output pixel reads are stepped over.
  function step(cells, from, rows, columns) {
    let row = Number(from.dataset.row);
    let column = Number(from.dataset.col);
    for (let tries = 0; tries < 64; tries += 1) {
      row += rows;
      column += columns;
      const next = cells.get(`${row},${column}`);
      if (next) return next;
      if (row < 0 || column < 0) return from;
    }
    return from;
  }

  function onKey(event) {
    index();
    const cells = event.currentTarget.classList.contains("input") ? area : lowered;
    const here = byIndex[model.get("selected")];
    const first = cells.values().next().value;
    const from = here ? (cells === area ? byGenuine.get(here.dataset.g) : here) : null;
    const row = [...cells.values()].filter((cell) => from && cell.dataset.row === from.dataset.row);
    const moves = {
      ArrowLeft: () => step(cells, from, 0, -1),
      ArrowRight: () => step(cells, from, 0, 1),
      ArrowUp: () => step(cells, from, -1, 0),
      ArrowDown: () => step(cells, from, 1, 0),
      Home: () => row[0],
      End: () => row[row.length - 1],
    };
    if (event.key === "Escape") {
      model.set("selected", -1);
      model.save_changes();
    } else if (moves[event.key]) {
      choose(from ? moves[event.key]() : first);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  stage.addEventListener("click", onClick);
  stage.addEventListener("pointerover", (event) => {
    const entry = event.target.closest(".lowered .cell");
    stage.title = entry ? meeting(entry) : "";
  });
  const redraw = () => draw();
  const reselect = () => mark();
  model.on("change:svg", redraw);
  model.on("change:error", redraw);
  model.on("change:selected", reselect);
  draw();
  return () => {
    model.off("change:svg", redraw);
    model.off("change:error", redraw);
    model.off("change:selected", reselect);
  };
}

export default { render };
