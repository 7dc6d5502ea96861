/* Paints the graph on a canvas: only what is in sight, and no text too small to read. */
"use strict";

const KINDS = [
  ["leaf", "parameter or input", (n) => n.leaf],
  ["product", "product", (n) => /^(Addmm|Mm|Bmm|Addbmm|Baddbmm|Mv|Addmv|Dot|Ger|Matmul|Linear|Convolution|ConvolutionOverrideable|Bilinear|Einsum|Scaled|Embedding)/.test(n.name)],
  ["norm", "normalisation", (n) => /(Norm|Dropout)/.test(n.name)],
  ["activation", "activation", (n) => /^(Relu|Gelu|Silu|Sigmoid|Tanh|LeakyRelu|Elu|Celu|Softmax|LogSoftmax|Softplus|Hardtanh|Hardswish|Hardsigmoid|Mish|Prelu|Rrelu|Glu|LogSigmoid|Threshold|SafeSoftmax)/.test(n.name)],
  ["reduction", "reduction or loss", (n) => /^(Sum|Mean|Max|Min|Amax|Amin|Var|Std|Prod|Logsumexp|Norm|Linalg|Nll|Mse|L1|Smooth|Huber|BinaryCross|Kl|Ctc|AvgPool|Adaptive|Cumsum|Cumprod)/.test(n.name)],
  ["view", "view or copy", (n) => /^(View|Unsafe|Reshape|T[0-9B]|Transpose|Permute|Expand|Slice|Select|Squeeze|Unsqueeze|Index|Gather|Cat|Stack|Split|Chunk|Unbind|AsStrided|Clone|ToCopy|Copy|Repeat|Diagonal|Narrow|Alias)/.test(n.name)],
  ["other", "elementwise and other", () => true],
];

/** The kind of a node: the first that fits. */
function kindOf(node) {
  if (!node.kind) node.kind = KINDS.find(([, , fits]) => fits(node))[0];
  return node.kind;
}

class Painter {
  constructor(canvas, tree, layout, fonts) {
    Object.assign(this, {canvas, tree, layout, fonts});
    this.context = canvas.getContext("2d");
    this.camera = {x: 0, y: 0, scale: 1};
    this.colourBy = "kind";
    this.selected = -1;
    this.hovered = -1;
    this.matches = null; // a set of visible items, while a search is on
    this.moving = null; // {from: boxes, share}
    clew.onTheme(() => this.readColours());
  }

  readColours() {
    const names = ["page", "card", "raised", "sunken", "line", "line-strong", "text", "dim", "faint",
      "accent", "accent-soft", "on-accent", "bad", "warn", ...KINDS.map(([k]) => `kind-${k}`)];
    this.colours = Object.fromEntries(names.map((n) => [n, clew.colour(`--${n}`)]));
    this.heats = Array.from({length: 65}, (_, i) => clew.heat(i / 64));
  }

  resize() {
    const {width, height} = this.canvas.parentElement.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.max(Math.round(width * ratio), 1);
    this.canvas.height = Math.max(Math.round(height * ratio), 1);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    Object.assign(this, {width, height, ratio});
  }

  /** Where an item is now; between two layouts it moves. */
  box(item) {
    const box = this.layout.boxes.get(item);
    const before = this.moving && box && this.moving.from.get(item);
    if (!before) return box;
    const s = this.moving.share, mix = (a, b) => a + (b - a) * s;
    return {x: mix(before.x, box.x), y: mix(before.y, box.y), w: mix(before.w, box.w), h: mix(before.h, box.h)};
  }

  paint() {
    const c = this.context, {x, y, scale} = this.camera;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = this.colours.page;
    c.fillRect(0, 0, this.width, this.height);
    this.sight = {x: -x / scale, y: -y / scale, w: this.width / scale, h: this.height / scale};
    this._dots(c);
    c.setTransform(this.ratio * scale, 0, 0, this.ratio * scale, this.ratio * x, this.ratio * y);
    this.near = this._neighbours();
    for (const item of this.layout.boxes.keys()) {
      if (this.tree.isOpen(item)) this._openGroup(c, item);
    }
    c.globalAlpha = this.moving ? this.moving.share ** 2 : 1;
    if (this.camera.scale < 0.2 && this.layout.paths.length > 1500) this._allEdges(c);
    else for (const path of this.layout.paths) this._edge(c, path);
    c.globalAlpha = 1;
    for (const item of this.layout.boxes.keys()) {
      if (this.tree.isOpen(item)) this._openTitle(c, item);
    }
    for (const item of this.layout.boxes.keys()) {
      const box = this.box(item);
      if (this.tree.isOpen(item) || !this._inSight(box)) continue;
      c.globalAlpha = this._alpha(item) * this._fade(item);
      if (this.tree.isGroup(item)) this._closedGroup(c, item, box);
      else if (this.tree.node(item).leaf) this._leaf(c, item, box);
      else this._node(c, item, box);
    }
    c.globalAlpha = 1;
  }

  /* New items fade in while the others move. */
  _fade(item) { return this.moving && !this.moving.from.has(item) ? this.moving.share : 1; }

  _alpha(item) {
    if (this.matches && !this.matches.has(item)) return 0.22;
    return 1;
  }

  _dots(c) {
    const step = 26 * this.camera.scale;
    if (step < 14) return;
    c.fillStyle = this.colours.line;
    const startX = this.camera.x % step, startY = this.camera.y % step;
    for (let px = startX; px < this.width; px += step)
      for (let py = startY; py < this.height; py += step) c.fillRect(px, py, 1, 1);
  }

  _inSight(box, margin = 20) {
    const s = this.sight;
    return box.x < s.x + s.w + margin && box.x + box.w > s.x - margin &&
      box.y < s.y + s.h + margin && box.y + box.h > s.y - margin;
  }

  /* The selected or hovered item's edges stand out. */
  _neighbours() {
    const centre = this.hovered >= 0 ? this.hovered : this.selected;
    return centre >= 0 ? centre : null;
  }

  /** The share of the most that any node has, on a scale of logarithms; null without a value. */
  share(item) {
    const thing = this.tree.isGroup(item) ? this.tree.group(item) : this.tree.node(item);
    const value = this.colourBy === "time" ? thing.seconds : thing.bytes;
    if (!value) return null;
    const most = this.most[this.colourBy];
    const least = most / 1e4;
    return Math.max(Math.log(value / least) / Math.log(most / least), 0.03);
  }

  setColourBy(what) {
    this.colourBy = what;
    const nodes = this.tree.data.nodes, groups = this.tree.data.groups.slice(1);
    this.most = {
      bytes: [...nodes, ...groups].reduce((m, n) => Math.max(m, n.bytes || 0), 0),
      time: [...nodes, ...groups].reduce((m, n) => Math.max(m, n.seconds || 0), 0),
    };
  }

  _fill(item) {
    if (this.colourBy === "kind") return this.colours.card;
    const share = this.share(item);
    return share === null ? this.colours.card : this.heats[Math.round(Math.min(share, 1) * 64)];
  }

  _ink(item) {
    const share = this.colourBy === "kind" ? null : this.share(item);
    if (share === null) return [this.colours.text, this.colours.dim];
    const [r, g, b] = this._fill(item).match(/\d+/g).map(Number);
    return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? ["#141a26", "#2c3647"] : ["#ffffff", "#e2e8f2"];
  }

  _round(c, box, radius) {
    c.beginPath();
    c.roundRect(box.x, box.y, box.w, box.h, radius);
  }

  _outline(c, item, box, radius, plain) {
    const selected = item === this.selected, hovered = item === this.hovered;
    this._round(c, box, radius);
    c.lineWidth = selected ? 2.2 : hovered ? 1.6 : 1;
    c.strokeStyle = selected || hovered ? this.colours.accent : plain;
    c.stroke();
    if (selected) {
      this._round(c, {x: box.x - 3.5, y: box.y - 3.5, w: box.w + 7, h: box.h + 7}, radius + 3.5);
      c.globalAlpha *= 0.3;
      c.lineWidth = 3;
      c.stroke();
      c.globalAlpha = this._alpha(item);
    }
  }

  _shadowed(c, fill) {
    if (this.camera.scale > 0.45) {
      c.shadowColor = "rgba(15, 22, 40, .13)";
      c.shadowBlur = 7 * this.camera.scale * this.ratio;
      c.shadowOffsetY = 2 * this.camera.scale * this.ratio;
    }
    c.fillStyle = fill;
    c.fill();
    c.shadowColor = "transparent";
  }

  get readable() { return this.camera.scale > 0.34; }

  _text(c, text, x, y, font, family, colour, most) {
    c.font = font + family;
    c.fillStyle = colour;
    c.textBaseline = "middle";
    c.fillText(most ? this._cut(c, text, most) : text, x, y);
  }

  _cut(c, text, most) {
    if (c.measureText(text).width <= most) return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(`${text.slice(0, middle)}…`).width <= most) low = middle; else high = middle - 1;
    }
    return `${text.slice(0, low)}…`;
  }

  _node(c, item, box) {
    const node = this.tree.node(item), stripe = this.colours[`kind-${kindOf(node)}`];
    if (this.camera.scale < 0.16 && item !== this.selected) { // a patch of colour is all one sees
      c.fillStyle = this.colourBy === "kind" ? stripe : this._fill(item);
      c.fillRect(box.x, box.y, box.w, box.h);
      return;
    }
    const [ink, dim] = this._ink(item);
    this._round(c, box, 8);
    this._shadowed(c, this._fill(item));
    c.save();
    this._round(c, box, 8);
    c.clip();
    c.fillStyle = stripe;
    c.fillRect(box.x, box.y, 5, box.h);
    c.restore();
    const changed = (node.saved || []).some((s) => s.changed);
    if (node.freed || node.order) c.setLineDash(node.order ? [5, 3] : [2, 3]);
    this._outline(c, item, box, 8, changed ? this.colours.bad : this.colours["line-strong"]);
    c.setLineDash([]);
    if (!this.readable) return;
    const {title, under} = this.layout.words(item);
    const x = box.x + 15, most = box.w - 24;
    this._text(c, title, x, box.y + 14.5, SIZES.title, this.fonts.title, node.freed ? dim : ink, most);
    const words = node.freed ? `${under}  ·  freed` : under;
    this._text(c, words, x, box.y + 29.5, SIZES.small, this.fonts.small, dim, most);
    if (changed) this._badge(c, box, "!", this.colours.bad);
    else if (node.hooks) this._badge(c, box, "h", this.colours.accent);
  }

  _badge(c, box, text, colour) {
    const x = box.x + box.w - 4, y = box.y + 3;
    c.beginPath();
    c.arc(x, y, 7.5, 0, 2 * Math.PI);
    c.fillStyle = colour;
    c.fill();
    c.textAlign = "center";
    this._text(c, text, x, y + 0.5, "700 10px ", this.fonts.title, this.colours.card);
    c.textAlign = "left";
  }

  _leaf(c, item, box) {
    const {title, under} = this.layout.words(item);
    this._round(c, box, box.h / 2);
    c.fillStyle = this.colours["kind-leaf"];
    c.globalAlpha *= 0.16;
    c.fill();
    c.globalAlpha = this._alpha(item) * this._fade(item);
    this._outline(c, item, box, box.h / 2, this.colours["kind-leaf"]);
    if (!this.readable) return;
    const y = box.y + box.h / 2 + 0.5, wide = this.layout.text(SIZES.small, title);
    const most = box.w - 22;
    this._text(c, title, box.x + 11, y, SIZES.small, this.fonts.small, this.colours.text, most);
    if (wide + 10 < most) {
      this._text(c, under, box.x + 21 + wide, y, SIZES.small, this.fonts.small, this.colours.dim, most - wide - 10);
    }
  }

  _closedGroup(c, item, box) {
    const group = this.tree.group(item), many = group.repeat > 1;
    const front = many ? {x: box.x, y: box.y, w: box.w - 8, h: box.h - 8} : box;
    const [ink, dim] = this._ink(item);
    if (many) {
      for (const shift of [8, 4]) {
        this._round(c, {...front, x: front.x + shift, y: front.y + shift}, 10);
        c.fillStyle = this.colours.raised;
        c.fill();
        c.lineWidth = 1;
        c.strokeStyle = this.colours["line-strong"];
        c.stroke();
      }
    }
    this._round(c, front, 10);
    this._shadowed(c, this.colourBy === "kind" ? this.colours.raised : this._fill(item));
    this._outline(c, item, front, 10, this.colours["line-strong"]);
    if (!this.readable) return;
    this._groupTitle(c, group, front, ink, dim, "+");
    const facts = [clew.count(group.count, "node")];
    if (group.bytes) facts.push(clew.bytes(group.bytes));
    if (group.seconds) facts.push(clew.seconds(group.seconds));
    this._text(c, facts.join("  ·  "), front.x + 14, front.y + 40, SIZES.small, this.fonts.small, dim, front.w - 24);
  }

  /* The sign to fold or unfold, the title, what it is, and how often it repeats. */
  _groupTitle(c, group, box, ink, dim, sign) {
    let right = box.x + box.w - 10;
    const y = box.y + (sign === "+" ? 19 : 16);
    if (group.repeat > 1) {
      const text = `×${group.repeat}`, wide = this.layout.text(SIZES.title, text) + 12;
      c.beginPath();
      c.roundRect(right - wide, y - 9, wide, 18, 9);
      c.fillStyle = this.colours.accent;
      c.fill();
      this._text(c, text, right - wide + 6, y + 0.5, SIZES.title, this.fonts.title, this.colours["on-accent"]);
      right -= wide + 6;
    }
    c.strokeStyle = dim;
    c.lineWidth = 1.2;
    c.beginPath();
    c.roundRect(box.x + 11, y - 5.5, 11, 11, 3);
    c.moveTo(box.x + 13.5, y); c.lineTo(box.x + 19.5, y);
    if (sign === "+") { c.moveTo(box.x + 16.5, y - 3); c.lineTo(box.x + 16.5, y + 3); }
    c.stroke();
    const x = box.x + 28, most = right - x;
    this._text(c, group.title, x, y + 0.5, SIZES.title, this.fonts.title, ink, most);
    const wide = this.layout.text(SIZES.title, group.title) + 8;
    if (group.type && most - wide > 24) {
      this._text(c, group.type, x + wide, y + 0.5, SIZES.small, this.fonts.title, dim, most - wide);
    }
  }

  _openGroup(c, item) {
    const box = this.box(item);
    if (!this._inSight(box)) return;
    const group = this.tree.group(item);
    c.globalAlpha = this._fade(item);
    this._round(c, box, 12);
    c.fillStyle = this.tree.depth[item] % 2 ? this.colours.sunken : this.colours.page;
    c.fill();
    if (group.kind === "repeat") c.setLineDash([6, 4]);
    this._outline(c, item, box, 12, this.colours["line-strong"]);
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  /* After the edges, which may run under it. */
  _openTitle(c, item) {
    const box = this.box(item);
    if (this.camera.scale <= 0.22 || !this._inSight(box)) return;
    const group = this.tree.group(item);
    c.globalAlpha = this._fade(item);
    c.fillStyle = this.tree.depth[item] % 2 ? this.colours.sunken : this.colours.page;
    const wide = this.layout.text(SIZES.title, group.title) + this.layout.text(SIZES.small, group.type);
    c.fillRect(box.x + 8, box.y + 7, Math.min(wide + 34, box.w - 16), 18);
    this._groupTitle(c, group, box, this.colours.text, this.colours.faint, "−");
    c.globalAlpha = 1;
  }

  _edge(c, {edge, points, box, label}) {
    if (!this._inSight(box)) return;
    const lit = this.near !== null && (edge.from === this.near || edge.to === this.near);
    const dull = this.matches && !(this.matches.has(edge.from) && this.matches.has(edge.to));
    const leaf = !this.tree.isGroup(edge.from) && this.tree.node(edge.from).leaf;
    c.strokeStyle = lit ? this.colours.accent : leaf ? this.colours["line-strong"] : this.colours.faint;
    c.lineWidth = (lit ? 2 : 1.1) + Math.min(Math.log2(edge.count) * 0.5, 3);
    if (dull) c.globalAlpha = 0.25;
    c.beginPath();
    c.moveTo(points[0].x, points[0].y);
    this._curve(c, points);
    c.stroke();
    const end = points[points.length - 1];
    if (this.camera.scale > 0.25) this._arrow(c, end, c.strokeStyle);
    if (this.camera.scale > 0.62 && !leaf && !dull) this._edgeLabel(c, edge, label, lit);
    if (dull) c.globalAlpha = 1;
  }

  /* Many edges from afar: straight lines, in one stroke. */
  _allEdges(c) {
    c.beginPath();
    for (const {points, box} of this.layout.paths) {
      if (!this._inSight(box)) continue;
      const end = points[points.length - 1];
      c.moveTo(points[0].x, points[0].y);
      c.lineTo(end.x, end.y);
    }
    c.strokeStyle = this.colours["line-strong"];
    c.lineWidth = 1 / this.camera.scale / 2;
    c.stroke();
  }

  _curve(c, points) {
    if (points.length === 2) {
      const [a, b] = points, middle = (a.y + b.y) / 2;
      c.bezierCurveTo(a.x, middle, b.x, middle, b.x, b.y);
      return;
    }
    for (let i = 1; i < points.length - 2; i++) {
      const half = {x: (points[i].x + points[i + 1].x) / 2, y: (points[i].y + points[i + 1].y) / 2};
      c.quadraticCurveTo(points[i].x, points[i].y, half.x, half.y);
    }
    const [control, end] = points.slice(-2);
    c.quadraticCurveTo(control.x, control.y, end.x, end.y);
  }

  _arrow(c, end, colour) {
    c.fillStyle = colour;
    c.beginPath();
    c.moveTo(end.x, end.y);
    c.lineTo(end.x - 3.6, end.y - 6.5);
    c.lineTo(end.x + 3.6, end.y - 6.5);
    c.fill();
  }

  _edgeLabel(c, edge, {x, y}, lit) {
    const label = this.layout.labelOf(edge);
    if (!label) return;
    const wide = this.layout.text(SIZES.small, label);
    c.fillStyle = this.colours.page;
    c.globalAlpha *= 0.85;
    c.fillRect(x - wide / 2 - 3, y - 7, wide + 6, 14);
    c.globalAlpha = this.moving ? this.moving.share ** 2 : 1;
    this._text(c, label, x - wide / 2, y, SIZES.small, this.fonts.small, lit ? this.colours.accent : this.colours.faint);
  }

  /** The item at a place of the canvas, innermost first; -1 if there is none. */
  at(px, py) {
    const x = (px - this.camera.x) / this.camera.scale, y = (py - this.camera.y) / this.camera.scale;
    let found = -1;
    for (const [item, box] of this.layout.boxes) {
      if (x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h) found = item;
    }
    return found;
  }
}
