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

function broken(el, error) {
  const words = document.createElement("p");
  words.setAttribute("role", "alert");
  words.textContent = `This view could not be drawn: ${error.message}`;
  el.replaceChildren(words);
  throw error;
}

function sighted(render, packed) {
  const start = ({ model, el }) => {
    let end = null;
    try {
      end = render({ model, el });
    } catch (error) {
      broken(el, error);
    }
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
    const eye = new IntersectionObserver((found) => tell(found.at(-1).isIntersecting), { rootMargin: "200px" });
    eye.observe(el);
    model.on("change:waiting", wait);
    wait();
    return () => {
      eye.disconnect();
      model.off("change:waiting", wait);
      tell(false);
      end?.();
      el.replaceChildren(); // the page keeps `el` of a view that is gone: it need not keep the picture
    };
  };
  if (!packed.length) return start;
  return async ({ model, el }) => start({ model: await unpacking(model, packed).catch((error) => broken(el, error)), el });
}

