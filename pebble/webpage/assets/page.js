// What every part of the page shares: its data, elements, words for numbers, colours, and the player.
const data = JSON.parse(document.getElementById("data").textContent);

// Text from a document only ever becomes a text node or an attribute, never markup.
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function bytesText(count) {
  for (const [limit, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (count >= limit) return `${Number((count / limit).toPrecision(4))} ${unit}`;
  }
  return `${count} B`;
}

function sizeText(count) {
  for (const [limit, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (count >= limit) return `${Number((count / limit).toPrecision(4))} ${unit}`;
  }
  return `${count} B`;
}

function widgets(kind, start) {
  for (const root of document.querySelectorAll(".widget")) {
    const found = data[root.dataset.id];
    if (found.kind === kind) start(root, found);
  }
}

// Buttons, a slider and a speed for `count` steps; show(step) is called with 0 (before the first) to count.
function player(root, count, what, show) {
  let step = 0;
  let timer = null;
  const slider = element("input", { type: "range", min: 0, max: count, value: 0, step: 1, "aria-label": what });
  const speed = element("select", { "aria-label": "speed" });
  for (const [name, delay] of [["slow", 600], ["medium", 150], ["fast", 30]]) {
    speed.append(element("option", { value: delay }, name));
  }
  speed.value = count > 200 ? "30" : count > 40 ? "150" : "600";

  function go(to) {
    step = Math.max(0, Math.min(count, to));
    slider.value = step;
    slider.setAttribute("aria-valuetext", `${what} ${step} of ${count}`);
    show(step, timer !== null);
  }
  function stop() {
    clearTimeout(timer);
    timer = null;
    play.textContent = "Play";
    show(step, false);
  }
  function tick() {
    if (step >= count) return stop();
    go(step + 1);
    timer = setTimeout(tick, Number(speed.value));
  }
  function button(text, label, action) {
    const made = element("button", { type: "button", "aria-label": label }, text);
    made.addEventListener("click", action);
    return made;
  }
  function by(change) {
    if (timer !== null) stop();
    go(step + change);
  }
  const play = element("button", { type: "button" }, "Play");
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (step >= count) step = 0;
    play.textContent = "Pause";
    timer = setTimeout(tick, 0);
  });
  slider.addEventListener("input", () => {
    const to = Number(slider.value);
    if (timer !== null) stop();
    go(to);
  });
  root.append(element("div", { class: "controls" },
    button("|◀", "to the start", () => by(-count)), button("◀", "one step back", () => by(-1)), play,
    button("▶", "one step on", () => by(1)), button("▶|", "to the end", () => by(count)), slider, speed));
  return { go: (to) => by(to - step), by };
}

const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

function tellTheme() {
  theme.setAttribute("aria-pressed", String(dark()));
}

theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  tellTheme();
});
system.addEventListener("change", tellTheme);
tellTheme();
