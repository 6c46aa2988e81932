// The parts of a live duplicate map. Cells stay in the page and are moved, for a slider draws many maps a second; their
// labels lie on one canvas above them, for text is slow to lay out. The text of the view's own file follows this one.

const SVG = "http://www.w3.org/2000/svg";
const LETTERS = 'system-ui, "Segoe UI", Helvetica, Arial, sans-serif';

function shape(name, attributes = {}) {
  return put(document.createElementNS(SVG, name), attributes);
}

// Writes the attributes that differ from what was written last.
function put(node, attributes) {
  const had = (node.sbHad ??= {});
  for (const [name, value] of Object.entries(attributes)) {
    if (had[name] !== value) node.setAttribute(name, value);
    had[name] = value;
  }
  return node;
}

// Rectangles in a group: a list of attributes makes as many, out of those that there were before.
function pool(group) {
  const made = [];
  return (wanted) => {
    while (made.length < wanted.length) made.push(shape("rect"));
    while (group.children.length > wanted.length) group.lastChild.remove();
    wanted.forEach((attributes, i) => put(made[i], attributes));
    group.append(...made.slice(group.children.length, wanted.length));
    return made.slice(0, wanted.length);
  };
}

// Places of a grid's cells.
function places(grid, gap) {
  const { width, height, inset } = grid;
  const corner = (row, column) => [
    grid.x + column * width + (grid.group ? Math.floor(column / grid.group) * gap : 0), grid.y + row * height];
  const [right, bottom] = corner(grid.rows - 1, grid.columns - 1);
  return {
    ...grid, corner,
    centre: (row, column) => corner(row, column).map((at, i) => at + (i ? height : width) / 2),
    all: { x: grid.x, y: grid.y, width: right + width - grid.x, height: bottom + height - grid.y },
    face(row, column) {
      const [x, y] = corner(row, column);
      return { x: x + inset, y: y + inset, width: width - 2 * inset, height: height - 2 * inset, rx: grid.rounding };
    },
  };
}

// One path around cells, [row, column] each.
function outlines({ corner, width, height, inset }, cells, room = inset) {
  const size = `h${width - 2 * room}v${height - 2 * room}h${2 * room - width}z`;
  return cells.map((cell) => `M${corner(...cell).map((at) => at + room).join(" ")}${size}`).join("");
}

// The dashed frame around the input pixels that the selected output pixel reads.
function frameAround({ corner }, pixels) {
  const [rows, wide] = ["row", "column"].map((name) => pixels.map((pixel) => pixel[name]));
  const [x, y] = corner(Math.min(...rows), Math.min(...wide)).map((at) => at - 2);
  const [right, bottom] = corner(Math.max(...rows) + 1, Math.max(...wide) + 1).map((at) => at + 2);
  return shape("rect", { class: "window", x, y, width: right - x, height: bottom - y, rx: 5 });
}

// What entry k of the lowered matrix multiplies.
function meeting(map, k) {
  const [, wide] = map.kernel;
  const [row, column] = [Math.floor(k / (map.kernel[0] * wide)), k % (map.kernel[0] * wide)];
  const output = `output pixel p${row} = (${map.outputs[row].slice(0, 2).join(", ")})`;
  return `Entry ${k}: ${output} meets kernel weight (${Math.floor(column / wide)}, ${column % wide}).`;
}

// An input pixel, its copies and its place in shared memory.
function about({ g, row, column, slot, zero, copies: [, ...others] }) {
  const where = `Input pixel (${row}, ${column})${zero ? ", zero padding," : ""}`;
  const kept = `It lies in slot ${slot} of the block's shared memory.`;
  if (!others.length) return `${where} is used once, by entry ${g}. ${kept}`;
  const rest = others.length === 1 ? `entry ${others[0]} is a duplicate` : `entries ${others.join(", ")} are duplicates`;
  return `${where} appears ${others.length + 1} times in the lowered matrix: entry ${g} is genuine and loaded; ${rest}. ${kept}`;
}

// The canvas with the labels: { words, at: [x, y], font, bold, ink, faint }, without an ink in the colour of the page's
// text. They are painted again whenever the view gets another size, another resolution or another theme.
function lettering(sheet) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true"); // the sentence below says what is selected
  let labels = [];
  let size = [1, 1];
  let wide = 0;
  let sharp = 0;

  function paint() {
    sharp = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(wide * sharp), Math.round((wide * sharp * size[1]) / size[0])];
    if (!width) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    const scale = width / size[0];
    const plain = getComputedStyle(canvas).color;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.textAlign = "center";
    let last = "";
    for (const { words, at: [x, y], font, bold, ink, faint } of labels) {
      const style = `${bold ? "700" : "400"} ${font}px ${LETTERS}`;
      if (style !== last) pen.font = last = style;
      pen.fillStyle = faint ? plain : (ink ?? plain);
      pen.globalAlpha = faint ? 0.65 : 1;
      pen.fillText(words, x, y + font * 0.36);
    }
  }

  const sized = new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width === wide && window.devicePixelRatio === sharp) return; // a taller map alone
    wide = contentRect.width;
    paint();
  });
  const zoomed = () => window.devicePixelRatio !== sharp && paint();
  sized.observe(sheet);
  window.addEventListener("resize", zoomed);
  // Its colour has a transition: that is how another theme is noticed, on every page. A new style sheet may cut it off.
  for (const event of ["transitionend", "transitioncancel"]) canvas.addEventListener(event, paint);
  sheet.append(canvas);
  return {
    write(wanted, area) {
      [labels, size] = [wanted, area];
      sheet.style.maxWidth = `min(810px, (100vh - var(--sb-around, 235px)) * ${area[0] / area[1]})`; // with its controls on one screen
      paint();
    },
    end() {
      sized.disconnect();
      window.removeEventListener("resize", zoomed);
    },
  };
}
