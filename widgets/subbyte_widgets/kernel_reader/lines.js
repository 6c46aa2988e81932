// Pieces of the kernel reader: elements, and a line of code in which what is searched for is marked.

function node(tag, name, words) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (words !== undefined) made.textContent = words;
  return made;
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

