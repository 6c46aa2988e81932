// The live plane composition: all it does is shared by the views that reveal their picture.

function render({ model, el }) {
  return revealer({ model, el, name: "sb-planes", label: "Planes of one instruction; up and down arrow keys follow another output channel" });
}

export default { render };
