// Radio buttons for `names` behind a word; made anew they keep the keyboard's focus.
function radios(row, word, label, names, chosen, choose) {
  const focused = row.contains(document.activeElement);
  const group = `sb-choice-${Math.random().toString(36).slice(2)}`;
  const button = `<label><input type="radio" name="${group}" data-lm-suppress-shortcuts="true"><span></span></label>`;
  row.innerHTML = `<span></span> <span class="ways sb-ways" role="radiogroup">${button.repeat(names.length)}</span>`;
  row.firstChild.textContent = word; // names may be a user's: text, never markup
  row.querySelector(".ways").setAttribute("aria-label", label);
  row.querySelectorAll("label").forEach(({ firstChild: input, lastChild: text }, i) => {
    [input.value, input.checked, text.textContent] = [names[i], names[i] === chosen, names[i]];
  });
  row.style.cssText = "display:flex;align-items:center;gap:8px";
  row.querySelectorAll("input").forEach((input) => input.addEventListener("change", () => choose(input.value)));
  if (focused) row.querySelector("input:checked")?.focus();
}
