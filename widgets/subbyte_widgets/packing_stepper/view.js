// The live packing stepper: draws the values that the registers of a step hold. Values are read from the words' bits.

function render({ model, el }) {
  let svg = null;
  let hovered = -1;
  let pool = []; // rectangles of the overview, used again and again
  let stage = null;

  const here = () => model.get("data").schemes?.[model.get("scheme")];
  const sizes = () => model.get("data").sizes;
  const count = () => here()?.states.length ?? 0;
  const stops = () => [...Array(count()).keys()].slice(1);
  const followed = () => (hovered >= 0 ? hovered : model.get("follow"));

  function* boxes(names, step) {
    const { states, registers } = here();
    for (const index of states[Math.min(step, states.length - 1)]) {
      const register = registers[index];
      if (names && !names.includes(register.name)) continue;
      const whole = register.kind === "int32";
      const per = whole ? 1 : sizes().nibbles;
      for (let place = 0; place < register.origins.length; place += 1) {
        const origin = register.origins[place];
        if (origin < 0) continue;
        const lane = Math.floor(place / per);
        const nibble = whole ? -1 : place % per;
        const word = register.words[lane];
        const value = whole ? word | 0 : (word << (28 - 4 * nibble)) >> 28;
        yield { name: register.name, lane, nibble, origin, value, tile: Math.floor(origin / 64) };
      }
    }
  }

  function put(node, attributes) {
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  }

  function rise(y, height, tile) {
    return tile < sizes().low ? { y, height } : { y: y + 0.45 * height, height: 0.55 * height };
  }

  function spot(box) {
    const { names, rows, lanes, laneWidth, rowHeight } = here();
    const unit = (laneWidth - 1.6) / sizes().nibbles;
    const x = lanes[box.lane] + Math.max(box.nibble, 0) * unit;
    return { x, width: box.nibble < 0 ? laneWidth - 1.6 : unit, y: rows[names.indexOf(box.name)] + 1, height: rowHeight - 2 };
  }

  // A step's boxes are drawn where they end; those that come from elsewhere are moved there while time goes on.
  let movers = []; // { node, by: [x, y] }: how far back it begins

  function from(step, place) {
    const before = new Map();
    for (const box of step ? boxes(null, step - 1) : []) {
      const at = place(box);
      if (at) before.set(box.origin, [...(before.get(box.origin) ?? []), at]);
    }
    return (box, at, ...nodes) => {
      const far = ([x, y]) => Math.abs(x - at[0]) + Math.abs(y - at[1]);
      const [nearest] = (before.get(box.origin) ?? []).sort((a, b) => far(a) - far(b));
      if (!nearest || far(nearest) < 0.5) return;
      movers.push(...nodes.map((node) => ({ node, by: [nearest[0] - at[0], nearest[1] - at[1]] })));
    };
  }

  function travel() {
    const moved = movers;
    if (!moved.length) return null;
    return (t) => {
      const left = 1 - smooth(t);
      for (const { node, by } of moved) node.setAttribute("transform", `translate(${(by[0] * left).toFixed(2)} ${(by[1] * left).toFixed(2)})`);
    };
  }

  const landed = () => movers.forEach(({ node }) => node.removeAttribute("transform"));

  function lines(step) {
    const { code, steps } = here();
    const lit = code?.steps[steps[step]] ?? [];
    return [lit, code?.accesses.find((access) => lit.includes(access.line)) ?? null];
  }

  function overview(step, early) {
    const group = svg.querySelector(".over");
    const value = followed();
    let used = 0;
    const come = from(early ? step : 0, (box) => [spot(box).x, spot(box).y]);
    for (const box of boxes(null, step)) {
      const { x, width, y, height } = spot(box);
      const node = pool[used] ?? (pool[used] = group.appendChild(svgNode("rect", {})));
      put(node, { x, width, ...rise(y, height, box.tile), "data-o": box.origin, class: `box c${box.tile % sizes().low}` });
      come(box, [x, y], node);
      used += 1;
    }
    for (const node of pool.splice(used)) node.remove();
    svg.querySelectorAll(".mark").forEach((node) => node.remove());
    if (value < 0) return;
    const now = [...boxes(null, step)].filter((box) => box.origin === value);
    const before = step ? [...boxes(null, step - 1)].filter((box) => box.origin === value) : [];
    const middle = (box) => [spot(box).x + spot(box).width / 2, spot(box).y + spot(box).height / 2];
    for (const box of now) {
      const { x, width, y, height } = spot(box);
      group.after(svgNode("rect", { x, width, ...rise(y, height, box.tile), class: `box on mark c${box.tile % sizes().low}`, "data-o": value }));
      const same = (other) => other.name === box.name && other.lane === box.lane && other.nibble === box.nibble;
      if (!before.length || before.some(same)) continue;
      const [x1, y1] = middle(box);
      const nearest = before.map(middle).sort((a, b) => Math.abs(a[0] - x1) - Math.abs(b[0] - x1))[0];
      const lift = Math.min(nearest[1], y1) - 14;
      group.after(svgNode("path", { class: "trail mark", d: `M${nearest}C${nearest[0]} ${lift} ${x1} ${lift} ${x1} ${y1}` }));
    }
  }

  function zoom(step, early) {
    const { states, registers, stores, left, zoom: top } = here();
    const { window: window_, zoomWidth, zoomHeight, nibbles, low, lines: baselines } = sizes();
    const value = followed();
    let first = 0;
    for (const box of boxes(null, step)) {
      if (box.origin !== value) continue;
      first = Math.floor(box.lane / window_) * window_;
      break;
    }
    const mine = `tile${Math.floor(Math.max(value, 0) / 64)}.`;
    const named = (at) => {
      const all = states[Math.min(at, states.length - 1)].map((index) => registers[index].name);
      return all.length <= 2 ? all : all.filter((name) => !name.startsWith("tile") || name.startsWith(mine));
    };
    const names = named(step);
    const unit = (zoomWidth - 4) / nibbles;
    const at = (box, rows) => [left + (box.lane - first) * zoomWidth + 1 + Math.max(box.nibble, 0) * unit, top + rows.indexOf(box.name) * zoomHeight];
    const seen = (box, rows) => rows.includes(box.name) && box.lane >= first && box.lane < first + window_;
    const earlier = early ? named(step - 1) : [];
    const come = from(early ? step : 0, (box) => (seen(box, earlier) ? at(box, earlier) : null));
    const [made, values, frames] = [[], [], []];
    const write = (x, y, words, attributes, among = made) => {
      const node = svgNode("text", { x, y, ...attributes });
      node.textContent = words;
      among.push(node);
      return node;
    };
    for (let i = 0; i < window_; i += 1) write(left + (i + 0.5) * zoomWidth, top - 5, `lane ${first + i}`, { class: "n" });
    names.forEach((name, row) => {
      const y = top + row * zoomHeight;
      write(left - 6, y + 23, name, { class: "s e small" });
      for (let i = 0; i < window_; i += 1) {
        made.push(svgNode("rect", { class: "cell", x: left + i * zoomWidth + 1, y: y + 1, width: zoomWidth - 4, height: zoomHeight - 4, rx: 2 }));
      }
    });
    for (let i = 0; step === states.length && i < window_; i += 1) {
      const bytes = stores.filter((store) => store[0] === first + i).map((store) => 4 * store[1]);
      const place = { class: "n address" };
      write(left + (i + 0.5) * zoomWidth, top + names.length * zoomHeight + 12, bytes.length ? `to byte ${bytes.join(", ")}` : "", place);
    }
    for (const box of boxes(names, step)) {
      if (!seen(box, names)) continue;
      const [x, y] = at(box, names);
      const width = box.nibble < 0 ? zoomWidth - 4 : unit;
      const kind = `box c${box.tile % low}${box.tile >= low ? " low" : ""}`;
      const rect = svgNode("rect", { class: kind, "data-o": box.origin, x, width, y: y + 1, height: zoomHeight - 4 });
      made.push(rect);
      if (box.origin === value) frames.push(svgNode("rect", { class: "frame", x, width, y: y + 1, height: zoomHeight - 4 }));
      const label = write(x + width / 2, y + baselines[box.nibble + 1], box.value, { class: `v ${model.get("data").ink[box.tile % low]}`, "data-o": box.origin }, values);
      come(box, [x, y], rect, label);
    }
    svg.querySelector(".zoom").replaceChildren(...made, ...values, ...frames);
  }

  // Where the followed value is, in words.
  function story(step) {
    const value = followed();
    const found = value < 0 ? [] : [...boxes(null, step)].filter((box) => box.origin === value);
    if (!found.length) return "Up and down arrow keys, or the pointer, follow a value.";
    const name = `Value ${found[0].value} of tile ${found[0].tile}, image ${Math.floor(value / 8) % 8}, channel ${value % 8}`;
    const places = found.map((box) => `lane ${box.lane}, ${box.name}` + (box.nibble < 0 ? "" : `, bits ${4 * box.nibble} to ${4 * box.nibble + 3}`));
    const stored = step === count() ? here().stores.find((store) => store[2] <= value && value < store[2] + 8) : null;
    const end = stored ? ` Lane ${stored[0]} stores word ${stored[1]} of the block, byte ${4 * stored[1]}: ${stored[3]}.` : "";
    return `${name}: ${places.join("; and ")}.${end}`;
  }

  function draw(step, early = false) {
    landed();
    movers = [];
    const { states, registers, useful, says, stores } = here();
    const live = states[Math.min(step, states.length - 1)].map((index) => registers[index].name);
    svg.querySelectorAll("[data-reg]").forEach((node) => node.classList.toggle("live", live.includes(node.dataset.reg)));
    overview(step, early);
    zoom(step, early);
    svg.querySelectorAll("[data-step]").forEach((node, i) => node.classList.toggle("now", i === step));
    svg.querySelector(".lanes").textContent = `${useful[Math.min(step, useful.length - 1)]} of 32 lanes`;
    const stored = step === states.length;
    svg.querySelectorAll("[data-word]").forEach((node, i) => {
      node.classList.toggle("stored", stored);
      node.classList.toggle("on", stored && stores[i][2] <= followed() && followed() < stores[i][2] + 8);
    });
    return `${says[step]}${story(step)}`;
  }

  function rebuild(place, extra) {
    stage = place;
    radios(extra, "scheme", "packing scheme", Object.keys(model.get("data").schemes ?? {}), model.get("scheme"), choose);
    stage.innerHTML = here()?.svg ?? "";
    svg = stage.querySelector("svg");
    pool = [];
    hovered = -1;
  }

  function choose(scheme) {
    const ends = model.get("step") === count();
    const states = model.get("data").schemes[scheme].states.length;
    model.set("scheme", scheme);
    model.set("step", ends ? states : 0);
    if (model.get("follow") >= 64 * here().tiles) model.set("follow", -1);
    model.save_changes();
  }

  function keep(value) {
    model.set("follow", value);
    model.save_changes();
  }

  function onKey(event) {
    const last = 64 * here().tiles - 1;
    const value = model.get("follow");
    const far = event.shiftKey ? 8 : 1;
    if (event.key === "ArrowUp") keep(value < 0 ? last : Math.max(0, value - far));
    else if (event.key === "ArrowDown") keep(value < 0 ? 0 : Math.min(last, value + far));
    else if (event.key === "Escape") keep(-1);
    else return false;
    return true;
  }

  function listen(place, show, renew) {
    const hover = (value) => {
      if (value === hovered) return;
      hovered = value;
      show();
    };
    const under = (event) => Number(event.target.closest?.("[data-o]")?.dataset.o ?? -1);
    place.addEventListener("pointerover", (event) => hover(under(event)));
    place.addEventListener("pointerleave", () => hover(-1));
    place.addEventListener("click", (event) => under(event) >= 0 && keep(under(event)));
    return [["scheme", renew], ["follow", show]];
  }

  return player({ model, el, rate: 1, name: "sb-pack", label: "Register-level packing; up and down arrow keys follow a value",
    count, stops, draw, travel, landed, code: () => here()?.code, lines, rebuild, listen, onKey });
}

export default { render };
