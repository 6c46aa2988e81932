// The kernel reader: four texts in tabs, a search, the rows that differ, a map of where the instructions lie.
// What a line is and what differs comes with the text; only the rows in sight are in the page. lines.js is before it.

const ROW = 18;
const AROUND = 3; // rows shown on each side of a change
const COLOURS = { M: "#0072b2", C: "#e69f00", L: "#56b4e9", S: "#d55e00", X: "#009e73", B: "#cc79a7" };
const SIGNS = { " ": "", "-": "\u2212", "+": "+" };

function render({ model, el }) {
  const root = node("div", "sb-reader");
  const quiet = 'data-lm-suppress-shortcuts="true"';
  root.innerHTML = `<div class="problem" role="alert" hidden></div><div class="all"><div class="head"></div>
    <div class="bar"><span class="tabs" role="tablist" aria-label="Text"></span>
      <input type="search" placeholder="search (/)" aria-label="search" ${quiet}><span class="found"></span>
      <label class="only"><input type="checkbox" ${quiet}>only changes</label></div>
    <div class="bar legend" aria-label="Instruction classes; a click goes to the next one"></div>
    <div class="say" aria-live="polite"></div><div class="beside"><div class="frame"><div class="pane sideways" tabindex="0" role="application" ${quiet} aria-label="The text: arrow keys visit
      lines, 1 to 4 change the text, slash searches, n goes to the next find, d to the next difference"><div></div></div>
      <canvas aria-hidden="true"></canvas></div>
    <div class="facts"></div></div></div>`;
  const [problem, all, head, tabs, search, found, only, legend, pane, sizer, canvas, say, facts] = [".problem", ".all",
    ".head", ".tabs", "input[type=search]", ".found", ".only", ".legend", ".pane", ".pane > div", "canvas", ".say",
    ".facts"].map((name) => root.querySelector(name));
  el.append(root);

  let rows = []; // [sign, class, text, number in its kernel]
  let shown = []; // rows in the list, by place; -1 is a gap
  let [hits, stale, frame] = [[], false, 0];

  function load() {
    const counts = { "-": 0, "+": 0 };
    rows = (model.get("texts")[model.get("language")] ?? "").split("\n").map((line) => {
      const sign = line[0];
      if (sign !== "+") counts["-"] += 1;
      if (sign !== "-") counts["+"] += 1;
      return [sign, line[1], line.slice(2), sign === "+" ? counts["+"] : counts["-"]];
    });
    shown = rows.map((_, i) => i);
    if (model.get("only_changes") && model.get("configs").length > 1) {
      const near = new Set();
      for (const [begin, end] of model.get("hunks")[model.get("language")] ?? []) {
        for (let i = Math.max(0, begin - AROUND); i < Math.min(rows.length, end + AROUND); i += 1) near.add(i);
      }
      shown = [...near].sort((a, b) => a - b).flatMap((i, k, list) => (k && list[k - 1] < i - 1 ? [-1, i] : [i]));
    }
    const query = model.get("query").toLowerCase();
    hits = query ? shown.filter((i) => i >= 0 && rows[i][2].toLowerCase().includes(query)) : [];
    sizer.style.height = `${shown.length * ROW}px`;
  }

  function draw() {
    stale = false;
    load();
    problem.hidden = !model.get("error");
    problem.textContent = model.get("error");
    all.hidden = !model.get("title") || Boolean(model.get("error"));
    header();
    reveal();
    paint();
  }

  function header() {
    const configs = model.get("configs");
    head.textContent = model.get("title");
    configs.forEach((key, i) => {
      const line = node("span", "configs", "");
      line.append(node("b", "", configs.length < 2 ? "" : ["\u2212 this", "+ other"][i]), key);
      head.append(line);
    });
    only.hidden = configs.length < 2;
    only.firstChild.checked = model.get("only_changes");
    if (document.activeElement !== search) search.value = model.get("query");
    if (!tabs.children.length) controls();
    for (const tab of tabs.children) tab.setAttribute("aria-selected", String(tab.dataset.value === model.get("language")));
    facts.replaceChildren(...model.get("facts").map(([name, value, other, change]) => {
      const line = node("div", change ? "fact changed" : "fact");
      line.append(node("span", "", name), node("span", "", change ? `${value} \u2192 ${other}` : value));
      if (configs.length > 1) line.append(node("em", "", change || "same"));
      return line;
    }), node("p", "note", "Counted in the machine code: a loop runs its instructions many times."));
  }

  function controls() {
    for (const [value, name] of Object.entries(model.get("languages"))) {
      const tab = node("button", "", name);
      Object.assign(tab, { type: "button", onclick: () => turn(value) });
      Object.assign(tab.dataset, { value, lmSuppressShortcuts: "true" });
      tab.setAttribute("role", "tab");
      tabs.append(tab);
    }
    for (const [letter, [name, words]] of Object.entries(model.get("classes"))) {
      const chip = node("button");
      Object.assign(chip, { type: "button", title: words, onclick: () => jump((i) => rows[i][1] === letter, 1) });
      chip.dataset.lmSuppressShortcuts = "true";
      chip.append(node("i", letter, letter), name);
      legend.append(chip);
    }
  }

  // Only what is in sight, and one screen on each side, is made.
  function paint() {
    frame = 0;
    const start = Math.max(0, Math.floor(pane.scrollTop / ROW) - 8);
    const query = model.get("query").toLowerCase();
    const line = model.get("line");
    sizer.replaceChildren(...shown.slice(start, start + 42).map((i, k) => {
      const [sign, letter, words, number] = rows[i] ?? [" ", " ", "  \u22ef", ""];
      const row = node("div", `row${sign === "-" ? " minus" : sign === "+" ? " plus" : ""}${letter !== " " ? " marked" : ""}${i === line ? " on" : ""}`);
      row.style.top = `${(start + k) * ROW}px`;
      row.dataset.i = i;
      const badge = node("i", letter === " " ? "" : letter, letter === " " ? "" : letter);
      row.append(node("span", "n", number), node("span", "g", SIGNS[sign]), badge, code(words, query));
      return row;
    }));
    map();
    const [sign, letter, words, number] = rows[line] ?? [" ", " ", "", 0];
    const kind = model.get("classes")[letter];
    const side = sign === " " ? "" : ` Only in ${sign === "-" ? "this" : "the other"} kernel.`;
    const what = kind ? `${kind[1]}. ` : "";
    say.textContent = `${model.get("languages")[model.get("language")]}, line ${number}: ${what}${words.trim().slice(0, 110)}${side}`;
    const place = hits.indexOf(line);
    found.textContent = query ? (hits.length ? `${place < 0 ? "" : `${place + 1} of `}${hits.length} found` : "not found") : "";
  }

  // One lane per class from the first line to the last, and the part that is in sight.
  function map() {
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [66, canvas.clientHeight];
    Object.assign(canvas, { width: wide * scale, height: high * scale });
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const step = Math.min(ROW, high / Math.max(shown.length, 1));
    shown.forEach((i, k) => {
      const [sign, letter] = rows[i] ?? [" ", " "];
      const lane = Object.keys(COLOURS).indexOf(letter);
      if (sign !== " ") {
        pen.fillStyle = sign === "-" ? "rgba(213, 94, 0, 0.18)" : "rgba(0, 114, 178, 0.2)";
        pen.fillRect(0, k * step, wide, step);
      }
      if (lane < 0) return;
      pen.fillStyle = COLOURS[letter];
      pen.fillRect(3 + lane * 10, k * step, 9, Math.max(step * 0.9, 1));
    });
    pen.strokeStyle = getComputedStyle(root).color;
    pen.strokeRect(0.75, (pane.scrollTop / ROW) * step + 0.5, wide - 1.5, Math.max((high / ROW) * step - 1, 6));
  }

  // However much changes between two frames, the picture is drawn once.
  function moved() {
    frame ||= requestAnimationFrame(() => (stale ? draw() : paint()));
  }

  function reveal() {
    const top = shown.indexOf(model.get("line")) * ROW;
    if (top < 0) return;
    if (top < pane.scrollTop + ROW) pane.scrollTop = top - 4 * ROW;
    const below = top - pane.scrollTop - pane.clientHeight + 3 * ROW;
    if (below > 6 * ROW) pane.scrollTop = top - 3 * ROW;  // from afar: what follows it is of interest
    else if (below > 0) pane.scrollTop = top - pane.clientHeight + 6 * ROW;
  }

  // What is asked between two frames is answered from what is true now, not from what was drawn last.
  const fresh = () => stale && draw();

  function write(values) {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  }

  // Another text, at the first row that differs, or the kernel's first that has a class.
  function turn(language) {
    const lines = model.get("texts")[language].split("\n");
    const marked = lines.findIndex((line, i) => i >= signature(lines) && line[1] !== " ");
    write({ language, line: model.get("hunks")[language]?.[0]?.[0] ?? Math.max(marked, 0) });
  }

  // The next row (or the one before) of which `wanted` is true, around the end.
  function jump(wanted, way) {
    fresh();
    const list = shown.filter((i) => i >= 0 && wanted(i));
    const here = model.get("line");
    const next = way > 0 ? list.find((i) => i > here) ?? list[0] : list.findLast((i) => i < here) ?? list.at(-1);
    if (next !== undefined) write({ line: next });
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    fresh();
    const place = shown.indexOf(model.get("line"));
    const steps = { ArrowUp: place - 1, ArrowDown: place + 1, PageUp: place - 20, PageDown: place + 20, Home: 0, End: shown.length };
    const languages = Object.keys(model.get("languages"));
    const query = model.get("query").toLowerCase();
    const lower = event.key.toLowerCase();
    if (event.key in steps) {
      let to = Math.min(Math.max(steps[event.key], 0), shown.length - 1);
      if (shown[to] < 0) to += steps[event.key] > place ? 1 : -1;
      write({ line: shown[to] });
    } else if (languages[Number(event.key) - 1]) turn(languages[Number(event.key) - 1]);
    else if (event.key === "/") search.focus();
    else if (lower === "n" && query) jump((i) => hits.includes(i), event.shiftKey ? -1 : 1);
    else if (lower === "d") jump((i) => rows[i][0] !== " " && (rows[i - 1]?.[0] ?? " ") === " ", event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function onSearchKey(event) {
    if (event.key === "Enter") jump((i) => hits.includes(i), event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") pane.focus();
    event.stopPropagation();
  }

  pane.addEventListener("keydown", onKey);
  pane.addEventListener("scroll", moved);
  pane.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row && row.dataset.i >= 0 && !stale) write({ line: Number(row.dataset.i) });
  });
  canvas.addEventListener("click", (event) => {
    fresh();
    pane.scrollTop = (event.offsetY / Math.min(pane.clientHeight, shown.length * ROW)) * shown.length * ROW - pane.clientHeight / 2;
  });
  search.addEventListener("input", () => write({ query: search.value }));
  search.addEventListener("keydown", onSearchKey);
  only.firstChild.addEventListener("change", () => write({ only_changes: only.firstChild.checked }));
  const dark = new MutationObserver(() => moved()); // not at once: while the theme changes nothing is laid out
  dark.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  const later = () => moved((stale = true));
  const watched = ["texts", "configs", "title", "facts", "hunks", "language", "query", "only_changes", "error"]
    .map((name) => [`change:${name}`, later]).concat([["change:line", () => moved(stale || reveal())]]);
  for (const one of watched) model.on(...one);
  window.addEventListener("resize", moved);
  draw();
  const unseen = onceShown(pane, () => moved(reveal(openEditor(root))));
  return () => {
    cancelAnimationFrame(frame);
    window.removeEventListener("resize", moved);
    unseen();
    dark.disconnect();
    for (const one of watched) model.off(...one);
  };
}

export default { render };
