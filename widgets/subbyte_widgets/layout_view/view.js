// The layout view: shows one of the pictures the kernel drew and marks a lane in it.
// Every piece of memory carries the lanes that ask for it; the sentence about a lane is the title of its square.

function render({ model, el }) {
  let svg = null;
  let lanes = []; // lane -> its square and its pieces
  let marked = [];
  const numbers = numbered({
    at, count: () => lanes.length, row: 8, chosen: () => model.get("lane"), mark,
    choose: (lane, clicked) => view.write("lane", clicked && lane === model.get("lane") ? -1 : lane),
  });
  const view = shell({
    model, el, name: "sb-access", watched: ["pictures", "kinds", "data_layout", "kind", "lane", "error"], picture, index, mark,
    onKey: numbers.onKey,
    above: `<div class="choices kinds" role="radiogroup" aria-label="Access"></div>
      <div class="choices layouts" role="radiogroup" aria-label="Layout"></div>`,
  });
  const { root, say } = view;

  function picture() {
    const pictures = model.get("pictures");
    const kind = model.get("kind");
    buttons(root.querySelector(".kinds"), "kind", "Access", model.get("kinds"));
    buttons(root.querySelector(".layouts"), "data_layout", "Layout", model.get("layouts"));
    return pictures[kind] ?? pictures[`${kind}|${model.get("data_layout")}`];
  }

  function index(drawn) {
    svg = drawn;
    lanes = [...svg.querySelectorAll(".lane")].map((square) => [square]);
    for (const piece of svg.querySelectorAll(".piece")) {
      for (const lane of piece.dataset.lanes.split(" ")) lanes[Number(lane)].push(piece);
    }
    marked = [];
  }

  function buttons(row, trait, title, names) {
    if (row.children.length !== Object.keys(names).length + 1) {
      row.replaceChildren(Object.assign(document.createElement("span"), { textContent: title }));
      for (const [value, name] of Object.entries(names)) {
        const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
        button.setAttribute("role", "radio");
        button.dataset.value = value;
        button.dataset.lmSuppressShortcuts = "true";
        button.addEventListener("click", () => view.write(trait, value));
        row.append(button);
      }
    }
    for (const button of row.querySelectorAll("button")) {
      button.setAttribute("aria-checked", String(button.dataset.value === model.get(trait)));
    }
  }

  function mark() {
    for (const node of marked) node.classList.remove("on");
    marked = lanes[numbers.shown()] ?? [];
    for (const node of marked) node.classList.add("on");
    svg.classList.toggle("chosen", marked.length > 0);
    say.textContent = marked.length ? marked[0].querySelector("title").textContent
      : "Point at a lane or at a piece of memory, or press Tab and the arrow keys. Grey: moved along, no lane asked for it.";
  }

  function at(event) {
    const node = event.target.closest?.(".lane, .piece");
    return node ? Number(node.dataset.lane ?? node.dataset.lanes.split(" ")[0]) : -1;
  }

  numbers.listen(view);
  return view.start();
}

export default { render };
