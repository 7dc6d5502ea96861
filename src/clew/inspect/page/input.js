/* The mouse, touch and the keyboard on the canvas. */
"use strict";

function listenToPointer(page, canvas) {
  const fingers = new Map();
  let moved = 0, pinch = 0;
  const place = (event) => {
    const at = canvas.getBoundingClientRect();
    return {x: event.clientX - at.left, y: event.clientY - at.top};
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, place(event));
    moved = pinch = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event), before = fingers.get(event.pointerId);
    if (!before) { hover(page, canvas, now); return; }
    if (fingers.size === 2) {
      fingers.set(event.pointerId, now);
      const [a, b] = [...fingers.values()], apart = Math.hypot(a.x - b.x, a.y - b.y);
      if (pinch) page.zoom(apart / pinch, (a.x + b.x) / 2, (a.y + b.y) / 2);
      pinch = apart;
      return;
    }
    moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (moved > 4) {
      canvas.classList.add("dragging");
      page.painter.camera.x += now.x - before.x;
      page.painter.camera.y += now.y - before.y;
      page.repaint();
    }
    fingers.set(event.pointerId, now);
  });
  const end = (event) => {
    if (fingers.delete(event.pointerId) && moved <= 4 && event.type === "pointerup") {
      const {x, y} = place(event);
      page.select(page.painter.at(x, y));
    }
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => hover(page, canvas, {x: -1e9, y: -1e9}));
  canvas.addEventListener("dblclick", (event) => {
    const {x, y} = place(event);
    page.toggle(page.painter.at(x, y));
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const {x, y} = place(event), fine = event.ctrlKey ? 0.01 : 0.0016;
    page.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY)) * fine), x, y);
  }, {passive: false});
}

function hover(page, canvas, {x, y}) {
  const item = page.painter.at(x, y);
  if (item === page.painter.hovered) return;
  page.painter.hovered = item;
  canvas.classList.toggle("on-item", item >= 0);
  canvas.title = item >= 0 ? page.tree.title(item) : "";
  page.repaint();
}

function listenToKeys(page) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.closest("button");
    const {selected} = page.painter;
    const actions = {
      "/": () => document.getElementById("search").focus(),
      "Escape": () => { document.getElementById("help").hidden = true; page.search.clear(); page.select(-1); },
      "f": () => page.fit(), "0": () => page.fit(),
      "+": () => page.zoom(1.3), "=": () => page.zoom(1.3), "-": () => page.zoom(1 / 1.3),
      "c": () => page.foldAll(), "e": () => page.unfoldAll(),
      "1": () => page.colourBy("kind"), "2": () => page.colourBy("bytes"),
      "3": () => { if (page.tree.data.timed) page.colourBy("time"); },
      "t": () => clew.toggleTheme(), "?": () => page._help(),
      "ArrowUp": () => step(page, 0, -1), "ArrowDown": () => step(page, 0, 1),
      "ArrowLeft": () => step(page, -1, 0), "ArrowRight": () => step(page, 1, 0),
    };
    if (!onButton) actions.Enter = actions[" "] = () => page.toggle(selected);
    const action = actions[event.key] || actions[event.key.toLowerCase()];
    if (action) { action(); event.preventDefault(); }
  });
}

/** Select the nearest item: up and down along edges, left and right in the same row. */
function step(page, dx, dy) {
  const {tree, layout, painter} = page, {boxes} = layout;
  if (painter.selected < 0 || !boxes.has(painter.selected)) {
    const last = [...boxes.keys()].filter((i) => !tree.isOpen(i))
      .reduce((a, b) => (a < 0 || boxes.get(b).y > boxes.get(a).y ? b : a), -1);
    page.select(last);
    return;
  }
  const here = boxes.get(painter.selected), middle = (b) => ({x: b.x + b.w / 2, y: b.y + b.h / 2});
  const at = middle(here);
  const along = tree.edges().flatMap((e) => dy < 0 && e.to === painter.selected ? [e.from]
    : dy > 0 && e.from === painter.selected ? [e.to] : []);
  const candidates = dy && along.length ? along : [...boxes.keys()].filter((i) => !tree.isOpen(i));
  let best = -1, least = Infinity;
  for (const item of candidates) {
    const to = middle(boxes.get(item));
    const ahead = dx * (to.x - at.x) + dy * (to.y - at.y);
    if (item === painter.selected || ahead <= 0) continue;
    const aside = dx ? Math.abs(to.y - at.y) : Math.abs(to.x - at.x);
    const distance = ahead + 2.5 * aside;
    if (distance < least) { least = distance; best = item; }
  }
  if (best >= 0) page.select(best);
}
