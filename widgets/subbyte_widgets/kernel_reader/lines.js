// Pieces of the kernel reader: elements, and a line of code in which what is searched for is marked.

function node(tag, name, words) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (words !== undefined) made.textContent = words;
  return made;
}

// The number of the line at which a kernel begins: macros, helpers and a declaration may stand before it.
const signature = (lines) => Math.max(0, lines.findLastIndex((line) => line.includes("__global__")));

// An editor around the reader opens there.
function openEditor(root) {
  const text = root.closest(".sb-editing")?.querySelector("textarea");
  if (!text || text.scrollTop) return;
  const style = getComputedStyle(text);
  text.scrollTop = signature(text.value.split("\n")) * parseFloat(style.lineHeight) + parseFloat(style.paddingTop);
}

function code(words, query) {
  const made = node("code");
  let rest = words;
  for (let at = query ? rest.toLowerCase().indexOf(query) : -1; at >= 0; at = rest.toLowerCase().indexOf(query)) {
    made.append(rest.slice(0, at), node("mark", "", rest.slice(at, at + query.length)));
    rest = rest.slice(at + query.length);
  }
  made.append(rest);
  return made;
}

