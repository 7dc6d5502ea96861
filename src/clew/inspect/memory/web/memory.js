/* The memory page: what was there at each frame, and the tables of one moment. */
"use strict";

const {kinds, places, times, changes, ends, lines, types} = clew.data;
const kindOf = places.map((place) => kinds.indexOf(place.kind));
const byId = (id) => document.getElementById(id);
const STRIDE = 256;

// -- the model: bytes by kind after each frame, and bytes by place at every 256th

const series = kinds.map(() => new Float64Array(times.length));
const kept = [];
{
  const now = new Float64Array(places.length), sums = kinds.map(() => 0);
  for (const [place, bytes] of Object.entries(clew.data.start)) {
    now[place] = bytes; sums[kindOf[place]] += bytes;
  }
  changes.forEach((change, frame) => {
    if (frame % STRIDE === 0) kept.push(now.slice());
    for (let i = 0; i < change.length; i += 2) {
      now[change[i]] += change[i + 1]; sums[kindOf[change[i]]] += change[i + 1];
    }
    sums.forEach((sum, kind) => { series[kind][frame] = sum; });
  });
}
const total = (frame) => series.reduce((sum, values) => sum + values[frame], 0);

/** Bytes by place after a frame. */
function stateAt(frame) {
  const block = Math.floor(frame / STRIDE), state = kept[block].slice();
  for (let f = block * STRIDE; f <= frame; f++) {
    for (let i = 0; i < changes[f].length; i += 2) state[changes[f][i]] += changes[f][i + 1];
  }
  return state;
}

let peak = 0;
times.forEach((_, frame) => { if (total(frame) > total(peak)) peak = frame; });

/** The iteration in which a frame lies. */
const roundOf = (frame) => clew.data.firstIteration + ends.filter((end) => end <= frame).length;

// -- what stands at places, grouped

const lineName = (line) => (line ? clew.place(line) : "before tracking");
const SORTS = {
  lines: {title: "Lines", key: (p) => (p.line ? `${p.line.file}:${p.line.line}` : ""), name: (p) => lineName(p.line), text: (p) => p.line && p.line.text},
  modules: {title: "Modules", key: (p) => p.module, name: (p) => p.module || "outside modules", text: () => null, note: (p) => types[p.module] || ""},
  operations: {title: "Operations", key: (p) => p.what, name: (p) => p.what, text: () => null},
  saved: {
    title: "Kept for backward",
    key: (p) => `${p.node} ${p.keeps} ${p.kept_by ? `${p.kept_by.file}:${p.kept_by.line}` : ""}`,
    name: (p) => `${p.node} keeps ${p.keeps}`,
    text: (p) => p.kept_by && `${lineName(p.kept_by)}  ${p.kept_by.text}`,
    only: (p) => p.node && p.kind !== "parameter",
  },
  compare: {title: "Compare", key: (p) => `${p.kind} ${p.line ? `${p.line.file}:${p.line.line}` : ""}`, name: (p) => lineName(p.line), text: (p) => p.line && p.line.text},
};

function grouped(state, sort) {
  const groups = new Map();
  state.forEach((bytes, index) => {
    const place = places[index];
    if (!bytes || !chart.shown[kindOf[index]] || (sort.only && !sort.only(place))) return;
    const key = sort.key(place);
    if (!groups.has(key)) groups.set(key, {key, place, bytes: 0, kinds: kinds.map(() => 0), parts: []});
    const group = groups.get(key);
    group.bytes += bytes; group.kinds[kindOf[index]] += bytes; group.parts.push([place, bytes]);
  });
  return [...groups.values()].sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes));
}

const searchText = (group) => group.parts.map(([p]) =>
  [p.line && `${p.line.file}:${p.line.line} ${p.line.text}`, p.module, p.what, p.kind, p.node].join(" ")).join(" ").toLowerCase();

// -- the panel

let sortName = "lines", openKey = null;

function showMoment() {
  const frame = chart.picked, sum = total(frame);
  const cause = causeOf(frame);
  const head = sortName === "compare" ? null : clew.el("div", {},
    clew.el("h2", {id: "moment-bytes"}, clew.bytes(sum), clew.el("small", {},
      `${sum.toLocaleString("en")} B${frame === peak ? " · the peak" : ""}`)),
    clew.el("div", {class: "when"}, `iteration ${roundOf(frame)} · ${clew.seconds(times[frame])}`,
      cause && ` · ${cause.what}${cause.module ? ` in ${cause.module}` : ""} · `,
      cause && cause.line && clew.el("code", {}, clew.place(cause.line))),
    stack(series.map((values) => values[frame]), sum));
  byId("moment").replaceChildren(...[head].filter(Boolean));
  showRows();
}

/** The place that the last change of a frame brought bytes to, or took them from. */
function causeOf(frame) {
  const change = changes[frame];
  for (let i = change.length - 2; i >= 0; i -= 2) if (change[i + 1] > 0) return places[change[i]];
  return change.length ? places[change[change.length - 2]] : null;
}

function stack(parts, whole) {
  return clew.el("div", {class: "stack"}, parts.map((bytes, kind) => bytes > 0 && clew.el("span", {
    style: `width:${100 * bytes / (whole || 1)}%;background:var(--kind-${kind})`,
    title: `${kinds[kind]} ${clew.bytes(bytes)}`,
  })));
}

function showRows() {
  const sort = SORTS[sortName], isDiff = sortName === "compare";
  const state = isDiff ? difference() : stateAt(chart.picked);
  const wanted = byId("filter").value.trim().toLowerCase();
  let groups = grouped(state, sort);
  const largest = Math.max(1, ...groups.map((group) => Math.abs(group.bytes)));
  if (wanted) groups = groups.filter((group) => searchText(group).includes(wanted));
  const rows = groups.slice(0, 300).map((group) => row(group, sort, largest, isDiff));
  byId("rows").replaceChildren(...(rows.length ? rows : [clew.el("p", {class: "empty"}, emptyText(isDiff))]));
}

function emptyText(isDiff) {
  if (byId("filter").value) return "Nothing here matches the filter.";
  if (isDiff) return "No line holds more or less at the end of the one than at the end of the other.";
  return sortName === "saved" ? "No graph keeps anything at this moment." : "Nothing was there at this moment.";
}

function row(group, sort, largest, isDiff) {
  const isOpen = group.key === openKey, bytes = group.bytes;
  const sign = isDiff ? (bytes > 0 ? "+" : "−") : "", style = isDiff ? (bytes > 0 ? "more" : "less") : "";
  const note = sort.note ? sort.note(group.place) : sortName === "saved" ? group.place.reason : kindNames(group);
  return clew.el("div", {class: `row ${isOpen ? "open" : ""}`, onclick: (event) => {
    if (event.target.closest(".more")) return;
    openKey = isOpen ? null : group.key; showRows();
  }},
    clew.el("div", {class: "top"},
      clew.el("span", {class: "name"}, sort.name(group.place)),
      clew.el("span", {class: "note", title: note}, note),
      clew.el("span", {class: `bytes ${style}`}, sign + clew.bytes(Math.abs(bytes)),
        !isDiff && clew.el("small", {}, `${(100 * bytes / (total(chart.picked) || 1)).toFixed(bytes * 1000 < total(chart.picked) ? 1 : 0)} %`))),
    sort.text(group.place) && clew.el("div", {class: "text"}, sort.text(group.place)),
    stack(group.kinds.map(Math.abs), largest),
    isOpen && more(group));
}

function kindNames(group) {
  return group.kinds.map((bytes, kind) => [Math.abs(bytes), kinds[kind]]).filter(([bytes]) => bytes)
    .sort((a, b) => b[0] - a[0]).map(([, name]) => name).join(", ");
}

/** Everything known of what a row stands for. */
function more(group) {
  const line = sortName === "saved" ? group.place.kept_by : group.place.line;
  const known = line && lines[`${line.file}:${line.line}`];
  const parts = [...group.parts].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 40);
  return clew.el("div", {class: "more"},
    sortName !== "modules" && known && clew.source(known),
    clew.el("table", {class: "list"}, parts.map(([place, bytes]) => clew.el("tr", {},
      clew.el("td", {class: "number"}, clew.bytes(bytes)),
      clew.el("td", {}, clew.el("span", {class: "kind"}, swatch(kinds.indexOf(place.kind)), place.kind)),
      clew.el("td", {}, place.what, place.module && ` in ${place.module}`, sortName !== "lines" && place.line && ` at ${clew.place(place.line)}`,
        place.node && clew.el("div", {class: "because"},
          `${place.node} (${place.kept_by ? clew.place(place.kept_by) : "?"}) keeps it as ${place.keeps}`,
          place.reason && `: ${place.reason}`))))));
}

const swatch = (kind) => clew.el("i", {style: `background:var(--kind-${kind})`});

// -- two iterations

function difference() {
  const [from, to] = ["from", "to"].map((id) => stateAt(ends[Number(byId(id).value)] - 1));
  return to.map((bytes, place) => bytes - from[place]);
}

function showCompare() {
  const options = (chosen) => ends.map((_, i) =>
    clew.el("option", {value: i, selected: i === chosen}, String(clew.data.firstIteration + i)));
  const choose = () => { showSum(); showRows(); };
  const sum = clew.el("b", {id: "compare-sum"});
  byId("compare").replaceChildren("from the end of iteration",
    clew.el("select", {id: "from", onchange: choose}, options(Math.min(1, ends.length - 1))), "to that of",
    clew.el("select", {id: "to", onchange: choose}, options(ends.length - 1)), sum);
  showSum();
}

function showSum() {
  const bytes = difference().reduce((sum, part) => sum + part, 0);
  byId("compare-sum").textContent = `${bytes >= 0 ? "+" : "−"}${clew.bytes(Math.abs(bytes))}`;
}

// -- the strip of iterations

function drawRounds() {
  const box = byId("rounds"), canvas = byId("rounds-canvas");
  const peaks = roundPeaks();
  box.hidden = peaks.length < 2;
  if (box.hidden) return;
  const ratio = window.devicePixelRatio || 1, {clientWidth: width, clientHeight: height} = box;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const highest = Math.max(...peaks.map((round) => round.peak)), each = (width - 24) / peaks.length;
  const current = roundOf(chart.picked);
  peaks.forEach((round, i) => {
    const x = 12 + i * each, w = Math.max(each - (each > 4 ? 2 : 0), 1), tall = height - 30;
    c.fillStyle = clew.colour(i === current ? "--accent" : "--round-peak");
    c.fillRect(x, height - 8 - tall * round.peak / highest, w, tall * round.peak / highest);
    c.fillStyle = clew.colour("--round-end");
    if (i !== current) c.fillRect(x, height - 8 - tall * round.end / highest, w, tall * round.end / highest);
  });
  const last = peaks[peaks.length - 1], before = peaks[Math.min(1, peaks.length - 1)];
  const grew = last.end - before.end;
  byId("rounds-note").textContent = `peaks light, ends dark; ends ${grew > 0 ? `grew by ${clew.bytes(grew)}` : "did not grow"} since iteration ${Math.min(1, peaks.length - 1)}`;
}

/** Peak and end of each iteration; those that are not kept in detail have figures only. */
function roundPeaks() {
  const found = clew.data.dropped.map((round) => ({peak: round.peak, end: round.bytes, frame: null}));
  let start = 0;
  for (const end of ends) {
    let best = start;
    for (let frame = start; frame < end; frame++) if (total(frame) > total(best)) best = frame;
    found.push({peak: total(best), end: total(Math.max(end - 1, 0)), frame: best});
    start = end;
  }
  return found;
}

byId("rounds").addEventListener("click", (event) => {
  const peaks = roundPeaks(), box = byId("rounds").getBoundingClientRect();
  const round = peaks[clamp(Math.floor((event.clientX - box.left - 12) / (box.width - 24) * peaks.length), 0, peaks.length - 1)];
  if (round.frame != null) pick(round.frame);
});
new ResizeObserver(drawRounds).observe(byId("rounds"));

// -- putting it together

function pick(frame) {
  chart.picked = frame;
  chart.draw(); drawRounds(); showMoment();
}

function hover(frame, x, y) {
  const tip = byId("tip");
  tip.hidden = frame == null;
  if (frame == null) return;
  const cause = causeOf(frame);
  tip.replaceChildren(
    clew.el("div", {}, clew.el("b", {}, clew.bytes(chart.total(frame))), ` · iteration ${roundOf(frame)} · ${clew.seconds(times[frame])}`),
    ...kinds.map((name, kind) => series[kind][frame] && chart.shown[kind] ? clew.el("div", {class: "kind"},
      swatch(kind), clew.el("span", {}, name), clew.el("b", {}, clew.bytes(series[kind][frame]))) : "").filter(Boolean),
    cause ? clew.el("div", {class: "why"}, `${cause.what}${cause.module ? ` in ${cause.module}` : ""}${cause.line ? ` · ${clew.place(cause.line)}` : ""}`) : "");
  const box = byId("chart");
  tip.style.left = `${Math.min(x + 14, box.clientWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(y + 14, Math.max(box.clientHeight - tip.offsetHeight - 8, 4))}px`;
  if (x + 14 > box.clientWidth - tip.offsetWidth - 8) tip.style.left = `${Math.max(x - tip.offsetWidth - 14, 4)}px`;
}

const chart = new Chart(byId("chart"), byId("canvas"),
  {series, times, ends, first: clew.data.firstIteration},
  {hover, pick, zoom: (range) => { byId("whole").hidden = !range; }});
chart.firstChange = clew.data.firstChange;

byId("legend").append(...kinds.map((name, kind) => series[kind].some((bytes) => bytes) ? clew.el("button", {
  "aria-pressed": "true", title: `show or hide: ${name}`, onclick: (event) => {
    chart.shown[kind] = !chart.shown[kind];
    event.currentTarget.setAttribute("aria-pressed", String(chart.shown[kind]));
    chart.draw(); showRows();
  },
}, swatch(kind), name) : "").filter(Boolean));

byId("tabs").append(...Object.entries(SORTS).map(([name, sort]) => clew.el("button", {
  id: `tab-${name}`, "aria-pressed": String(name === sortName), disabled: name === "compare" && ends.length < 2,
  onclick: () => {
    sortName = name; openKey = null;
    for (const button of byId("tabs").children) button.setAttribute("aria-pressed", String(button.id === `tab-${name}`));
    byId("compare").hidden = name !== "compare";
    if (name === "compare") showCompare();
    showMoment();
  },
}, sort.title)));

for (const mode of ["change", "time"]) {
  byId(`by-${mode}`).addEventListener("click", () => {
    chart.mode = mode;
    for (const other of ["change", "time"]) byId(`by-${other}`).setAttribute("aria-pressed", String(other === mode));
    chart.zoom(null);
  });
}
byId("whole").addEventListener("click", () => chart.zoom(null));
byId("filter").addEventListener("input", showRows);

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select")) return;
  const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
  if (step && times.length) { event.preventDefault(); pick(clamp(chart.picked + step, 0, times.length - 1)); }
  if (event.key.toLowerCase() === "p" && times.length) pick(peak);
  if (event.key.toLowerCase() === "t") clew.toggleTheme();
});

byId("facts").append(
  clew.chip("peak", clew.bytes(clew.data.peak)),
  clew.chip("at the end", clew.bytes(times.length ? total(times.length - 1) : 0)),
  clew.chip(`iteration${clew.data.firstIteration + ends.length === 1 ? "" : "s"}`, String(clew.data.firstIteration + ends.length)),
  clew.chip("changes", clew.data.total.toLocaleString("en")));

if (times.length) {
  clew.onTheme(() => pick(chart.picked || peak));
} else {
  byId("moment").append(clew.el("p", {class: "empty"}, "Nothing was allocated while memory was tracked."));
}
