// The live threshold folding: turns from one gamma to another.

function render({ model, el }) {
  return turner({ model, el, name: "sb-folding", word: "gamma" });
}

export default { render };
