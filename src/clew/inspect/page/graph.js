/* Puts the page together: what the mouse, the keyboard and the buttons do. */
"use strict";

const $ = (id) => document.getElementById(id);

class GraphPage {
  constructor(data) {
    document.getElementById("tools").append($("tool-buttons").content);
    const style = getComputedStyle(document.documentElement);
    const fonts = {title: style.getPropertyValue("--sans"), small: style.getPropertyValue("--sans")};
    this.tree = new Tree(data);
    this.layout = new Layout(this.tree, fonts);
    this.painter = new Painter($("canvas"), this.tree, this.layout, fonts);
    this.map = new Minimap($("map"), this.painter, (x, y) => { this._centre(x, y); this.repaint(); });
    this.panel = new Panel($("panel"), this.tree, {select: (i) => this.select(i), toggle: (i) => this.toggle(i)});
    this.search = new Search(this.tree, $("search"), $("results"), {
      show: (found) => this._showMatches(found), choose: (id) => this.select(id),
    });
    this.tree.openUpTo(26);
    if (this.tree.visible().length < 8) this.tree.openUpTo(26, true);
    this.painter.setColourBy("kind");
    this.painter.resize();
    this.layout.run();
    this._facts();
    this._legend();
    this._listen();
    this._empty();
    this.fit(true);
    this.panel.show(-1);
    clew.onTheme(() => { this.painter.readColours(); this._legend(); this.repaint(); });
  }

  // -- painting

  repaint() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.painter.paint();
      this.map.paint();
    });
  }

  /** Lay out anew after folding; things move to their new places, `anchor` stays where it is. */
  relayout(anchor = -1) {
    const before = this.layout.boxes, fixed = before.get(anchor);
    this.layout.run();
    const after = this.layout.boxes.get(anchor);
    const {camera} = this.painter;
    if (fixed && after) {
      camera.x += (fixed.x + fixed.w / 2 - after.x - after.w / 2) * camera.scale;
      camera.y += (fixed.y - after.y) * camera.scale;
    }
    const shift = fixed && after
      ? {x: after.x + after.w / 2 - fixed.x - fixed.w / 2, y: after.y - fixed.y} : {x: 0, y: 0};
    const from = new Map([...before].map(([i, b]) => [i, {...b, x: b.x + shift.x, y: b.y + shift.y}]));
    this._showMatches(this.found);
    const still = this.layout.boxes.size > 2500 || matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) { this.painter.moving = null; this.repaint(); } else this._move(from);
  }

  _move(from) {
    const begin = performance.now(), lasting = 220;
    const step = (now) => {
      const t = Math.min(Math.max((now - begin) / lasting, 0), 1);
      this.painter.moving = t < 1 ? {from, share: 1 - (1 - t) ** 3} : null;
      this.painter.paint();
      if (t < 1 && this.step === step) requestAnimationFrame(step); else this.map.paint();
    };
    this.step = step;
    requestAnimationFrame(step);
  }

  // -- the camera

  /** Show all; at the start large graphs are shown from their end, in a readable size. */
  fit(start = false) {
    const {painter, layout} = this, margin = 40, below = $("legend").offsetHeight + 24;
    const height = painter.height - below;
    const scale = Math.min((painter.width - margin) / layout.width, (height - margin) / layout.height, 1.2);
    const {camera} = painter;
    camera.scale = Math.max(scale || 1, start ? 0.8 : 0.005);
    camera.x = (painter.width - layout.width * camera.scale) / 2;
    const room = height - layout.height * camera.scale;
    camera.y = room > 0 ? room / 2 : start ? room - margin / 2 : room / 2;
    if (start && camera.scale > scale) camera.x = this._endsAt(camera);
    this.repaint();
  }

  /* Where the camera stands so that the tensor the graph leads to is in the middle. */
  _endsAt(camera) {
    const [root] = this.tree.data.roots[0] || [];
    const box = root === undefined ? null : this.layout.boxes.get(this.tree.shown(root));
    return box ? this.painter.width / 2 - (box.x + box.w / 2) * camera.scale : camera.x;
  }

  zoom(factor, px = this.painter.width / 2, py = this.painter.height / 2) {
    const {camera} = this.painter;
    const scale = Math.min(Math.max(camera.scale * factor, 0.005), 3);
    camera.x = px - (px - camera.x) * scale / camera.scale;
    camera.y = py - (py - camera.y) * scale / camera.scale;
    camera.scale = scale;
    this.repaint();
  }

  _centre(x, y) {
    const {camera, width, height} = this.painter;
    camera.x = width / 2 - x * camera.scale;
    camera.y = height / 2 - y * camera.scale;
  }

  /* Bring an item into sight, large enough to read. */
  _seek(item) {
    const box = this.layout.boxes.get(item), {camera, width, height} = this.painter;
    if (!box) return;
    const left = box.x * camera.scale + camera.x, top = box.y * camera.scale + camera.y;
    const inside = left > 20 && top > 20 && left + box.w * camera.scale < width - 20 &&
      top + Math.min(box.h, 80) * camera.scale < height - 20;
    if (inside && camera.scale > 0.4) return;
    if (camera.scale < 0.5) camera.scale = 0.9;
    this._centre(box.x + box.w / 2, box.y + Math.min(box.h, height / camera.scale) / 2);
  }

  // -- what users do

  /** Select an item (-1: none), unfold what hides it, and show it in the panel. */
  select(item) {
    if (item >= 0 && !this.tree.isVisible(item)) {
      this.tree.reveal(item);
      this.relayout(-1);
    }
    this.painter.selected = item;
    if (item >= 0) this._seek(item);
    this.panel.show(item);
    this._say(item);
    this.repaint();
  }

  toggle(item) {
    if (item < 0 || !this.tree.isGroup(item)) return;
    this.tree.toggle(item);
    if (this.painter.selected >= 0) this.painter.selected = this.tree.shown(this.painter.selected);
    this.relayout(item);
    this.panel.show(this.painter.selected);
  }

  foldAll() {
    this.tree.closeAll();
    if (this.painter.selected >= 0) this.painter.selected = this.tree.shown(this.painter.selected);
    this.relayout();
    this.fit();
    this.panel.show(this.painter.selected);
  }

  unfoldAll() {
    for (const most of [250, 900, 3000]) { // as far as laying out is quick
      const begin = performance.now();
      this.tree.openUpTo(most, true);
      this.relayout();
      if (performance.now() - begin > 250) break;
    }
    this.fit();
    const closed = this.tree.visible().some((i) => this.tree.isGroup(i) && !this.tree.isOpen(i));
    if (closed) this.hint("The largest groups stay folded; unfold them one by one");
  }

  colourBy(what) {
    this.painter.setColourBy(what);
    for (const button of $("colour-by").children) {
      button.setAttribute("aria-pressed", String(button.dataset.by === what));
    }
    this._legend();
    this.repaint();
  }

  hint(text) {
    $("hint").textContent = text;
    $("hint").classList.add("on");
    clearTimeout(this.hinting);
    this.hinting = setTimeout(() => $("hint").classList.remove("on"), 2600);
  }

  _say(item) {
    $("canvas").setAttribute("aria-description", item < 0 ? "nothing selected" : this.tree.title(item));
  }

  _showMatches(found) {
    this.found = found;
    this.painter.matches = found ? new Set(found.flatMap((id) => {
      const shown = this.tree.shown(id);
      return [shown, ...this.tree.ancestors(shown)];
    })) : null;
    this.repaint();
  }

  // -- parts of the page

  _facts() {
    const {data} = this.tree;
    $("facts").append(
      clew.chip(data.nodes.length === 1 ? "node" : "nodes", data.nodes.length.toLocaleString("en")),
      clew.chip("kept", clew.bytes(data.savedBytes)),
      clew.chip("parameters", clew.bytes(data.parameterBytes)),
      clew.chip(data.engine));
    const button = $("colour-by").querySelector("[data-by=time]");
    button.disabled = !data.timed;
    if (!data.timed) button.title = "not measured: clew.inspect.timed_backward(loss) measures it";
  }

  _legend() {
    const {painter} = this, by = painter.colourBy;
    if (by === "kind") {
      const used = new Set(this.tree.data.nodes.map(kindOf));
      $("legend").replaceChildren(...KINDS.filter(([kind]) => used.has(kind)).map(([kind, name]) =>
        clew.el("span", {}, clew.el("i", {style: `background: var(--kind-${kind})`}), name)));
    } else {
      const write = by === "time" ? clew.seconds : clew.bytes, most = painter.most[by];
      $("legend").replaceChildren(clew.el("span", {}, by === "time" ? "backward takes" : "keeps",
        " ", write(most / 1e4 < 1 && by === "bytes" ? 1 : most / 1e4),
        clew.el("i", {class: "scale", style: `background: linear-gradient(90deg, ${painter.heats.filter((_, i) => i % 16 === 0)})`}),
        write(most)));
    }
    $("legend").hidden = !this.tree.count;
  }

  _empty() {
    const {data} = this.tree;
    if (data.nodes.length) return;
    $("empty").hidden = false;
    $("empty").innerHTML = '<svg viewBox="0 0 24 24" width="64" height="64"><circle cx="12" cy="11" r="8.2"/><path d="M4.6 8.2c4.5-2 9.6-1.3 14.2 1.6M4 12.4c5-2.4 11-1.8 15.8 1.2"/></svg>';
    $("empty").append(clew.el("b", {}, "No graph leads to this tensor"),
      clew.el("span", {}, "It does not require grad, or it was made by detach(), under no_grad, or from data alone."));
    $("map").hidden = true;
  }

  _help() {
    const keys = [
      ["← ↑ → ↓", "to a neighbour along an edge"], ["Enter", "fold or unfold"], ["/", "search"],
      ["Esc", "let go of the selection"], ["F", "show all"], ["+ −", "closer, farther"],
      ["C  E", "fold all, unfold"], ["1 2 3", "colour by kind, bytes, time"], ["T", "light or dark"],
      ["drag, wheel", "move, zoom"], ["double click", "fold or unfold"],
    ];
    $("help").replaceChildren(clew.el("h2", {}, "Keys"), clew.el("dl", {}, keys.flatMap(([key, what]) =>
      [clew.el("dt", {}, clew.el("kbd", {}, key)), clew.el("dd", {}, what)])));
    $("help").hidden = !$("help").hidden;
  }

  _listen() {
    const page = this;
    window.addEventListener("resize", () => { page.painter.resize(); page.repaint(); });
    $("fit").onclick = () => page.fit();
    $("closer").onclick = () => page.zoom(1.3);
    $("farther").onclick = () => page.zoom(1 / 1.3);
    $("fold-all").onclick = () => page.foldAll();
    $("unfold-all").onclick = () => page.unfoldAll();
    $("keys").onclick = () => page._help();
    $("help").onclick = () => page._help();
    for (const button of $("colour-by").children) button.onclick = () => page.colourBy(button.dataset.by);
    listenToPointer(page, $("canvas"));
    listenToKeys(page);
  }
}

window.page = new GraphPage(clew.data);
