// Pebblings: the boxes are there; this puts pebbles on them, move by move.
widgets("pebbling", (root, game) => {
  const svg = root.querySelector("svg.dag");
  const nodes = game.nodes.map((_, i) => svg.querySelector(`[data-node="${i}"]`));
  const edges = [...svg.querySelectorAll(".edge")];
  const readout = element("p", { class: "readout", role: "status" });
  const control = player(root, game.moves.length, "move", (step, playing) => {
    const state = played(game, step);
    const [op, node] = step ? game.moves[step - 1] : ["", -1];
    nodes.forEach((box, i) => {
      const sms = [...state.red[i]].sort((a, b) => a - b);
      const names = ["node"];
      if (sms.length) names.push("in-red");
      if (state.blue[i]) names.push("in-blue");
      if (state.made[i]) names.push("made");
      if (i === node) names.push("now");
      box.setAttribute("class", names.join(" "));
      box.querySelector(".sm").textContent = game.sms > 1 ? sms.join() : "";
      const where = [sms.length ? "fast memory" : "", state.blue[i] ? "slow memory" : ""].filter(Boolean);
      box.querySelector("title").textContent = `${game.nodes[i].name}: ${where.join(" and ") || "nowhere"}`;
    });
    const computes = op === "compute" || op === "slide";
    for (const edge of edges) edge.classList.toggle("on", computes && Number(edge.dataset.to) === node);
    readout.setAttribute("aria-live", playing ? "off" : "polite");
    const done = step ? `Move ${step} of ${game.moves.length}: ${game.moves[step - 1][4]}.` : "Before the first move.";
    const copies = game.sms > 1 ? `, copies ${state.copies}` : "";
    readout.textContent = `${done} Loads ${state.loads}, stores ${state.stores}${copies}; ` +
      `values in fast memory ${state.held}.`;
  });
  root.append(readout);
  svg.addEventListener("keydown", (event) => {
    const change = { ArrowRight: 1, ArrowLeft: -1, Home: -game.moves.length, End: game.moves.length }[event.key];
    if (change === undefined) return;
    event.preventDefault();
    control.by(change);
  });
  control.go(0);
});

// Where every pebble lies after so many moves.
function played(game, step) {
  const red = game.nodes.map(() => new Set());
  const blue = game.nodes.map((node) => node.blue);
  const made = game.nodes.map((node) => node.blue);
  const counted = { loads: 0, stores: 0, copies: 0 };
  for (const [op, node, source, sm] of game.moves.slice(0, step)) {
    if (node < 0) continue;
    if (op === "store") {
      blue[node] = true;
      counted.stores += 1;
    } else if (op === "delete") {
      red[node].delete(sm);
    } else {
      if (op === "slide" && source >= 0) red[source].delete(sm);
      if (op === "load") counted.loads += 1;
      if (op === "copy") counted.copies += 1;
      red[node].add(sm);
      made[node] = true;
    }
  }
  return { red, blue, made, ...counted, held: red.reduce((sum, sms) => sum + sms.size, 0) };
}
