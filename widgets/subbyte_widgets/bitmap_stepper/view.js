// The live bitmap stepper: all it does is shared by the views that reveal their picture.

function render({ model, el }) {
  return revealer({ model, el, name: "sb-bitmap", label: "A sparse product; up and down arrow keys go to other OHMMA, with Shift to other k" });
}

export default { render };
