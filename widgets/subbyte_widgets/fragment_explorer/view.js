// The fragment explorer: shows one of the pictures the kernel drew and marks an element, its register and its lane.
// What lies where is written on the registers (data-w: operand, lane, register, first row and column, elements).
// parts.js is before it.

const DETAIL = { x: 18, y: 156, width: 400 };

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "sb-frag";
  root.innerHTML = `<div class="bar"><div class="choices" role="radiogroup" aria-label="Instruction"></div>
    <div class="warps" role="radiogroup" aria-label="Warp whose rows are drawn" hidden></div></div><div class="problem" role="alert" hidden></div><div class="say" aria-live="polite"></div><div class="stage"></div>`;
  const [choices, warpsOf, problem, stage, say] = [".choices", ".warps", ".problem", ".stage", ".say"].map((name) => root.querySelector(name));
  el.append(root);

  let svg = null; // holds the pictures of the matrices and of the registers
  let shown = null; // the instruction whose picture is in the page
  let held = new Map(); // "operand,row,column" -> [word, place in the word]
  let words = new Map(); // "operand,lane,register" -> word
  let cells = new Map(); // the same -> its cell in the register panel
  let turned = 0; // the warp of a warpgroup whose rows are drawn
  let lanes = {}; // lane (of its warp) -> everything that belongs to it; "p" and a number: a piece of shared memory
  let rows = []; // [operand, register] of the rows of the register panel
  let marked = [];

  const number = (node, name) => Number(node.dataset[name]);
  const key = (...parts) => parts.join(",");
  const warps = () => Number(svg.dataset.warps ?? 1);
  const piece = (operand) => operand === "b" && warps() > 1; // B of a warpgroup lies in shared memory
  const holder = (operand, lane) => (piece(operand) ? `p${lane}` : lane % 32);
  const down = (operand) => (piece(operand) ? 0 : 16 * turned); // rows above those that are drawn

  function about(node) {
    const [operand, ...numbers] = node.dataset.w.split(" ");
    const [lane, register, row, column, count] = numbers.map(Number);
    return { node, operand, lane, register, row, column, count };
  }

  function place(word, i) {
    const across = word.operand !== "b";
    return [word.row + (across ? 0 : i), word.column + (across ? i : 0)];
  }

  function draw() {
    const pictures = model.get("pictures");
    const name = model.get("instruction");
    [problem.hidden, problem.textContent] = [!model.get("error"), model.get("error")];
    stage.hidden = say.hidden = !problem.hidden || !(name in pictures); // an older picture would be taken for what was asked for
    if (stage.hidden) return buttons(Object.keys(pictures));
    if (name !== shown) {
      const panel = svg?.contains(document.activeElement) ? document.activeElement.classList[1] : null;
      stage.innerHTML = pictures[name];
      svg = stage.firstElementChild;
      shown = name;
      turned = 0;
      index();
      buttons(Object.keys(pictures));
      if (panel) svg.querySelector(`.panel.${panel}`).focus();
    }
    mark();
  }

  // The picture holds the rectangles of one warp; the other warps hold the rows around them in the same way.
  function index() {
    [held, words, cells, lanes, rows, marked] = [new Map(), new Map(), new Map(), {}, [], []];
    for (const node of svg.querySelectorAll("[data-w]")) {
      const one = about(node);
      (lanes[holder(one.operand, one.lane)] ??= []).push(node);
      if (node.classList.contains("q")) {
        cells.set(key(one.operand, one.lane, one.register), node);
        if (one.lane === 0) rows.push([one.operand, one.register]);
        continue;
      }
      for (let warp = 0; warp < (piece(one.operand) ? 1 : warps()); warp += 1) {
        const word = { ...one, lane: one.lane + 32 * warp, row: one.row + 16 * warp };
        words.set(key(word.operand, word.lane, word.register), word);
        for (let i = 0; i < word.count; i += 1) held.set(key(word.operand, ...place(word, i)), [word, i]);
      }
    }
    for (const panel of svg.querySelectorAll(".panel")) panel.addEventListener("keydown", onKey);
    warpsOf.hidden = warps() === 1;
    if (!warpsOf.hidden && !warpsOf.children.length) {
      warpsOf.append(...[...Array(warps()).keys()].map((warp) => radio(`warp ${warp}`, () => toWarp(warp))));
    }
  }

  // Draw the rows of another warp: the numbers of rows and lanes change, the rectangles stay.
  function turn(warp) {
    const by = warp - turned;
    turned = warp;
    for (const [i, button] of [...warpsOf.children].entries()) button.setAttribute("aria-checked", i === warp);
    for (const panel of by ? svg.querySelectorAll(".panel.a, .panel.c") : []) {
      for (const { dataset } of panel.querySelectorAll(".w")) {
        const [operand, lane, register, row, ...rest] = dataset.w.split(" ");
        dataset.w = [operand, Number(lane) + 32 * by, register, Number(row) + 16 * by, ...rest].join(" ");
      }
      for (const tick of panel.querySelectorAll(".row")) tick.textContent = Number(tick.textContent) + 16 * by;
      panel.querySelector(".rows").textContent = `warp ${warp}: rows ${16 * warp} to ${16 * warp + 15}`;
    }
  }

  function toWarp(warp) {
    const operand = model.get("operand");
    const row = piece(operand) ? 0 : model.get("row") % 16;
    write({ operand: piece(operand) ? "a" : operand, row: row + 16 * warp, column: piece(operand) ? 0 : model.get("column") });
  }

  function buttons(names) {
    if (choices.children.length !== names.length) {
      choices.replaceChildren(...names.map((name) => radio(name, () => write({ instruction: name, operand: "a", row: 0, column: 0 }))));
    }
    for (const button of choices.children) button.setAttribute("aria-checked", button.textContent === model.get("instruction"));
  }

  function add(nodes, name) {
    for (const node of nodes) {
      node.classList.add(name);
      marked.push([node, name]);
    }
  }

  function mark() {
    for (const [node, name] of marked) node.classList.remove(name);
    marked = [];
    const at = [model.get("operand"), model.get("row"), model.get("column")];
    const found = held.get(key(...at));
    svg.classList.toggle("chosen", Boolean(found));
    for (const frame of svg.querySelectorAll(".at")) frame.setAttribute("width", 0);
    if (!found) return;
    const [word, i] = found;
    const { lane, register, operand } = word, warp = Math.floor(lane / 32), within = lane % 32;
    if (warps() > 1 && !piece(operand)) turn(warp);
    add(lanes[holder(operand, lane)], "mine");
    add([word.node], "here");
    if (!piece(operand)) add([cells.get(key(operand, within, register))], "here");
    if (warps() > 1 && !piece(operand)) svg.querySelector(".warp").textContent = `Registers of warp ${warp}`;
    frame(operand, at[1], at[2]);
    detail(word, i);
    if (piece(operand)) {
      say.textContent = `B[${at[1]},${at[2]}] is element ${i} of bytes ${16 * lane} to ${16 * lane + 15} of shared memory, without swizzle from the operand's start.`;
      return;
    }
    const whose = warps() > 1 ? `lane ${within} of warp ${warp}` : `lane ${lane}`;
    const bits = 32 / word.count;
    const last = i * bits + bits - 1;
    const where = bits === 32 ? "" : bits === 1 ? ` (bit ${i})` : ` (bits ${i * bits} to ${last})`;
    const also = ["a", "b", "c"].filter((p) => !piece(p)).map((p) => `${p.toUpperCase()} ${count(p, lane)}`).join(", ");
    say.textContent = `${operand.toUpperCase()}[${at[1]},${at[2]}] is element ${i} of register ${operand}${register} in ${whose}${where}. `
      + `Registers ${whose} holds: ${also}.`;
  }

  const count = (p, lane) => rows.filter(([name, register]) => name === p && words.has(key(p, lane, register))).length;

  function frame(operand, row, column) {
    const panel = svg.querySelector(`.panel.${operand}`);
    const [x, y, w, h] = ["x", "y", "w", "h"].map((name) => number(panel, name));
    const box = { x: x + column * w - 1, y: y + (row - down(operand)) * h - 1, width: w + 2, height: h + 2, rx: 2 };
    for (const [name, value] of Object.entries(box)) panel.querySelector(".at").setAttribute(name, value);
  }

  // The 32 bits of the register that holds the selected element, lowest bits to the right.
  function detail(word, chosen) {
    const { lane, register, operand, count: n } = word;
    const wide = DETAIL.width / n;
    const whose = warps() > 1 ? `Warp ${Math.floor(lane / 32)}, lane ${lane % 32}` : `Lane ${lane}`;
    const [title, high, low] = piece(operand) ? [`Bytes ${16 * lane} to ${16 * lane + 15} of shared memory`, "byte 15", "byte 0"]
      : [`${whose}, register ${operand}${register}`, "bit 31", "bit 0"];
    const parts = [label(DETAIL.x, DETAIL.y - 22, title, "h"),
      label(DETAIL.x, DETAIL.y - 5, high, "n"), label(DETAIL.x + DETAIL.width, DETAIL.y - 5, low, "n e")];
    for (let i = 0; i < n; i += 1) {
      const x = DETAIL.x + DETAIL.width - (i + 1) * wide;
      const here = i === chosen ? " here" : "";
      parts.push(node("rect", { x: x + 1, y: DETAIL.y, width: wide - 2, height: 26, rx: 2, class: `bits k${register}${here}` }));
      const [row, column] = place(word, i);
      const name = wide > 64 ? `${operand.toUpperCase()}[${row},${column}]` : `${row},${column}`;
      if (wide >= 34) parts.push(label(x + wide / 2, DETAIL.y + 17, name, `m b${here}`));
    }
    svg.querySelector(".detail").replaceChildren(...parts);
  }

  function write(values) {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
    draw();
  }

  function choose(operand, row, column) {
    if (held.has(key(operand, row, column))) write({ operand, row, column });
  }

  function chooseWord(operand, lane, register, i = 0) {
    const word = words.get(key(operand, lane, register));
    if (word) choose(operand, ...place(word, Math.min(i, word.count - 1)));
  }

  function onClick(event) {
    const target = event.target.closest("[data-w]");
    if (!target) return;
    target.closest(".panel").focus();
    const word = about(target);
    if (!word.count) {
      chooseWord(word.operand, word.lane + 32 * turned, word.register);
      return;
    }
    const box = target.querySelector("path").getBoundingClientRect();
    const across = word.operand !== "b";
    const share = across ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height;
    choose(word.operand, ...place(word, Math.min(word.count - 1, Math.max(0, Math.floor(share * word.count)))));
  }

  function onKey(event) {
    const panel = event.currentTarget;
    const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const here = [model.get("operand"), model.get("row"), model.get("column")];
    const [below, right] = arrows[event.key] ?? [0, 0];
    if (panel.classList.contains("lanes")) {
      const found = held.get(key(...here));
      if (!found || piece(found[0].operand) || !(event.key in arrows)) return;
      const [one, i] = found;
      const row = rows.findIndex(([operand, register]) => operand === one.operand && register === one.register) + right;
      if (rows[row]) chooseWord(rows[row][0], one.lane + below, rows[row][1], i);
    } else {
      const operand = panel.classList[1];
      const [row, column] = here[0] === operand ? here.slice(1) : [0, 0];
      if (event.key === "Home" || event.key === "End") choose(operand, row, event.key === "Home" ? 0 : number(panel, "columns") - 1);
      else if (!(event.key in arrows)) return;
      else if (here[0] === operand) choose(operand, row + below, column + right);
      else choose(operand, 0, 0);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  stage.addEventListener("click", onClick);
  const watched = ["pictures", "instruction", "operand", "row", "column", "error"];
  for (const name of watched) model.on(`change:${name}`, draw);
  draw();
  return () => {
    for (const name of watched) model.off(`change:${name}`, draw);
  };
}

export default { render };
