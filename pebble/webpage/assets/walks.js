// Tile walks: one player, one or two orders side by side.
const CELL = 20;
const GAP = 28;

widgets("walk", (root, walk) => {
  const views = element("div", { class: "views" });
  const count = Math.max(...walk.orders.map((order) => order.blocks.length));
  const shown = [];
  const control = player(root, count, "tile", (step, playing) => {
    for (const view of shown) view.show(step, playing);
  });
  root.append(views);
  shown.push(walkView(views, walk, 0, control));
  if (walk.orders.length > 1) shown.push(walkView(views, walk, walk.orders.length - 1, control));
  control.go(count);  // where what the orders have fetched can be compared
});

function walkView(root, walk, first, control) {
  const select = element("select");
  walk.orders.forEach((order, i) => select.append(element("option", { value: i }, order.name)));
  select.value = first;
  const svg = drawn("svg", { class: "walk", tabindex: 0, role: "img" });
  const figures = element("p", { class: "figures" });
  const readout = element("p", { class: "readout", role: "status" });
  root.append(element("div", { class: "view" }, element("label", {}, "order", select), svg, figures, readout));
  let order, number, cells, step = 0, chosen = [0, 0, 0];

  function load() {
    order = walk.orders[Number(select.value)];
    cells = walkCells(svg, order.grids);
    chosen = [0, 0, 0];
    number = new Map(order.blocks.flatMap((block, i) => block[0].map((tile) => [tile.join(), i])));
    svg.setAttribute("aria-label",
      `Tile walk of ${order.name}. Arrow keys choose a tile, Enter goes to its step.`);
  }

  function show(to, playing) {
    step = Math.min(to, order.blocks.length);
    const now = order.blocks[step - 1];
    let fetched = 0, touched = 0, hit = 0;
    for (const cell of cells.values()) cell.names = ["tile"];
    order.blocks.slice(0, step).forEach(([tiles, , turn, moved, reads], i) => {
      const names = ["tile", "done", kindOf(reads)];  // of a tile that is written again, the last time counts
      fetched += moved;
      for (const [all, found] of reads) { touched += all; hit += found; }
      if (turn === now[2]) names.push("wave");
      if (i === step - 1) names.push("now");
      for (const tile of tiles) cells.get(tile.join()).names = names;
    });
    for (const cell of cells.values()) {
      cell.group.setAttribute("class", cell.names.join(" "));
      if (cell.names[2]) cell.mark.setAttribute("d", glyph(cell, cell.names[2]));
    }
    const rate = touched ? `, ${(100 * hit / touched).toFixed(1)} % of the tiles read were in the cache` : "";
    const all = step === order.blocks.length ? "in all" : "so far";
    figures.textContent = `Tile ${step} of ${order.blocks.length}: ${bytesText(fetched)} fetched ${all}${rate}. ` +
      `The whole problem moves ${bytesText(order.moved)}.`;
    readout.setAttribute("aria-live", playing ? "off" : "polite");
    readout.textContent = now ? tell(now, step) : "Not begun.";
  }

  function tell(block, at) {
    const [[[grid, row, column]], sm, turn, fetched, reads] = block;
    const found = reads.flatMap(([all, hit], i) => (all ? [`${order.reads[i]} ${hit} of ${all} hit`] : []));
    return `${order.grids[grid][0]} tile (${row}, ${column}): number ${at}, tile ${turn + 1} of SM ${sm}; ` +
      `${found.join(", ")}; ${bytesText(fetched)} fetched.`;
  }

  function point(place) {
    cells.get(chosen.join())?.group.classList.remove("at");
    chosen = place;
    const at = number.get(place.join());
    cells.get(place.join()).group.classList.add("at");
    if (at !== undefined) readout.textContent = tell(order.blocks[at], at + 1);
  }

  function under(event) {
    return event.target.closest("[data-tile]")?.dataset.tile;
  }
  svg.addEventListener("pointerover", (event) => {
    const key = under(event);
    if (key) point(key.split(",").map(Number));
  });
  svg.addEventListener("click", (event) => {
    const key = under(event);
    if (key) control.go((number.get(key) ?? 0) + 1);
  });
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) {
      event.preventDefault();
      const place = [chosen[0], chosen[1] + move[0], chosen[2] + move[1]];
      const [, rows] = order.grids[place[0]];
      if (place[1] < 0 && place[0] > 0) { place[0] -= 1; place[1] = order.grids[place[0]][1] - 1; }
      if (place[1] >= rows && place[0] + 1 < order.grids.length) { place[0] += 1; place[1] = 0; }
      if (cells.has(place.join())) point(place);
    } else if (event.key === "Enter") {
      control.go((number.get(chosen.join()) ?? 0) + 1);
    }
  });
  select.addEventListener("change", () => { load(); show(step, false); });
  load();
  return { show };
}

// Whether half or more of the tiles was there: of the first operand that is read, and of the others together.
function kindOf(reads) {
  const [first, ...rest] = reads.filter(([all]) => all > 0);
  const there = (all, found) => all > 0 && 2 * found >= all;
  const left = first !== undefined && there(...first);
  const right = there(...rest.reduce(([a, b], [all, found]) => [a + all, b + found], [0, 0]));
  return left && right ? "hit" : left ? "left" : right ? "right" : "miss";
}

// A disc, half a disc or a cross: told apart without colour.
function glyph({ x, y }, kind) {
  const a = x + CELL / 2, b = y + CELL / 2, r = CELL * 0.32;
  const half = (turn) => `M${a} ${b - r}A${r} ${r} 0 0 ${turn} ${a} ${b + r}Z`;
  if (kind === "miss") return `M${a - r} ${b - r}L${a + r} ${b + r}M${a - r} ${b + r}L${a + r} ${b - r}`;
  return (kind === "right" ? "" : half(0)) + (kind === "left" ? "" : half(1));
}

// The cells of every grid, one grid below the other, by "grid,row,column".
function walkCells(svg, grids) {
  const cells = new Map();
  svg.replaceChildren();
  let top = 0;
  grids.forEach(([name, rows, columns], grid) => {
    svg.append(drawn("text", { x: 1, y: top + 19 }, `${name}: ${rows} × ${columns} tiles`));
    top += GAP;
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const x = 2 + column * CELL, y = top + row * CELL;
        const mark = drawn("path", { class: "glyph" });
        const group = drawn("g", { class: "tile", "data-tile": `${grid},${row},${column}` },
          drawn("rect", { class: "cell", x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2 }), mark);
        svg.append(group);
        cells.set([grid, row, column].join(), { group, mark, x, y, names: [] });
      }
    }
    top += rows * CELL + 8;
  });
  const wide = Math.max(24, ...grids.map((grid) => grid[2])) * CELL + 4;
  svg.setAttribute("viewBox", `0 0 ${wide} ${top}`);
  return cells;
}
