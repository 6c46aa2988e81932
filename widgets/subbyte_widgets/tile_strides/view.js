// The live tile strides: turns from one leading dimension to another.

function render({ model, el }) {
  return turner({ model, el, name: "sb-strides", word: "leading dimension" });
}

export default { render };
