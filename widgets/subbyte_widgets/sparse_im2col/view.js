// The live sparse im2col: all it does is shared by the views that reveal their picture.

function render({ model, el }) {
  return revealer({ model, el, name: "sb-im2col", label: "Sparse im2col of an image row; up and down arrow keys go to other s, with Shift to other r" });
}

export default { render };
