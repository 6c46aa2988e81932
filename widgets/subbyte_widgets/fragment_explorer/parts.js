// Pieces of the fragment explorer: parts of a picture, and a button of which one in its group is chosen.

const SVG = "http://www.w3.org/2000/svg";

function node(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}

function label(x, y, content, name) {
  const made = node("text", { x, y, class: name });
  made.textContent = content;
  return made;
}

function radio(words, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
  button.setAttribute("role", "radio");
  button.dataset.lmSuppressShortcuts = "true";
  button.addEventListener("click", act);
  return button;
}

