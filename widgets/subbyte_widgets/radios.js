// Radio buttons for `names` behind a word; made anew they keep the keyboard's focus.
function radios(row, word, label, names, chosen, choose) {
  const focused = row.contains(document.activeElement);
  const group = `sb-choice-${Math.random().toString(36).slice(2)}`;
  const buttons = names.map((name) => `<label><input type="radio" name="${group}" value="${name}"
    data-lm-suppress-shortcuts="true"${name === chosen ? " checked" : ""}>${name}</label>`);
  row.innerHTML = `${word} <span class="ways sb-ways" role="radiogroup" aria-label="${label}">${buttons.join("")}</span>`;
  row.style.cssText = "display:flex;align-items:center;gap:8px";
  row.querySelectorAll("input").forEach((input) => input.addEventListener("change", () => choose(input.value)));
  if (focused) row.querySelector("input:checked")?.focus();
}
