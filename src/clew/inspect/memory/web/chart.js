/* The chart: stacked areas of bytes by kind, drawn on a canvas; knows frames, not what they hold. */
"use strict";

class Chart {
  /**
   * `series[kind][frame]` bytes, `times[frame]` seconds, `ends` frames after which iterations
   * ended, `first` the number of the first of them; `on.hover(frame, x, y)`, `on.pick(frame)`.
   */
  constructor(box, canvas, {series, times, ends, first}, on) {
    Object.assign(this, {box, canvas, series, times, ends, first, on});
    this.count = times.length;
    this.shown = series.map(() => true);
    this.mode = "change";
    this.picked = 0;
    this.hovered = null;
    this.range = null;
    this.brush = null;
    new ResizeObserver(() => this.draw()).observe(box);
    this.listen();
  }

  // -- places

  /** Where a frame stands on the horizontal axis, before scaling. */
  at(frame) { return this.mode === "time" ? this.times[Math.max(frame, 0)] : frame + 1; }

  get bounds() {
    if (this.range) return this.range;
    return this.mode === "time" ? [this.times[0], this.times[this.count - 1]] : [0.5, this.count + 0.5];
  }

  x(frame) { return this.toX(this.at(frame)); }

  toX(value) {
    const [low, high] = this.bounds;
    return this.left + (value - low) / (high - low || 1) * this.width;
  }

  toValue(x) {
    const [low, high] = this.bounds;
    return low + (x - this.left) / this.width * (high - low);
  }

  /** The frame whose step covers a horizontal position. */
  frameAt(x) {
    const value = this.toValue(x);
    if (this.mode === "change") return clamp(Math.round(value) - 1, 0, this.count - 1);
    return clamp(this.search(value), 0, this.count - 1);
  }

  /** The last frame not later than a time. */
  search(time) {
    let low = -1, high = this.count;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle; else high = middle;
    }
    return low;
  }

  total(frame) {
    let sum = 0;
    this.series.forEach((values, kind) => { if (this.shown[kind]) sum += values[frame]; });
    return sum;
  }

  // -- drawing

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const {clientWidth: width, clientHeight: height} = this.box;
    if (!width || !height || !this.count) return;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.left = 74; this.width = width - this.left - 14;
    this.top = 16; this.height = height - this.top - 30;
    const c = this.context = this.canvas.getContext("2d");
    c.scale(ratio, ratio);
    c.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const columns = this.columns();
    this.highest = Math.max(1, ...columns.map((frame) => this.total(frame)));
    this.grid();
    c.save();
    c.beginPath(); c.rect(this.left, 0, this.width, height); c.clip();
    this.areas(columns);
    this.roundLines();
    this.marks();
    c.restore();
  }

  /** For each pixel the highest frame that it covers: no peak is lost. */
  columns() {
    const found = [];
    for (let pixel = 0; pixel < this.width; pixel++) {
      const from = this.frameAt(this.left + pixel), to = this.frameAt(this.left + pixel + 1);
      let best = from;
      for (let frame = from + 1; frame < to; frame++) if (this.total(frame) > this.total(best)) best = frame;
      found.push(best);
    }
    return found;
  }

  y(bytes) { return this.top + this.height * (1 - bytes / this.highest); }

  grid() {
    const c = this.context;
    c.strokeStyle = clew.colour("--line"); c.fillStyle = clew.colour("--faint"); c.lineWidth = 1;
    c.textAlign = "right"; c.textBaseline = "middle";
    const step = niceStep(this.highest, 5);
    for (let bytes = 0; bytes <= this.highest; bytes += step) {
      const y = Math.round(this.y(bytes)) + 0.5;
      c.beginPath(); c.moveTo(this.left, y); c.lineTo(this.left + this.width, y); c.stroke();
      c.fillText(clew.bytes(bytes), this.left - 8, y);
    }
    c.textAlign = "center"; c.textBaseline = "top";
    const [low, high] = this.bounds, along = niceStep(high - low, this.width / 110);
    for (let value = Math.ceil(low / along) * along; value <= high; value += along) {
      const text = this.mode === "time" ? clew.seconds(value || 0) : Math.round(value + this.offset).toLocaleString("en");
      if (this.mode === "time" || Number.isInteger(Math.round(value * 1e6) / 1e6)) {
        c.fillText(text, clamp(this.toX(value), this.left + 12, this.left + this.width - 16), this.top + this.height + 9);
      }
    }
  }

  get offset() { return this.firstChange || 0; }

  areas(columns) {
    const c = this.context;
    const floor = new Float64Array(columns.length);
    this.series.forEach((values, kind) => {
      if (!this.shown[kind]) return;
      c.fillStyle = clew.colour(`--kind-${kind}`);
      c.beginPath();
      columns.forEach((frame, pixel) => {
        const y = this.y(floor[pixel] + values[frame]);
        c.lineTo(this.left + pixel, y); c.lineTo(this.left + pixel + 1, y);
      });
      for (let pixel = columns.length - 1; pixel >= 0; pixel--) {
        const y = this.y(floor[pixel]);
        c.lineTo(this.left + pixel + 1, y); c.lineTo(this.left + pixel, y);
        floor[pixel] += values[columns[pixel]];
      }
      c.fill();
    });
  }

  roundLines() {
    const c = this.context;
    c.strokeStyle = clew.colour("--line-strong"); c.fillStyle = clew.colour("--faint");
    c.setLineDash([2, 3]); c.textAlign = "left"; c.textBaseline = "top";
    let last = -Infinity, labelled = -Infinity;
    this.ends.forEach((end, index) => {
      const x = Math.round(this.x(end - 1) + (this.mode === "change" ? this.width / (this.bounds[1] - this.bounds[0]) / 2 : 0)) + 0.5;
      if (x < this.left || x > this.left + this.width || x - last < 16) return;
      c.beginPath(); c.moveTo(x, this.top); c.lineTo(x, this.top + this.height); c.stroke();
      if (x - labelled > 46 && x < this.left + this.width - 20) {
        c.fillText(`${this.first + index + 1}`, x + 4, 3);
        labelled = x;
      }
      last = x;
    });
    c.setLineDash([]);
  }

  marks() {
    const c = this.context;
    for (const [frame, colour] of [[this.hovered, "--faint"], [this.picked, "--accent"]]) {
      if (frame == null) continue;
      const x = Math.round(this.x(frame)) + 0.5;
      c.strokeStyle = clew.colour(colour); c.lineWidth = colour === "--accent" ? 2 : 1;
      c.beginPath(); c.moveTo(x, this.top); c.lineTo(x, this.top + this.height); c.stroke();
      if (colour === "--accent") {
        c.fillStyle = clew.colour(colour); c.beginPath();
        c.arc(x, this.y(this.total(frame)), 4.5, 0, 7); c.fill();
        c.strokeStyle = clew.colour("--card"); c.stroke();
      }
    }
    if (this.brush && Math.abs(this.brush[1] - this.brush[0]) > 3) {
      c.fillStyle = clew.colour("--accent"); c.globalAlpha = 0.15;
      c.fillRect(this.brush[0], this.top, this.brush[1] - this.brush[0], this.height);
      c.globalAlpha = 1;
    }
    c.lineWidth = 1;
  }

  // -- the mouse

  listen() {
    const position = (event) => event.clientX - this.box.getBoundingClientRect().left;
    this.box.addEventListener("pointermove", (event) => {
      const x = position(event);
      if (this.brush) this.brush[1] = x;
      this.hovered = this.frameAt(x);
      this.draw();
      this.on.hover(this.hovered, x, event.clientY - this.box.getBoundingClientRect().top);
    });
    this.box.addEventListener("pointerleave", () => {
      this.hovered = null; this.brush = null; this.draw(); this.on.hover(null);
    });
    this.box.addEventListener("pointerdown", (event) => { this.brush = [position(event), position(event)]; });
    this.box.addEventListener("pointerup", (event) => {
      const brush = this.brush;
      this.brush = null;
      if (brush && Math.abs(position(event) - brush[0]) > 6) {
        const [low, high] = [brush[0], position(event)].sort((a, b) => a - b).map((x) => this.toValue(x));
        this.zoom([Math.max(low, this.whole[0]), Math.min(high, this.whole[1])]);
      } else {
        this.on.pick(this.frameAt(position(event)));
      }
    });
    this.box.addEventListener("dblclick", () => this.zoom(null));
    this.box.addEventListener("wheel", (event) => {
      event.preventDefault();
      const centre = this.toValue(position(event)), factor = event.deltaY > 0 ? 1.25 : 0.8;
      const [low, high] = this.bounds.map((edge) => centre + (edge - centre) * factor);
      const [first, last] = this.whole;
      this.zoom(high - low >= last - first ? null : [Math.max(low, first), Math.min(high, last)]);
    }, {passive: false});
  }

  get whole() {
    const range = this.range;
    this.range = null;
    const whole = this.bounds;
    this.range = range;
    return whole;
  }

  zoom(range) {
    if (range && range[1] - range[0] < (this.mode === "time" ? 1e-6 : 3)) return;
    this.range = range;
    this.draw();
    this.on.zoom(range);
  }
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** A step of 1, 2 or 5 times a power of ten that divides a range into about `parts`. */
function niceStep(range, parts) {
  const rough = range / Math.max(parts, 1), power = 10 ** Math.floor(Math.log10(rough || 1));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) || 10);
}
