/* The tree of groups: which items are visible, and which edges run between them.

An item is a number: a node's id, or `N + g` for group g, where N is the number of nodes. */
"use strict";

class Tree {
  constructor(data) {
    this.data = data;
    this.count = data.nodes.length;
    this.root = this.count;
    this.total = this.count + data.groups.length;
    this.parent = new Int32Array(this.total).fill(-1);
    this.depth = new Int32Array(this.total);
    this.open = new Set([this.root]);
    data.groups.forEach((group, g) => {
      group.items = group.children.map((c) => this._item(c));
      for (const item of group.items) {
        this.parent[item] = this.count + g;
        this.depth[item] = this.depth[this.count + g] + 1;
      }
    });
    this.users = data.nodes.map(() => []);
    data.nodes.forEach((node, id) => (node.edges || []).forEach((edge, place) => {
      if (edge) this.users[edge[0]].push([id, place]);
    }));
    this._edges = null;
  }

  /* Groups stand in `children` as negative numbers; the outermost is in none. */
  _item(child) { return child < 0 ? this.count - child : child; }

  isGroup(item) { return item >= this.count; }
  group(item) { return this.data.groups[item - this.count]; }
  node(item) { return this.data.nodes[item]; }
  children(item) { return this.group(item).items; }
  isOpen(item) { return this.isGroup(item) && this.open.has(item); }

  /** The ancestors of an item, innermost first. */
  ancestors(item) {
    const found = [];
    for (let at = this.parent[item]; at >= 0; at = this.parent[at]) found.push(at);
    return found;
  }

  /** The item that stands for `item` on the screen: itself, or the outermost closed group. */
  shown(item) {
    let found = item;
    for (const group of this.ancestors(item)) if (!this.open.has(group)) found = group;
    return found;
  }

  isVisible(item) { return this.shown(item) === item; }

  /** All visible items, groups before what is in them. */
  visible() {
    const found = [], stack = [...this.children(this.root)].reverse();
    while (stack.length) {
      const item = stack.pop();
      found.push(item);
      if (this.isOpen(item)) stack.push(...[...this.children(item)].reverse());
    }
    return found;
  }

  set(item, open) {
    if (open) this.open.add(item); else this.open.delete(item);
    if (item !== this.root) this._edges = null;
  }

  toggle(item) {
    if (!this.isGroup(item) || item === this.root) return;
    this.set(item, !this.open.has(item));
  }

  /** Open whatever hides an item. */
  reveal(item) {
    for (const group of this.ancestors(item)) this.set(group, true);
  }

  closeAll() {
    this.open = new Set([this.root]);
    this._edges = null;
  }

  /** Open groups from outside in, as long as fewer than `most` items are visible.

  `repetitions` says whether to open those that hold many blocks of one form. */
  openUpTo(most, repetitions = false) {
    let queue = [this.root], visible = this.children(this.root).length;
    while (queue.length) {
      const next = [];
      for (const item of queue) {
        for (const child of this.children(item)) {
          if (!this.isGroup(child)) continue;
          const group = this.group(child);
          const small = repetitions || (group.repeat === 1 && group.kind !== "range" && group.kind !== "leaves");
          if (!small || visible + group.items.length > most) continue;
          this.open.add(child);
          visible += group.items.length;
          next.push(child);
        }
      }
      queue = next;
    }
    this._edges = null;
  }

  /** The edges between visible items, in the direction of the computation.

  Each is {from, to, count, shape, level, a, b}: `level` is the innermost group that both are in,
  `a` and `b` the children of it that they are in. */
  edges() {
    if (this._edges) return this._edges;
    const shown = this._shownNodes(), found = new Map();
    this.data.nodes.forEach((node, id) => {
      for (const edge of node.edges || []) {
        if (!edge) continue;
        const from = shown[edge[0]], to = shown[id];
        if (from === to) continue;
        const key = from * this.total + to;
        const shape = this._shape(edge);
        const known = found.get(key);
        if (!known) found.set(key, {from, to, count: 1, shape, ...this._meeting(from, to)});
        else { known.count += 1; if (known.shape !== shape) known.shape = null; }
      }
    });
    this._edges = [...found.values()];
    return this._edges;
  }

  _shape(edge) {
    const output = (this.data.nodes[edge[0]].outputs || [])[edge[1]];
    return output ? output[0].join("×") || "scalar" : "";
  }

  /** For each node the item that stands for it. */
  _shownNodes() {
    const shown = new Int32Array(this.count).fill(-1), stack = [[this.root, -1]];
    while (stack.length) {
      const [item, hidden] = stack.pop();
      for (const child of this.children(item)) {
        if (!this.isGroup(child)) shown[child] = hidden < 0 ? child : hidden;
        else stack.push([child, hidden < 0 && !this.open.has(child) ? child : hidden]);
      }
    }
    return shown;
  }

  _meeting(a, b) {
    while (this.depth[a] > this.depth[b]) a = this.parent[a];
    while (this.depth[b] > this.depth[a]) b = this.parent[b];
    while (this.parent[a] !== this.parent[b]) { a = this.parent[a]; b = this.parent[b]; }
    return {level: this.parent[a], a, b};
  }

  /** The nodes in an item. */
  members(item) {
    if (!this.isGroup(item)) return [item];
    const found = [], stack = [item];
    while (stack.length) {
      for (const child of this.children(stack.pop())) {
        if (this.isGroup(child)) stack.push(child); else found.push(child);
      }
    }
    return found;
  }

  /** What an item is called in a list. */
  title(item) {
    if (this.isGroup(item)) {
      const group = this.group(item);
      return group.repeat > 1 ? `${group.title}  ×${group.repeat}` : group.title;
    }
    const node = this.node(item);
    return node.label || (node.leaf ? "leaf" : node.short);
  }
}
