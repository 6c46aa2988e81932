// Motion that the step-through views share: a clock whose time a test can set, and swarms that travel along paths. The
// text of a view's own file follows. Who asked for less motion sees no flight: what would travel is there at once.

const SVG_NS = "http://www.w3.org/2000/svg";
const CALM = window.matchMedia("(prefers-reduced-motion: reduce)");
const LANES_WIDE = 8; // a warp's 32 lanes fly as four rows of eight
const DOT = 4.8;

function svgNode(name, attributes) {
  const made = document.createElementNS(SVG_NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const smooth = (t) => t * t * (3 - 2 * t);

// A clock for one flight at a time. `start(frame, seconds, landed)` calls `frame(t)` once a frame, t from 0 to 1, then
// `landed()`; `hold` stops the time and `go` lets it run on; `land` ends the flight at once; `set(t)` shows a moment and
// holds there.
function flightClock() {
  let flight = null; // { frame, seconds, landed, t, began, request }

  function tick(now) {
    flight.began ??= now - flight.t * flight.seconds * 1000;
    flight.t = Math.min(1, (now - flight.began) / (flight.seconds * 1000));
    if (flight.t >= 1) return land();
    flight.frame(flight.t);
    flight.request = requestAnimationFrame(tick);
  }

  function start(frame, seconds, landed) {
    land();
    flight = { frame, seconds, landed, t: 0, began: null, request: 0 };
    frame(0);
    flight.request = requestAnimationFrame(tick);
  }

  function hold() {
    if (!flight) return;
    cancelAnimationFrame(flight.request);
    flight.began = null;
  }

  function go() {
    if (!flight) return;
    hold();
    flight.request = requestAnimationFrame(tick);
  }

  function land() {
    if (!flight) return;
    const { request, landed } = flight;
    cancelAnimationFrame(request);
    flight = null;
    landed();
  }

  function set(t) {
    if (!flight) return;
    hold();
    if (t >= 1) return land();
    flight.t = t;
    flight.frame(t);
  }

  return { start, hold, go, land, set, flying: () => Boolean(flight) };
}

// Squares in formation, around (0, 0), one for each lane that takes part.
function formation(lanes) {
  const wide = Math.min(LANES_WIDE, lanes);
  const rows = Math.ceil(lanes / wide);
  const squares = Array.from({ length: lanes }, (_, i) => {
    const [x, y] = [(i % wide) - wide / 2, Math.floor(i / wide) - rows / 2];
    return `M${(x * DOT).toFixed(1)} ${(y * DOT).toFixed(1)}h${DOT - 1}v${DOT - 1}h${1 - DOT}z`;
  });
  return { d: squares.join(""), wide: wide * DOT, high: rows * DOT };
}

// Swarms in `layer`, along paths: `ways` are { d, lanes, face, from, to } with the part of the time in which each flies.
// Gives `frame(t)` for the clock.
function swarms(layer, ways) {
  const made = ways.map(({ d, lanes, face, from = 0, to = 1 }) => {
    const track = svgNode("path", { d, class: "track" });
    const { d: squares, wide, high } = formation(lanes);
    const group = svgNode("g", { class: "swarm" });
    const ground = svgNode("rect", { class: "ground", x: -wide / 2 - 2, y: -high / 2 - 2, width: wide + 3, height: high + 3, rx: 2 });
    group.append(ground, svgNode("path", { d: squares, class: `lanes ${face}` }));
    layer.append(track, group);
    return { track, group, length: track.getTotalLength(), from, to };
  });
  return (t) => {
    for (const { track, group, length, from, to } of made) {
      const part = Math.max(0, Math.min(1, (t - from) / (to - from)));
      const { x, y } = track.getPointAtLength(smooth(part) * length);
      group.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)})`);
      group.setAttribute("visibility", t < from ? "hidden" : "visible");
    }
  };
}
