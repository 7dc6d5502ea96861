/* Where things stand: each open group is laid out by dagre with its children as boxes.

An open child is as large as its own layout, so that a group is laid out before the one around it,
and folding one group leaves the inside of all others alone. */
"use strict";

const SIZES = {
  pad: 16, header: 30, node: 42, leaf: 24, group: 58, gapX: 22, gapY: 34, most: 260,
  title: "600 12.5px ", small: "11px ",
};

class Layout {
  constructor(tree, fonts) {
    this.tree = tree;
    this.fonts = fonts;
    this.context = document.createElement("canvas").getContext("2d");
    this.widths = new Map();
    this.known = new Map(); // layouts by what they were made from
    this.inside = new Map(); // by open group: {w, h, places, routes, position}
    this.boxes = new Map(); // by visible item: {x, y, w, h}, absolute, from the top left
    this.paths = []; // {edge, points, box}
  }

  /** Compute all boxes and paths anew; what has not changed is not laid out again. */
  run() {
    const within = new Map(), ports = new Map();
    for (const edge of this.tree.edges()) {
      push(within, edge.level, edge);
      this._crossed(edge.from, edge.a, (group, child) => push(ports, group, `${child} out`));
      this._crossed(edge.to, edge.b, (group, child) => push(ports, group, `in ${child}`));
    }
    const order = [this.tree.root, ...this.tree.visible().filter((i) => this.tree.isOpen(i))];
    for (const group of order.reverse()) {
      this._group(group, within.get(group) || [], [...new Set(ports.get(group))]);
    }
    this.boxes = new Map();
    this._place(this.tree.root, 0, 0);
    this.paths = this.tree.edges().map((edge) => this._path(edge));
    const whole = this.inside.get(this.tree.root);
    this.width = whole.w;
    this.height = whole.h;
  }

  /* Call `visit(group, child)` for each open group whose border an edge crosses, from the inside. */
  _crossed(item, outermost, visit) {
    for (let child = item; child !== outermost; child = this.tree.parent[child]) {
      visit(this.tree.parent[child], child);
    }
  }

  /* `ports` are places on the border where edges from outside come in or leave: thin boxes that
     dagre lays out with the others, so that it leads edges around what stands between.

     Children are named by their position, so that blocks of one form are laid out once. */
  _group(group, edges, ports) {
    const children = this.tree.children(group);
    const position = new Map(children.map((child, i) => [child, i]));
    const sizes = children.map((child) => this._size(child));
    const joined = edges.map((e) => [position.get(e.a), position.get(e.b), this._label(e)]);
    const doors = ports.map((port) => port.replace(/\d+/, (child) => position.get(Number(child))));
    const key = JSON.stringify([group === this.tree.root, sizes, joined, doors, this._headerWidth(group)]);
    if (!this.known.has(key)) {
      this.known.set(key, this._arranged(group, sizes, joined, doors));
    }
    this.inside.set(group, {...this.known.get(key), position});
  }

  _arranged(group, sizes, joined, doors) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({
      rankdir: "TB", nodesep: SIZES.gapX, ranksep: SIZES.gapY, edgesep: 12,
      ranker: sizes.length > 60 ? "longest-path" : "network-simplex",
    });
    graph.setDefaultEdgeLabel(() => ({}));
    sizes.forEach((size, i) => graph.setNode(String(i), {width: size.w, height: size.h}));
    for (const [a, b, label] of joined) {
      graph.setEdge(String(a), String(b),
        label ? {width: this.text(SIZES.small, label) + 12, height: 10, labelpos: "c"} : {});
    }
    for (const door of doors) {
      const [a, b] = door.split(" ");
      graph.setNode(door, {width: 1, height: 1});
      if (a === "in") graph.setEdge(door, b, {weight: 2}); else graph.setEdge(a, door, {weight: 2});
    }
    dagre.layout(graph);
    return this._read(group, graph, sizes);
  }

  /* What dagre found, shifted below the group's header. */
  _read(group, graph, sizes) {
    const top = group === this.tree.root ? 0 : SIZES.header;
    const pad = group === this.tree.root ? 0 : SIZES.pad;
    const {width, height} = graph.graph();
    const inner = Number.isFinite(width) ? width : 0;
    const w = pad ? Math.max(inner + 2 * pad, this._headerWidth(group)) : inner;
    const left = (w - inner) / 2, routes = new Map();
    const places = sizes.map((size, i) => {
      const at = graph.node(String(i));
      return {x: at.x - size.w / 2 + left, y: at.y - size.h / 2 + pad + top, ...size};
    });
    for (const {v, w: to} of graph.edges()) {
      const points = graph.edge(v, to).points.map((p) => ({x: p.x + left, y: p.y + pad + top}));
      routes.set(v.startsWith("in ") ? v : to.endsWith(" out") ? to : `${v} ${to}`, points);
    }
    return {places, routes, w, h: (Number.isFinite(height) ? height : 0) + 2 * pad + top};
  }

  _label(edge) {
    const leaf = !this.tree.isGroup(edge.from) && this.tree.node(edge.from).leaf;
    return leaf ? "" : this.labelOf(edge);
  }

  /** The text on an edge: the shape that goes along it. */
  labelOf(edge) {
    if (edge.count === 1) return edge.shape || "";
    return edge.shape ? `${edge.count} × [${edge.shape}]` : `${edge.count} tensors`;
  }

  _size(item) {
    if (this.tree.isOpen(item)) {
      const {w, h} = this.inside.get(item);
      return {w, h};
    }
    if (this.tree.isGroup(item)) {
      const group = this.tree.group(item), stack = group.repeat > 1 ? 8 : 0;
      return {w: Math.max(this._headerWidth(item), 150) + stack, h: SIZES.group + stack};
    }
    const node = this.tree.node(item);
    const {title, under} = this.words(item);
    if (node.leaf) {
      const text = this.text(SIZES.small, title) + this.text(SIZES.small, under) + 10;
      return {w: Math.min(text + 22, SIZES.most), h: SIZES.leaf};
    }
    const text = Math.max(this.text(SIZES.title, title), this.text(SIZES.small, under));
    return {w: Math.min(Math.max(text + 30, 92), SIZES.most), h: SIZES.node};
  }

  _headerWidth(item) {
    const group = this.tree.group(item);
    const title = this.text(SIZES.title, group.title) + this.text(SIZES.small, group.type) + 52;
    const count = group.repeat > 1 ? this.text(SIZES.title, `×${group.repeat}`) + 18 : 0;
    return Math.min(title + count, SIZES.most + 60);
  }

  /** What stands in a node's box: its title and the line under it. */
  words(item) {
    const node = this.tree.node(item);
    const [shape, dtype] = (node.outputs || [])[0] || [[], ""];
    const size = shape.length ? shape.join("×") : "scalar";
    if (node.leaf) return {title: node.label || "leaf", under: size};
    const bytes = node.bytes ? `  ·  ${clew.bytes(node.bytes)}` : "";
    const more = (node.outputs || []).length > 1 ? ` +${node.outputs.length - 1}` : "";
    const type = dtype === "float32" || !dtype ? "" : ` ${dtype}`;
    return {title: node.short, under: `${size}${more}${type}${bytes}`};
  }

  /** The width of a text. */
  text(font, text) {
    const key = font + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      this.context.font = font + (font === SIZES.small ? this.fonts.small : this.fonts.title);
      width = this.context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  _place(group, x, y) {
    const {places, position} = this.inside.get(group);
    for (const [child, i] of position) {
      const at = places[i];
      this.boxes.set(child, {x: x + at.x, y: y + at.y, w: at.w, h: at.h});
      if (this.tree.isOpen(child)) this._place(child, x + at.x, y + at.y);
    }
  }

  /* Out through the borders of open groups, along dagre's route at the level where both ends meet,
     and in again. */
  _path(edge) {
    const parts = [], level = this._route(edge.level, `${edge.a} ${edge.b}`), inwards = [];
    this._crossed(edge.from, edge.a, (group, child) => parts.push(this._route(group, `${child} out`)));
    parts.push(level);
    this._crossed(edge.to, edge.b, (group, child) => inwards.unshift(this._route(group, `in ${child}`)));
    parts.push(...inwards);
    for (let i = 1; i < parts.length; i++) { // cross each border where the port inside it is
      const outer = i <= parts.indexOf(level) ? parts[i][0] : parts[i - 1][parts[i - 1].length - 1];
      const inner = i <= parts.indexOf(level) ? parts[i - 1][parts[i - 1].length - 1] : parts[i][0];
      if (outer && inner) outer.x = inner.x;
    }
    const points = parts.flat();
    const from = this.boxes.get(edge.from), to = this.boxes.get(edge.to);
    if (points.length < 2) {
      points.splice(0, points.length, {x: from.x + from.w / 2, y: from.y + from.h}, {x: to.x + to.w / 2, y: to.y});
    }
    const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
    const box = {x: Math.min(...xs), y: Math.min(...ys)};
    box.w = Math.max(...xs) - box.x;
    box.h = Math.max(...ys) - box.y;
    const middle = level.length ? level : points;
    const [p, q] = [middle[(middle.length - 1) >> 1], middle[middle.length >> 1]];
    return {edge, points, box, label: {x: (p.x + q.x) / 2, y: (p.y + q.y) / 2}};
  }

  _route(group, name) {
    const at = this.boxes.get(group) || {x: 0, y: 0}, {routes, position} = this.inside.get(group);
    const points = routes.get(name.replace(/\d+/g, (child) => position.get(Number(child)))) || [];
    return points.map((p) => ({x: p.x + at.x, y: p.y + at.y}));
  }
}

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}
