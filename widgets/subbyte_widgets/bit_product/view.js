// The live bit products: all it does is shared by the views that reveal their picture.

function render({ model, el }) {
  return revealer({ model, el, name: "sb-bits", label: "A sum from its bits; up and down arrow keys go to other channels and taps" });
}

export default { render };
