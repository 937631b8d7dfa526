// Curves and band heights: the pictures are there; this moves the line across them and tells the values.

// Pointer and arrow keys over a plot whose points lie at `xs`; tell(i) is called with the chosen one.
function cross(svg, xs, tell) {
  const line = svg.querySelector(".cursor");
  const [, top, bottom] = line.getAttribute("d").match(/^M[-\d.]+ ([-\d.]+)V([-\d.]+)$/);
  let chosen = -1;
  function choose(i) {
    chosen = Math.max(0, Math.min(xs.length - 1, i));
    line.setAttribute("d", `M${xs[chosen]} ${top}V${bottom}`);
    line.setAttribute("visibility", "visible");
    tell(chosen);
  }
  svg.addEventListener("pointermove", (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    let nearest = 0;
    xs.forEach((x, i) => {
      if (Math.abs(x - place.x) < Math.abs(xs[nearest] - place.x)) nearest = i;
    });
    choose(nearest);
  });
  svg.addEventListener("keydown", (event) => {
    const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: xs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  return choose;
}

widgets("curve", (root, curve) => {
  const readout = root.querySelector(".readout");
  const bound = curve.series[0];
  const choose = cross(root.querySelector("svg.plot"), curve.x, (i) => {
    const told = curve.series.slice(1).map((s) => [s.name, s.values[i]]).sort((a, b) => a[1] - b[1]);
    const best = told.slice(0, 5).map(([name, value]) => {
      const over = bound.values[i] > 0 ? ` (${(value / bound.values[i]).toFixed(2)}×)` : "";
      return `${name} ${bytesText(value)}${over}`;
    });
    const at = `At ${sizeText(curve.capacities[i])}: bound ${bytesText(bound.values[i])}`;
    readout.textContent = [at, ...best].join("; ") + (told.length > 5 ? `; ${told.length - 5} others move as much or more` : "");
  });
  choose(curve.start);
});

widgets("bands", (root, bands) => {
  const readout = element("p", { class: "readout", role: "status" });
  const slider = element("input", {
    type: "range", min: 0, max: bands.heights.length - 1, value: 0, step: 1, "aria-label": "rows of a band",
  });
  const choose = cross(root.querySelector("svg.plot"), bands.x, (i) => {
    const height = bands.heights[i];
    slider.value = i;
    slider.setAttribute("aria-valuetext", `${height.rows} rows`);
    const begin = `${height.rows} rows a band, ${height.bands} ${height.bands === 1 ? "band" : "bands"}`;
    const memory = sizeText(bands.capacity);
    const told = height.moved_bytes === null
      ? [begin, `does not fit in ${memory}`]
      : [begin, `moves ${bytesText(height.moved_bytes)} (${(height.moved_bytes / bands.bound).toFixed(2)}× the bound)`,
        `holds ${sizeText(height.room_bytes)} of ${memory}`];
    const near = bands.simulated.filter((s) => s.rows === nearest(bands.simulated, height.rows));
    const simulated = near.map((s) => `${s.name} (${s.rows} rows) simulated: ${bytesText(s.moved_bytes)}`);
    readout.textContent = [...told, ...simulated].join("; ") + ".";
  });
  slider.addEventListener("input", () => choose(Number(slider.value)));
  root.append(element("div", { class: "controls" }, element("label", {}, "rows of a band"), slider), readout);
  const fitting = bands.heights.map((h) => h.moved_bytes ?? Infinity);
  choose(fitting.indexOf(Math.min(...fitting)));
});

// The simulated height that is nearest, by ratio.
function nearest(simulated, rows) {
  const far = (s) => Math.abs(Math.log(s.rows / rows));
  return simulated.reduce((best, s) => (best === null || far(s) < far(best) ? s : best), null)?.rows;
}

// A long table, narrowed to the rows that have what is typed.
for (const place of document.querySelectorAll(".filtered")) {
  const field = element("input", { type: "search", placeholder: "words of a row", maxlength: 100 });
  const count = element("span", { role: "status" });
  const rows = [...place.nextElementSibling.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let left = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      left += row.hidden ? 0 : 1;
    }
    count.textContent = `${left} of ${rows.length} rows`;
  });
  place.append(element("div", { class: "controls" }, element("label", {}, "show rows with", field), count));
}
