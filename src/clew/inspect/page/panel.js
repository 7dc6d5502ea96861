/* The panel: what is known of the selected item, or of the whole graph. */
"use strict";

class Panel {
  constructor(element, tree, {select, toggle}) {
    Object.assign(this, {element, tree, select, toggle});
    this.keepers = new Map(); // by memory: the nodes that keep it
    tree.data.nodes.forEach((node, id) => (node.saved || []).forEach((saved) => {
      if (!this.keepers.has(saved.storage)) this.keepers.set(saved.storage, new Set());
      this.keepers.get(saved.storage).add(id);
    }));
  }

  show(item) {
    const parts = item < 0 ? this._overview() : this.tree.isGroup(item) ? this._group(item) : this._node(item);
    this.element.replaceChildren(...parts.filter(Boolean));
    this.element.scrollTop = 0;
  }

  // -- the whole

  _overview() {
    const {data} = this.tree, changed = data.nodes.flatMap((n, id) =>
      (n.saved || []).some((s) => s.changed) ? [id] : []);
    const freed = data.nodes.filter((n) => n.freed).length;
    const keeps = data.nodes.some((n) => n.saved);
    return [
      clew.el("h1", {}, "The graph"),
      clew.el("p", {class: "mono"}, data.title),
      this._big([
        [data.nodes.length.toLocaleString("en"), "nodes"],
        [clew.bytes(data.savedBytes), "kept for backward"],
        [clew.bytes(data.parameterBytes), "parameters it refers to"],
        data.timed ? [clew.seconds(data.groups[0].seconds), "backward"]
          : [String(data.nodes.filter((n) => n.leaf).length), "leaves"],
      ]),
      freed > 0 && clew.el("div", {class: "note"}, keeps
        ? `A backward pass has freed ${clew.count(freed, "node")} of it; the rest still keeps its tensors.`
        : "A backward pass has freed what it kept. The nodes, their edges and lines are still here."),
      changed.length > 0 && clew.el("div", {class: "note bad"},
        `Backward will raise: a tensor that ${changed.length === 1 ? "a node keeps" : `${changed.length} nodes keep`} was written to in place. `,
        this._link(changed[0])),
      data.lines.length > 0 && clew.el("h2", {}, "Lines that keep most"),
      ...data.lines.map(([site, bytes]) => this._lineBar(site, bytes, data.lines[0][1])),
      ...this._heaviest(this.tree.root, "Nodes that keep most"),
    ];
  }

  _big(pairs) {
    return clew.el("div", {class: "big"}, pairs.map(([value, what]) =>
      clew.el("div", {}, clew.el("b", {}, value), clew.el("span", {}, what))));
  }

  _lineBar(index, bytes, most) {
    const site = this.tree.data.sites[index];
    const first = this.tree.data.nodes.findIndex((n) => n.site === index && !n.leaf);
    return clew.el("button", {class: "bar-row", title: `${site.file}:${site.line}`, onclick: () => this.select(first)},
      clew.el("span", {class: "mono"}, `${clew.place(site)}  ${site.text}`),
      clew.el("span", {}, clew.bytes(bytes)),
      clew.el("u", {}, clew.el("i", {style: `width: ${Math.max(100 * bytes / most, 1)}%`})));
  }

  _heaviest(item, title) {
    const {data} = this.tree, by = data.timed ? "seconds" : "bytes";
    const members = this.tree.members(item).filter((id) => data.nodes[id][by]);
    members.sort((a, b) => data.nodes[b][by] - data.nodes[a][by] || b - a);
    if (!members.length) return [];
    const most = data.nodes[members[0]][by];
    return [clew.el("h2", {}, data.timed ? "Nodes that take longest" : title), ...members.slice(0, 6).map((id) => {
      const value = data.nodes[id][by], text = data.timed ? clew.seconds(value) : clew.bytes(value);
      return clew.el("button", {class: "bar-row", onclick: () => this.select(id)},
        clew.el("span", {class: "mono"}, this._long(id)), clew.el("span", {}, text),
        clew.el("u", {}, clew.el("i", {style: `width: ${Math.max(100 * value / most, 1)}%`})));
    })];
  }

  /* A node's title with the module it is in. */
  _long(id) {
    const module = this.tree.data.texts[this.tree.node(id).module];
    return module ? `${this.tree.title(id)}  ${module}` : this.tree.title(id);
  }

  // -- a group

  _group(item) {
    const group = this.tree.group(item), open = this.tree.isOpen(item);
    const what = {
      module: "What one call of this module's forward recorded.",
      repeat: `${group.repeat} blocks of the same operations, shapes and kept tensors, one after the other.`,
      block: "One block of a repetition.", range: "A part of a long list.",
      leaves: "Leaves that this group is the first to use.",
      backward: "What a backward pass recorded (create_graph=True): it can be differentiated again.",
      iteration: "What was made between two rounds of optimizer steps.",
      function: "What the lines of one function recorded in a row.",
    }[group.kind];
    return [
      this._crumbs(item),
      clew.el("h1", {}, group.title, clew.el("small", {}, group.type)),
      group.repeat > 1 && clew.el("div", {class: "chips"}, clew.chip(`×${group.repeat}`, null, "accent")),
      clew.el("p", {}, what),
      group.path && clew.el("p", {class: "mono"}, group.path),
      this._big([
        [group.count.toLocaleString("en"), "nodes"], [clew.bytes(group.bytes), "kept for backward"],
        ...(group.seconds != null ? [[clew.seconds(group.seconds), "backward"]] : []),
      ]),
      clew.el("div", {class: "chips"}, clew.el("button", {class: "button", onclick: () => this.toggle(item)},
        open ? "Fold" : "Unfold", clew.el("kbd", {}, "Enter"))),
      ...this._lines(item),
      ...this._heaviest(item, "Nodes that keep most"),
    ];
  }

  _lines(item) {
    const {nodes, sites} = this.tree.data;
    const used = [...new Set(this.tree.members(item).filter((m) => !nodes[m].leaf).map((m) => nodes[m].site))];
    const known = used.filter((s) => s != null).slice(0, 4);
    return known.length ? [clew.el("h2", {}, "Recorded by"), ...known.map((s) => this._source(sites[s], true))] : [];
  }

  // -- a node

  _node(id) {
    const node = this.tree.node(id), {sites, texts} = this.tree.data;
    const site = sites[node.site];
    return [
      this._crumbs(id),
      clew.el("h1", {}, this.tree.title(id), clew.el("small", {}, node.name)),
      node.module != null && clew.el("p", {class: "mono"}, texts[node.module]),
      this._chips(node),
      site && clew.el("h2", {}, node.leaf ? "Made by" : "Recorded by"),
      site && this._source(site),
      ...this._flow(id),
      ...this._saved(node),
      node.fate != null && clew.el("h2", {}, node.leaf ? "Life" : "What frees it"),
      node.fate != null && clew.el("p", {}, texts[node.fate]),
      node.freedAt != null && this._source(sites[node.freedAt]),
      ...this._attributes(node),
      node.hooks && clew.el("h2", {}, "Hooks"),
      node.hooks && clew.el("div", {}, node.hooks.map((h) => clew.el("p", {class: "mono"}, h))),
    ];
  }

  _chips(node) {
    const chips = (node.outputs || []).map(([shape, dtype]) => clew.chip(`${dtype} ${clew.shape(shape)}`));
    if (node.seconds != null) chips.push(clew.chip("backward", clew.seconds(node.seconds)));
    if (node.freed) chips.push(clew.chip("freed", null, "warn"));
    if ((node.saved || []).some((s) => s.changed)) chips.push(clew.chip("changed since", null, "bad"));
    if (node.order) chips.push(clew.chip(`recorded by a backward, order ${node.order}`, null, "accent"));
    if (node.iteration != null) chips.push(clew.chip("iteration", String(node.iteration)));
    if (node.seq != null) chips.push(clew.chip("sequence number", String(node.seq)));
    return clew.el("div", {class: "chips"}, chips);
  }

  _source(site, short = false) {
    const head = clew.el("p", {class: "mono", title: site.file}, `${clew.place(site)}, in ${site.function}`);
    return clew.el("div", {}, head, clew.source(short ? {...site, around: null} : site));
  }

  _flow(id) {
    const node = this.tree.node(id), {nodes} = this.tree.data, found = [];
    const shape = ([source, nr]) => clew.shape((nodes[source].outputs[nr] || [[]])[0]);
    const edges = (node.edges || []);
    if (edges.length) {
      found.push(clew.el("h2", {}, "Inputs"), this._table(edges.map((edge, place) => [
        (node.inputs || [])[place] || `${place}`,
        edge ? this._link(edge[0]) : clew.el("span", {class: "mono"}, "a constant"),
        edge ? shape(edge) : "",
      ])));
    }
    const users = this.tree.users[id];
    if (users.length) {
      found.push(clew.el("h2", {}, "Used by"), this._table(users.slice(0, 12).map(([user, place]) => [
        this._link(user), `as ${(nodes[user].inputs || [])[place] || `input ${place}`}`, "",
      ])));
      if (users.length > 12) found.push(clew.el("p", {}, `and ${users.length - 12} more`));
    } else if (!this.tree.data.roots.every(([root]) => root !== id)) {
      found.push(clew.el("h2", {}, "Used by"), clew.el("p", {}, "Nothing: backward starts here."));
    }
    return found;
  }

  _table(rows) {
    return clew.el("table", {class: "list"}, clew.el("tbody", {}, rows.map((row) =>
      clew.el("tr", {}, row.map((cell, i) => clew.el("td", {class: i === 2 ? "number" : ""}, cell))))));
  }

  _saved(node) {
    if (!node.saved) return [];
    const {texts} = this.tree.data, total = node.bytes ? `, ${clew.bytes(node.bytes)}` : "";
    return [clew.el("h2", {}, `Kept for backward${total}`), ...node.saved.map((s) =>
      clew.el("div", {class: `saved ${s.changed ? "changed" : ""}`},
        clew.el("header", {}, clew.el("b", {}, s.name), clew.el("i", {class: "chip"}, s.role), clew.el("span", {}, clew.bytes(s.bytes))),
        clew.el("p", {class: "mono"}, `${s.dtype} ${clew.shape(s.shape || [])}`),
        s.reason != null && clew.el("p", {}, `Kept because ${texts[s.reason]}.`),
        s.hold != null && clew.el("p", {class: s.changed ? "bad" : ""}, texts[s.hold]),
        s.pins > s.bytes && clew.el("p", {}, `Its memory has ${clew.bytes(s.pins)}.`),
        s.version != null && s.changed && clew.el("p", {class: "bad"}, `Saved at version ${s.version}, now at ${s.versionNow}.`),
        this._others(s, node)))];
  }

  _others(saved, node) {
    const others = [...this.keepers.get(saved.storage)].filter((id) => this.tree.node(id) !== node);
    if (!others.length) return null;
    const more = others.length > 3 ? ` and ${others.length - 3} more` : "";
    return clew.el("p", {}, "The same memory is kept by ", others.slice(0, 3).flatMap((id, i) =>
      [i ? ", " : "", this._link(id)]), more, "; it is counted once.");
  }

  _attributes(node) {
    const pairs = Object.entries(node.attrs || {});
    if (!pairs.length) return [];
    return [clew.el("h2", {}, "Attributes"), this._table(pairs.map(([name, value]) =>
      [clew.el("span", {class: "mono"}, name), clew.el("span", {class: "mono"}, value), ""]))];
  }

  _link(id) {
    return clew.el("button", {class: "link", onclick: () => this.select(id)}, this.tree.title(id));
  }

  _crumbs(item) {
    const path = this.tree.ancestors(item).reverse();
    return clew.el("nav", {class: "crumbs", "aria-label": "groups"}, path.flatMap((group, i) => [
      i ? "›" : null,
      clew.el("button", {onclick: () => this.select(group === this.tree.root ? -1 : group)},
        group === this.tree.root ? "graph" : this.tree.title(group)),
    ]));
  }
}
