/* The small map of the whole, with what is in sight framed; a click goes there. */
"use strict";

class Minimap {
  constructor(canvas, painter, go) {
    Object.assign(this, {canvas, painter});
    const move = (event) => {
      if (!this.scale || !(event.buttons & 1)) return;
      const at = canvas.getBoundingClientRect();
      go((event.clientX - at.left - this.left) / this.scale, (event.clientY - at.top - this.top) / this.scale);
    };
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); move(event); });
    canvas.addEventListener("pointermove", move);
  }

  paint() {
    const {canvas, painter} = this, {layout, tree} = painter;
    const ratio = window.devicePixelRatio || 1, w = 180, h = 120, margin = 8;
    if (canvas.width !== w * ratio) { canvas.width = w * ratio; canvas.height = h * ratio; }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, h);
    if (!layout.width) return;
    this.scale = Math.min((w - 2 * margin) / layout.width, (h - 2 * margin) / layout.height, 0.25);
    this.left = (w - layout.width * this.scale) / 2;
    this.top = (h - layout.height * this.scale) / 2;
    for (const [item, box] of layout.boxes) {
      const open = tree.isOpen(item);
      c.fillStyle = open ? painter.colours.sunken : this._colour(item);
      const bw = Math.max(box.w * this.scale, 1), bh = Math.max(box.h * this.scale, 1);
      c.fillRect(this.left + box.x * this.scale, this.top + box.y * this.scale, bw, bh);
    }
    const s = painter.sight;
    c.strokeStyle = painter.colours.accent;
    c.lineWidth = 1.5;
    c.strokeRect(this.left + s.x * this.scale, this.top + s.y * this.scale, s.w * this.scale, s.h * this.scale);
  }

  _colour(item) {
    const {painter} = this;
    if (item === painter.selected) return painter.colours.accent;
    if (painter.colourBy !== "kind" && painter.share(item) !== null) return painter._fill(item);
    if (painter.tree.isGroup(item)) return painter.colours["line-strong"];
    return painter.colours[`kind-${kindOf(painter.tree.node(item))}`];
  }
}
