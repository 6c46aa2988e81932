// The map of two knobs as a table of cells; none where there is no such map. The maps are recorded once for every two
// knobs; the other way round is the same map turned.
function cellsOf(maps, knobs, [across, down], statistic, tint) {
  const turned = maps[`${across}|${down}`] === undefined;
  const found = maps[turned ? `${down}|${across}` : `${across}|${down}`];
  if (!found) return [];
  const table = node("table");
  const first = node("tr");
  first.append(node("th", "", `${down} \u2193`), ...knobs[across].map((value) => node("th", "", value)));
  table.append(first);
  knobs[down].forEach((value, i) => {
    const row = node("tr");
    row.append(node("th", "", value));
    knobs[across].forEach((_, j) => {
      const at = turned ? j * knobs[down].length + i : i * knobs[across].length + j;
      const time = found[statistic][at];
      const cell = node("td", time === null ? "none" : "", time === null ? found.reason[at].split(":")[0] : time.toFixed(2));
      cell.append(node("small", "", time === null ? "" : `${found.measured[at]} of ${found.measured[at] + found.refused[at]}`));
      cell.title = time === null ? found.reason[at] : `${found.measured[at]} measured, ${found.refused[at]} refused; a click selects the fastest`;
      Object.assign(cell.dataset, { i, j, index: found.index[at] });
      if (time !== null) {
        const rgb = tint(time);
        Object.assign(cell.style, { background: `rgb(${rgb})`, color: inkOn(rgb) });
      }
      row.append(cell);
    });
    table.append(row);
  });
  return [table];
}
