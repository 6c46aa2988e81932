// CUDA text beside a picture: the line that is executed is lit, a click on a line shows what was done there. `data` is
// what the kernel made of a listing. The text of a view's own file follows this one.

const KINDS_IN_WORDS = {
  copy: "copy from global to shared memory", shared_load: "load from shared memory", shared_store: "store to shared memory",
  global_load: "load from global memory", global_store: "store to global memory", mma: "matrix instruction",
  wgmma: "warpgroup matrix instruction", shuffle: "shuffle between lanes", register: "in registers",
};

// "0 to 7" and the bytes that they touch.
function span([value, step, count], from) {
  const lanes = count === 1 ? `lane ${from}` : `lanes ${from} to ${from + count - 1}`;
  if (value === null) return [lanes, ""];
  const bytes = count === 1 || !step ? value.toLocaleString("en") : `${value.toLocaleString("en")} to ${(value + step * (count - 1)).toLocaleString("en")}`;
  return [lanes, `byte${count === 1 || !step ? "" : "s"} ${bytes}${count > 1 && step ? `, ${step} apart` : ""}`];
}

// What each memory's lanes do: of many runs of lanes the first, and what all of them touch.
function runsInWords(access) {
  const found = [];
  for (const memory of ["global", "shared"]) {
    let from = 0;
    const runs = [];
    for (const [value, step, count] of access[memory]) {
      if (value !== null) runs.push({ words: span([value, step, count], from).join(", "), ends: [value, value + step * (count - 1)] });
      from += count;
    }
    found.push(...runs.slice(0, runs.length > 2 ? 1 : 2).map(({ words }) => `${memory}: ${words}`));
    const [least, most] = [Math.min, Math.max].map((end) => end(...runs.flatMap(({ ends }) => ends)).toLocaleString("en"));
    if (runs.length > 2) found.push(`and ${runs.length - 1} more runs of lanes, all in bytes ${least} to ${most}`);
  }
  return found;
}

// `place`: the element of the pane; `chosen(line)`: told of a clicked line, 0 for none.
function codePane(place, chosen) {
  place.className = "code";
  place.innerHTML = `<div class="kernel"></div><ol class="lines" data-opens="" tabindex="0" data-lm-suppress-shortcuts="true"
    data-keys aria-label="CUDA text: up and down arrow keys choose a line that acts, Escape lets go"></ol><div class="doing" aria-live="polite"></div>
    <div class="warp" role="img"></div>`;
  const [kernel, lines, doing, warp] = [".kernel", ".lines", ".doing", ".warp"].map((part) => place.querySelector(part));
  warp.innerHTML = Array.from({ length: 32 }, (_, i) => `<i>${i}</i>`).join("");
  let data = null;
  let lit = null;
  let picked = 0;

  function fill(other) {
    data = other;
    lit = null;
    picked = 0;
    place.hidden = !data?.lines.length;
    if (place.hidden) return;
    kernel.textContent = data.head; // of which kernel the lines are, where that is not the one in the picture
    const acts = new Set(data.accesses.map((access) => access.line));
    const shown = data.lines.map((text, i) => {
      const line = data.numbers[i];
      const item = Object.assign(document.createElement("li"), { value: line });
      const gap = i && line !== data.numbers[i - 1] + 1;
      item.className = `${acts.has(line) ? "acts" : ""}${gap ? " gap" : ""}`;
      item.dataset.line = line;
      item.append(Object.assign(document.createElement("code"), { textContent: text }));
      return item;
    });
    lines.replaceChildren(...shown);
  }

  function tell(access, times) {
    const active = access ? access.active : 0;
    [...warp.children].forEach((lane, i) => lane.classList.toggle("on", Boolean(access) && (access.mask >>> i) % 2 === 1));
    warp.setAttribute("aria-label", `${active} of 32 lanes take part`);
    if (!access) return void (doing.textContent = data.idle ?? "");
    const size = access.bytes && !access.kind.endsWith("mma") ? `, ${access.bytes} bytes each` : "";
    const again = times > 1 ? `; ${times} times in this picture` : "";
    const head = `Line ${access.line}: ${KINDS_IN_WORDS[access.kind] ?? access.kind}, ${active} lanes at once${size}${again}.`;
    doing.textContent = [head, ...runsInWords(access)].join("\n");
  }

  // Light the lines of a step; `access` is what is done there now.
  function light(numbers, access) {
    if (!data || place.hidden) return;
    picked = 0;
    for (const item of lines.children) {
      item.classList.toggle("lit", numbers.includes(item.value));
      item.classList.remove("picked");
    }
    lit = [...lines.children].find((item) => item.value === numbers[0]) ?? null;
    toLit();
    tell(access, 1);
  }

  function toLit() {
    lines.scrollTop = lit ? Math.max(0, lit.offsetTop - 54) : 0;
  }

  function pick(line) {
    picked = line === picked ? 0 : line;
    for (const item of lines.children) item.classList.toggle("picked", item.value === picked);
    const mine = data.accesses.filter((access) => access.line === picked);
    if (mine.length) tell(mine[0], mine.reduce((sum, access) => sum + access.times, 0));
    chosen(picked);
  }

  lines.addEventListener("click", (event) => {
    const item = event.target.closest("li.acts");
    if (item) pick(item.value);
  });
  // Up and down go from one line that acts to the next.
  lines.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!way && event.key !== "Escape") return;
    const acts = [...lines.querySelectorAll(".acts")].map((item) => item.value);
    const here = acts.indexOf(picked || lit?.value);
    if (event.key === "Escape" && picked) pick(picked);
    else if (way && acts.length) {
      const next = acts[Math.max(0, Math.min(acts.length - 1, here < 0 ? 0 : here + way))];
      if (next !== picked) pick(next);
      lines.querySelector(".picked")?.scrollIntoView({ block: "nearest" });
    }
    event.preventDefault();
    event.stopPropagation();
  });
  place.hidden = true;
  return { fill, light, picked: () => picked, end: onceShown(lines, toLit) };
}
