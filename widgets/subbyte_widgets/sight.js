// Around every view: unpacks what travels packed, says to the kernel whether a browser shows the view, for a hidden one
// need not follow a selection, and fades it while the kernel works on what it shows next.
let sights = 0;
const PACKED = "deflate,";

// A value that was sent as deflated JSON in base64; any other is itself.
async function unpack(value) {
  if (typeof value !== "string" || !value.startsWith(PACKED)) return value;
  const bytes = Uint8Array.from(atob(value.slice(PACKED.length)), (letter) => letter.charCodeAt(0));
  const inflating = new DecompressionStream("deflate");
  const writer = inflating.writable.getWriter();
  writer.write(bytes);
  writer.close();
  return new Response(inflating.readable).json();
}

// The model with the packed traits of these names unpacked. Unpacking takes a moment: until then `get` gives what was
// there before, and a change of any trait is told afterwards, in order and once to each listener.
async function unpacking(model, names) {
  const came = new Map(); // name -> what was sent
  const says = new Map(); // name -> what that says
  const told = new Map(); // event -> listener -> the listener that waits
  const waiting = new Set();
  const behind = () => names.filter((name) => !came.has(name) || came.get(name) !== model.get(name));

  async function catchUp() {
    for (let late = behind(); late.length; late = behind()) {
      const sent = late.map((name) => model.get(name));
      const values = await Promise.all(sent.map(unpack));
      late.forEach((name, i) => came.set(name, sent[i]) && says.set(name, values[i]));
    }
    const listeners = [...waiting];
    waiting.clear();
    for (const listener of listeners) listener();
  }

  function tell(listener) {
    if (!waiting.size && !behind().length) return listener();
    waiting.add(listener);
    if (waiting.size === 1) catchUp();
    return undefined;
  }

  await catchUp();
  return {
    get: (name) => (says.has(name) ? says.get(name) : model.get(name)),
    set: (name, value) => model.set(name, value),
    save_changes: () => model.save_changes(),
    on(event, listener) {
      const own = told.get(event) ?? new Map();
      told.set(event, own.set(listener, () => tell(listener)));
      model.on(event, own.get(listener));
    },
    off(event, listener) {
      waiting.delete(listener);
      model.off(event, told.get(event)?.get(listener));
      told.get(event)?.delete(listener);
    },
  };
}

// JupyterLab draws a view before it is on the page, where nothing can be scrolled: `act` as soon as the element has a
// height. Gives what ends the wait.
function onceShown(element, act) {
  let high = element.clientHeight;
  const eye = new ResizeObserver(() => {
    const before = high;
    high = element.clientHeight;
    if (high && !before) act();
  });
  eye.observe(element);
  return () => eye.disconnect();
}

function broken(el, error) {
  const words = document.createElement("p");
  words.setAttribute("role", "alert");
  words.textContent = `This view could not be drawn: ${error.message}`;
  el.replaceChildren(words);
  throw error;
}

// A line above the picture says what is shown where that is not what was asked; next to controls its place is kept.
function noted(model, el) {
  const line = document.createElement("div");
  line.className = "note";
  line.setAttribute("role", "status");
  line.style.cssText = "font: 13px/1.4 var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); padding: 2px 4px; box-sizing: border-box";
  el.append(line);
  const say = () => {
    line.textContent = model.get("note") ?? "";
    line.style.minHeight = model.get("roomy") ? "calc(1.4em + 4px)" : "";
    line.hidden = !line.textContent && !model.get("roomy");
  };
  for (const name of ["note", "roomy"]) model.on(`change:${name}`, say);
  say();
  return () => {
    for (const name of ["note", "roomy"]) model.off(`change:${name}`, say);
  };
}

// Below every view: the keys that its parts take, which their names say to screen readers. Read when it is opened.
function keysOf(el) {
  const box = document.createElement("details");
  box.className = "keys";
  box.style.cssText = "font: 12.5px/1.4 var(--jp-ui-font-family, sans-serif); color: var(--jp-ui-font-color1, inherit); margin: 2px 4px";
  const head = document.createElement("summary");
  head.textContent = "? Keys";
  head.style.cursor = "pointer";
  head.dataset.lmSuppressShortcuts = "true";
  box.append(head);
  box.addEventListener("toggle", () => {
    const names = [...el.querySelectorAll("[role=application], [data-keys]")].filter((one) => !one.closest("[hidden]")).map((one) => one.ariaLabel.replace(/\s+/g, " "));
    const lines = [...new Set(names)].map((words) => Object.assign(document.createElement("div"), { textContent: words }));
    box.replaceChildren(head, ...lines);
  });
  el.append(box);
}

// What stands around views while one is on the page. Plotly writes its colours into its pictures: where they have the grey
// of charts without a theme of their own (INK in charts/style.py), words and lines take the page's ink. Tabs of views
// (sb-tabs) are as wide as their names, which ipywidgets would cut, and as dark as other words.
function around(el, grey = "rgb(119, 119, 119)", ink = "var(--jp-content-font-color1, #1f2328)") {
  const rule = (what) => `.js-plotly-plot [style*="${what}: ${grey}"] { ${what}: ${ink} !important; }`;
  const tabs = `.sb-tabs > .lm-TabBar .lm-TabBar-tab { flex: 0 1 auto !important; min-width: max-content !important; }
    .sb-tabs > .lm-TabBar .lm-TabBar-tabLabel { color: var(--jp-ui-font-color1, #1f2328); }
    .sb-tabs > .lm-TabBar { overflow-x: auto; }`;
  el.append(Object.assign(document.createElement("style"), { textContent: [rule("fill"), rule("stroke"), tabs].join(" ") }));
}

// ipywidgets gives screen readers no name for the handles of its sliders, its texts of many lines and its rows of tabs.
function named(el) {
  const output = el.closest(".jp-OutputArea") ?? el;
  for (const handle of output.querySelectorAll(".noUi-handle:not([aria-label])"))
    handle.ariaLabel = handle.closest(".widget-slider")?.querySelector(".widget-label")?.textContent ?? null;
  for (const field of output.querySelectorAll("textarea:not([aria-label])")) field.ariaLabel = field.placeholder;
  for (const tabs of output.querySelectorAll(".sb-tabs [role=tablist]:not([aria-label])")) tabs.ariaLabel = "views";
}

function sighted(render, packed) {
  const start = ({ model, el }) => {
    let end = null;
    const unsaid = noted(model, el);
    try {
      end = render({ model, el });
    } catch (error) {
      broken(el, error);
    }
    keysOf(el);
    around(el);
    let seen = false;
    function tell(now) {
      if (now === seen) return;
      seen = now;
      sights += now ? 1 : -1;
      model.set("in_sight", sights > 0);
      model.save_changes();
    }
    const wait = () => {
      const waiting = Boolean(model.get("waiting"));
      el.style.transition = waiting ? "opacity 0.2s 0.15s" : "";
      el.style.opacity = waiting ? 0.45 : "";
      el.setAttribute("aria-busy", String(waiting));
    };
    const look = (found) => {
      named(el); // here too: a view that has its height from the start is not shown once more
      tell(found.at(-1).isIntersecting);
    };
    const eye = new IntersectionObserver(look, { rootMargin: "200px" });
    eye.observe(el);
    const unnamed = onceShown(el, () => named(el));
    model.on("change:waiting", wait);
    wait();
    return () => {
      eye.disconnect();
      unnamed();
      model.off("change:waiting", wait);
      unsaid();
      tell(false);
      end?.();
      el.replaceChildren(); // the page keeps `el` of a view that is gone: it need not keep the picture
    };
  };
  if (!packed.length) return start;
  return async ({ model, el }) => start({ model: await unpacking(model, packed).catch((error) => broken(el, error)), el });
}

