// Around every view: says to the kernel whether a browser shows it, for a hidden view need not follow a selection, and
// fades it while the kernel works on what it shows next.
let sights = 0;

function sighted(render) {
  return ({ model, el }) => {
    let end = null;
    try {
      end = render({ model, el });
    } catch (error) {
      const words = document.createElement("p");
      words.setAttribute("role", "alert");
      words.textContent = `This view could not be drawn: ${error.message}`;
      el.replaceChildren(words);
      throw error;
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
}

