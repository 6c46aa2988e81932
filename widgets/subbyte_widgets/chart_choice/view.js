// The live choice of charts: all it does is shared by the views in which things are chosen.

function render({ model, el }) {
  return picker({ model, el, name: "sb-charts" });
}

export default { render };
