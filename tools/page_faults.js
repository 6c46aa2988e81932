// What a reader of a page cannot read: clipped and overlapping words, words too pale, what is wider than the window, a
// view taller than its room, a sentence below the first screen. Asked of the page as it is painted. What a canvas holds cannot be asked for: its
// words are neither measured nor excused.
({ selector, fold, room }) => {
  const root = document.querySelector(selector);
  const found = [];
  const report = (kind, words) => found.push(`${kind}: ${words}`);
  const short = (words) => words.trim().replace(/\s+/g, " ").slice(0, 60);
  const named = (element) => element.getAttribute("class") || element.tagName.toLowerCase();

  // Every line of visible text: its element, its box on the page, and the part of the box that is not cut off.
  const lines = [];
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("title, desc, style, option, .unseen")) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width > 1 && box.height > 1) lines.push({ element, words: short(node.textContent), box });
    }
  }

  // Text is cut by what hides its overflow; what can be scrolled only moves it out of sight.
  const hides = (value) => value === "hidden" || value === "clip";
  // Code in a list whose lines are written out when they are chosen (data-opens) may end in dots until then.
  for (const line of lines) {
    const seen = { left: line.box.left, right: line.box.right, top: line.box.top, bottom: line.box.bottom };
    for (let around = line.element; around && around !== document.body; around = around.parentElement) {
      const style = getComputedStyle(around);
      if (style.display === "inline" || (around.ownerSVGElement && around.tagName !== "svg")) continue;
      const [across, down] = [style.overflowX, style.overflowY];
      if (across === "visible" && down === "visible") continue;
      const box = around.getBoundingClientRect();
      const cutAcross = hides(across) && (seen.left < box.left - 1.5 || seen.right > box.right + 1.5);
      const cutDown = hides(down) && (seen.top < box.top - line.box.height / 4 || seen.bottom > box.bottom + line.box.height / 4);
      if ((cutAcross || cutDown) && !line.element.closest("[data-opens]")) report("clipped", `${line.words} (in ${named(around)})`);
      if (across !== "visible") [seen.left, seen.right] = [Math.max(seen.left, box.left), Math.min(seen.right, box.right)];
      if (down !== "visible") [seen.top, seen.bottom] = [Math.max(seen.top, box.top), Math.min(seen.bottom, box.bottom)];
    }
    line.seen = seen;
    if (seen.right > innerWidth + 1 || seen.left < -1) report("clipped", `${line.words} (by the window)`);
  }
  const inSight = lines.filter(({ seen }) => seen.right - seen.left > 1 && seen.bottom - seen.top > 1);

  // Boxes are as high as the font's tallest letters: words whose boxes share less than a third of a line do not touch.
  const ink = ({ seen, box }) => {
    const trim = box.height * 0.2;
    return { left: seen.left + 0.5, right: seen.right - 0.5, top: seen.top + trim, bottom: seen.bottom - trim };
  };
  const inks = inSight.map(ink);
  const order = inSight.map((_, i) => i).sort((i, j) => inks[i].top - inks[j].top);
  for (let at = 0; at < order.length; at += 1) {
    const [i, one] = [order[at], inks[order[at]]];
    for (let next = at + 1; next < order.length && inks[order[next]].top < one.bottom; next += 1) {
      const [j, other] = [order[next], inks[order[next]]];
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > 1.5 && high > 1 && inSight[i].element !== inSight[j].element)
        report("overlap", `${inSight[i].words} | ${inSight[j].words}`);
    }
  }

  // Sideways: the page, and what scrolls inside it. Panes of code (class sideways) keep their lines, as editors do.
  if (document.documentElement.scrollWidth > innerWidth) report("sideways", "the page is wider than its window");
  for (const element of [root, ...root.querySelectorAll("*")]) {
    if (element.ownerSVGElement || element.closest(".sideways") || element.scrollWidth <= element.clientWidth + 1) continue;
    const style = getComputedStyle(element);
    if (/auto|scroll/.test(style.overflowX) && element.clientWidth && element.checkVisibility())
      report("sideways", `${named(element)} scrolls by ${element.scrollWidth - element.clientWidth} pixels`);
    if (style.textOverflow === "ellipsis" && hides(style.overflowX) && !element.closest("[data-opens]")) report("clipped", `${short(element.textContent)} (ends in dots)`);
  }

  // Contrast, as WCAG computes it, of the letters against everything painted below their middle.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parsed = new Map();
  const colour = (value) => {
    if (!parsed.has(value)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = "rgba(0,0,0,0)";
      canvas.fillStyle = value;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      parsed.set(value, [r, g, b, a / 255]);
    }
    return parsed.get(value);
  };
  const faded = (element) => {
    let all = 1;
    for (let around = element; around; around = around.parentElement) all *= Number(getComputedStyle(around).opacity);
    return all;
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a + below[i] * (1 - a));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  const style = document.createElement("style");
  style.textContent = "svg * { pointer-events: visiblePainted !important; } body :not(svg *) { pointer-events: auto !important; }";
  document.head.append(style);
  const start = root.getBoundingClientRect().top;
  const away = () => start - root.getBoundingClientRect().top; // how far the page was scrolled since
  for (const { element, words, seen } of inSight) {
    if (element.closest(":disabled, [aria-disabled=true]")) continue;
    const [x, middle] = [(seen.left + seen.right) / 2, (seen.top + seen.bottom) / 2];
    const hidden = (y) => y < 0 || y >= innerHeight;
    if (hidden(middle - away())) element.scrollIntoView({ block: "center" }); // only what is in sight can be asked for
    const y = middle - away();
    const below = [];
    let unknown = false;
    let covered = false;
    for (const one of document.elementsFromPoint(x, y)) {
      if (one.tagName === "text" || one.tagName === "tspan") continue;
      const painted = getComputedStyle(one);
      const after = element.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING;
      if (one.tagName === "CANVAS") unknown = true;
      if (unknown) break;
      const drawn = one.ownerSVGElement && one.tagName !== "svg";
      const value = drawn ? painted.fill : painted.backgroundColor;
      if (value === "none") continue;
      if (value.startsWith("url(")) unknown = true;
      if (unknown) break;
      const [r, g, b, a] = colour(value);
      const alpha = a * faded(one) * (drawn ? Number(painted.fillOpacity) : 1);
      if (after && drawn && alpha > 0.9) covered = true;
      if (after) continue;
      below.push([r, g, b, alpha]);
      if (alpha > 0.995) break;
    }
    if (unknown || covered) continue;
    const halo = getComputedStyle(element);
    const rimmed = element.ownerSVGElement && halo.paintOrder.startsWith("stroke") && halo.stroke !== "none" && parseFloat(halo.strokeWidth) >= 2;
    if (rimmed) below.push([...colour(halo.stroke).slice(0, 3), 1]); // letters with a rim stand on it
    if (rimmed) below.splice(0, below.length - 1);
    const paper = below.reverse().reduce((under, layer) => over(layer, under), colour("canvas").slice(0, 3));
    const own = getComputedStyle(element);
    const [r, g, b, a] = colour(element.ownerSVGElement ? own.fill : own.color);
    const alpha = a * faded(element) * (element.ownerSVGElement ? Number(own.fillOpacity) : 1);
    const contrast = ratio(over([r, g, b, alpha], paper), paper);
    if (contrast < 4.5) report("pale", `${words} (${named(element)}) ${contrast.toFixed(2)} to 1`);
  }
  style.remove();
  scrollTo(0, 0);

  // The whole view, with the line above it and its keys below.
  const whole = root.closest("#view") ?? root;
  const tall = Math.round(whole.getBoundingClientRect().height);
  if (tall > room) report("tall", `the view is ${tall} pixels high, its room ${room}`);

  // The sentence that explains what is shown stands with its controls on the first screen.
  for (const say of root.querySelectorAll(".say")) {
    const box = say.getBoundingClientRect();
    if (box.height && box.bottom + scrollY > fold) report("below", `the sentence ends at ${Math.round(box.bottom + scrollY)}`);
  }
  for (const control of root.querySelectorAll("button, input, select")) {
    const box = control.getBoundingClientRect();
    if (box.height && box.bottom + scrollY > fold) report("below", `the control ${control.ariaLabel ?? short(control.textContent)} ends at ${Math.round(box.bottom + scrollY)}`);
  }
  return [...new Set(found)];
}
