// Parallel coordinates on a canvas. The lines are painted once on a canvas of their own; a selection is a second layer.
// The text of the view's own file follows this one.

const [TOP, LEFT, RIGHT, NAME] = [14, 34, 66, 16]; // NAME: height of a row of names
const FONT = "12px system-ui, sans-serif";
const BAND = 0.62; // part of the room of a value that its lines fill

function node(tag, name, words) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (words !== undefined) made.textContent = words;
  return made;
}

// The ink with the greater contrast on a colour: black and white stand out alike at a luminance of 0.18.
function inkOn(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}

// A record's columns with what is looked up in them: places by index, by digits and by time.
// The columns of numbers come as text: the indices as differences, a time of "-" where there is none.
function lookUp(raw) {
  const words = (text) => (text ? text.split(" ") : []);
  let sum = 0;
  const record = {
    ...raw, index: words(raw.index).map((step) => (sum += Number(step))),
    digits: raw.digits.match(new RegExp(`.{${Object.keys(raw.knobs).length}}`, "g")) ?? [],
    time: words(raw.time).map((time) => (time === "-" ? null : Number(time))), reason: words(raw.reason).map(Number),
  };
  const byTime = record.time.map((_, i) => i).filter((i) => record.time[i] !== null).sort((a, b) => record.time[a] - record.time[b]);
  return {
    raw, record, byTime, names: Object.keys(record.knobs), values: Object.values(record.knobs), shown: varying(record),
    at: new Map(record.index.map((index, i) => [index, i])), like: new Map(record.digits.map((digits, i) => [digits, i])),
    rank: new Map(byTime.map((i, k) => [i, k])), best: record.time[byTime[0]], worst: record.time[byTime.at(-1)],
    turns: record.digits.map((text) => [...text].map((c) => parseInt(c, 16))),
  };
}

// The knobs that have an axis, by number: all, or without those of one value in everything that was measured.
function varying({ knobs, constant }, all = false) {
  const kept = Object.keys(knobs).flatMap((name, i) => (all || !constant.includes(name) ? [i] : []));
  return kept.length ? kept : [0];
}

// A brush keeps, of each axis it names, a range: of digits, or of microseconds on the last one ("time").
function keeps(points, brush, place) {
  return Object.entries(brush).every(([name, [low, high]]) => {
    const axis = points.names.indexOf(name);
    const at = axis < 0 ? points.record.time[place] : points.turns[place][axis];
    return at !== null && low <= at && at <= high;
  });
}

function parallel(root, canvas) {
  const base = document.createElement("canvas");
  let brush = {};
  let points = null;
  let [wide, high, bottom] = [0, 300, 254];

  // Where a time lies between the best (0) and the worst (1); its colour.
  const level = (time) => Math.log(time / points.best) / Math.max(Math.log(points.worst / points.best), 1e-9);
  const variable = (name) => getComputedStyle(root).getPropertyValue(name);
  function ramp() {
    const [fast, slow] = ["--sb-fast", "--sb-slow"].map((name) => variable(name).split(",").map(Number));
    return (t) => fast.map((c, i) => Math.round(c + (slow[i] - c) * t));
  }

  const last = () => points.shown.length; // the axis of the times
  const x = (axis) => LEFT + (axis / last()) * (wide - LEFT - RIGHT);
  const axisOf = (name) => (name === "time" ? last() : points.shown.indexOf(points.names.indexOf(name)));
  // Lines that share a value lie side by side in its band: the fastest lowest, the slowest highest.
  const y = (knob, digit, place) => bottom - ((digit + 0.5 + BAND * side(place)) / points.values[knob].length) * (bottom - TOP);
  const yOf = (axis, place) => y(points.shown[axis], points.turns[place][points.shown[axis]], place);
  const side = (place) => (points.rank.has(place) ? points.rank.get(place) / points.byTime.length - 0.5 : 0);
  const yTime = (time) => bottom - level(time) * (bottom - TOP);

  function trace(pen, place) {
    points.shown.forEach((_, axis) => pen[axis ? "lineTo" : "moveTo"](x(axis), yOf(axis, place)));
    const time = points.record.time[place];
    if (time !== null) pen.lineTo(x(last()), yTime(time));
  }

  function sized(which) {
    const scale = window.devicePixelRatio || 1;
    which.width = wide * scale;
    which.height = high * scale;
    const pen = which.getContext("2d");
    pen.scale(scale, scale);
    return pen;
  }

  function paintBase(found, width, brushed) {
    points = found;
    [wide, high, brush] = [width, canvas.clientHeight || high, brushed];
    const pen = sized(base);
    bottom = high - NAME * (1 + Math.max(2, ...nameRows(pen, named()).map(({ row }) => row + 1)));
    const colour = ramp();
    const { record } = points;
    const [byTime, left] = [true, false].map((kept) => points.byTime.filter((i) => keeps(points, brush, i) === kept));
    Object.assign(pen, { globalAlpha: 0.1, strokeStyle: getComputedStyle(root).color, lineWidth: 0.6 });
    for (let k = 0; k < left.length; k += 200) {
      pen.beginPath();
      for (const i of left.slice(k, k + 200)) trace(pen, i);
      pen.stroke();
    }
    const steps = 24; // lines of one shade are stroked together
    const shades = Array.from({ length: steps }, () => []);
    for (const i of byTime) shades[Math.min(steps - 1, Math.floor(level(record.time[i]) * steps))].push(i);
    pen.globalAlpha = Math.max(0.25, Math.min(0.7, 250 / byTime.length));
    for (let s = steps - 1; s >= 0; s -= 1) {
      pen.strokeStyle = `rgb(${colour((s + 0.5) / steps)})`;
      pen.lineWidth = s < 2 ? 1.5 : 1;
      for (let k = 0; k < shades[s].length; k += 200) {
        pen.beginPath();
        for (const i of shades[s].slice(k, k + 200)) trace(pen, i);
        pen.stroke();
      }
    }
  }

  function paint(place, knob) {
    const pen = sized(canvas);
    pen.drawImage(base, 0, 0, wide, high);
    const chosen = variable("--sb-chosen");
    if (place !== undefined) {
      Object.assign(pen, { strokeStyle: chosen, fillStyle: chosen, lineWidth: 3 });
      pen.setLineDash(points.record.time[place] === null ? [6, 5] : []);
      pen.beginPath();
      trace(pen, place);
      pen.stroke();
      pen.setLineDash([]);
      points.shown.forEach((_, axis) => {
        pen.beginPath();
        pen.arc(x(axis), yOf(axis, place), 4.5, 0, 7);
        pen.fill();
      });
    }
    for (const [name, range] of Object.entries(brush)) {
      const axis = axisOf(name);
      if (axis < 0) continue; // folded away
      const [low, high] = axis === last() ? range.map(yTime) : [bandEdge(axis, range[0] - 0.5), bandEdge(axis, range[1] + 0.5)];
      const left = x(axis) - 7;
      Object.assign(pen, { globalAlpha: 0.22, fillStyle: chosen });
      pen.fillRect(left, high, 14, low - high);
      Object.assign(pen, { globalAlpha: 1, strokeStyle: chosen, lineWidth: 1.5 });
      pen.strokeRect(left, high, 14, low - high);
    }
    axes(pen, knob);
  }

  const named = () => [...points.shown.map((knob) => points.names[knob]), "time"];
  const bandEdge = (axis, digit) => bottom - ((digit + 0.5) / points.values[points.shown[axis]].length) * (bottom - TOP);

  // The axis at a point, or -1; and what a drag along it keeps.
  function axisAt(left) {
    const axis = Math.round(((left - LEFT) / (wide - LEFT - RIGHT)) * last());
    return axis >= 0 && axis <= last() && Math.abs(x(axis) - left) < 12 ? axis : -1;
  }

  function between(axis, from, to) {
    const [low, high] = [Math.max(from, to), Math.min(from, to)].map((y) => (bottom - Math.min(Math.max(y, TOP), bottom)) / (bottom - TOP));
    const count = points.values[points.shown[axis]]?.length;
    if (count) return [low, high].map((share) => Math.min(Math.floor(share * count), count - 1));
    const time = (share) => points.best * Math.exp(share * Math.log(points.worst / points.best));
    return [time(low) * (low > 0 ? 1 : 0), time(high)];
  }

  // Names stand below their axes in as few rows as keep them apart; the whole of each is on the picture.
  function nameRows(pen, names) {
    pen.font = `bold ${FONT}`; // as wide as the name of the chosen axis will be
    const boxes = names.map((name, axis) => {
      const half = pen.measureText(name).width / 2;
      const middle = Math.min(Math.max(x(axis), half + 2), wide - half - 2);
      return { name, middle, left: middle - half - 5, right: middle + half + 5 };
    });
    const ends = [];
    for (const box of boxes) {
      const free = ends.findIndex((end) => end <= box.left);
      box.row = free < 0 ? ends.length : free;
      ends[box.row] = box.right;
    }
    return boxes;
  }

  function axes(pen, chosen) {
    const [ink, quiet, ground] = [root, root.querySelector(".counts"), root.querySelector(".paper")].map((one) => getComputedStyle(one).color);
    for (let axis = 0; axis <= last(); axis += 1) {
      Object.assign(pen, { strokeStyle: axis === chosen ? ink : quiet, lineWidth: axis === chosen ? 2.5 : 1, font: FONT });
      pen.beginPath();
      pen.moveTo(x(axis), TOP);
      pen.lineTo(x(axis), bottom);
      pen.stroke();
      const knob = points.shown[axis];
      const marks = axis < last() ? points.values[knob].map((value, digit) => [value, y(knob, digit)])
        : [[`${points.best.toFixed(1)} us`, bottom], [`${points.worst.toFixed(1)} us`, TOP]];
      Object.assign(pen, { textAlign: axis < last() ? "right" : "left", fillStyle: ink, strokeStyle: ground, lineWidth: 3 });
      for (const [words, at] of marks) {
        const side = x(axis) + (axis < last() ? -6 : 6);
        pen.strokeText(words, side, at + 4);
        pen.fillText(words, side, at + 4);
      }
    }
    Object.assign(pen, { textAlign: "center", fillStyle: ink });
    for (const [axis, { name, middle, row }] of nameRows(pen, named()).entries()) {
      pen.font = axis === chosen ? `bold ${FONT}` : FONT;
      pen.fillText(name, middle, bottom + 20 + NAME * row);
    }
  }

  // The measured configuration whose line runs closest to a point; among equals the fastest.
  function nearest(left, top) {
    const axes = last();
    const where = Math.min(Math.max(((left - LEFT) / (wide - LEFT - RIGHT)) * axes, 0), axes - 1e-6);
    const axis = Math.floor(where);
    const height = (i, at) => (at < axes ? yOf(at, i) : yTime(points.record.time[i]));
    let [found, least] = [-1, Infinity];
    for (const i of points.byTime) {
      if (!keeps(points, brush, i)) continue;
      const here = height(i, axis) + (height(i, axis + 1) - height(i, axis)) * (where - axis);
      if (Math.abs(here - top) < least - 1e-6) [found, least] = [i, Math.abs(here - top)];
    }
    return found;
  }

  return { paintBase, paint, nearest, ramp, level, axisAt, between };
}

