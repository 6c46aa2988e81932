// Gives each view's frame the height and the theme of its page. Frames of files cannot be looked into, so they are told
// and say it.
document.documentElement.classList.add("scripts");
const frames = () => document.querySelectorAll("figure.view iframe");
window.addEventListener("message", (event) => {
  const high = Number(event.data?.high);
  if (!(high > 0)) return;
  for (const frame of frames()) {
    if (frame.contentWindow === event.source) {
      frame.style.height = `${Math.min(high + 34, 4000)}px`;
      tell(frame);
    }
  }
});
const dark = () => {
  const theme = document.body.dataset.theme;
  return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};
const tell = (frame) => frame.contentWindow?.postMessage({ dark: dark() }, "*");
const all = () => frames().forEach(tell);
window.addEventListener("DOMContentLoaded", () => new MutationObserver(all).observe(document.body, { attributes: true }));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
