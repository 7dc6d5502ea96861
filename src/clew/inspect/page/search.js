/* Search over ops, leaf names, groups, modules, and lines of source. */
"use strict";

class Search {
  constructor(tree, input, list, {show, choose}) {
    Object.assign(this, {tree, input, list, show, choose, found: [], at: 0});
    this.words = [...tree.data.nodes.map((_, id) => this._words(id)),
      ...tree.data.groups.map((group, g) => (g ? `${group.title} ${group.type} ${group.path}`.toLowerCase() : ""))];
    input.addEventListener("input", () => this.run());
    input.addEventListener("keydown", (event) => this._key(event));
    input.addEventListener("focus", () => { if (this.found.length) list.hidden = false; });
    document.addEventListener("pointerdown", (event) => {
      if (!event.target.closest(".search")) list.hidden = true;
    });
  }

  _words(id) {
    const node = this.tree.node(id), site = this.tree.data.sites[node.site];
    const groups = this.tree.ancestors(id).filter((g) => g !== this.tree.root)
      .map((g) => `${this.tree.group(g).title} ${this.tree.group(g).type} ${this.tree.group(g).path}`);
    const line = site ? `${clew.place(site)} ${site.function} ${site.text}` : "";
    const module = this.tree.data.texts[node.module] || "";
    return `${node.name} ${node.label || ""} ${module} ${groups.join(" ")} ${line}`.toLowerCase();
  }

  run() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = [];
    if (words.length) {
      this.words.forEach((text, id) => { if (words.every((w) => text.includes(w))) this.found.push(id); });
      this._namedFirst(words);
    }
    this.at = 0;
    this._render(words.length > 0);
    this.show(words.length ? this.found : null);
  }

  /* What is called so comes before what only stands in such a line or module. */
  _namedFirst(words) {
    const named = (id) => {
      if (this.tree.isGroup(id)) return words.filter((w) => this.words[id].includes(w)).length;
      const node = this.tree.node(id), name = `${node.name} ${node.label || ""}`.toLowerCase();
      return words.filter((w) => name.includes(w)).length;
    };
    const hits = new Map(this.found.map((id) => [id, named(id)]));
    this.found.sort((a, b) => hits.get(b) - hits.get(a) || a - b);
  }

  clear() {
    this.input.value = "";
    this.run();
    this.input.blur();
  }

  _render(asked) {
    this.list.replaceChildren();
    this.list.hidden = !asked;
    if (!asked) return;
    if (!this.found.length) this.list.append(clew.el("p", {}, "Nothing has that name, module or line."));
    this.found.slice(0, 60).forEach((id, place) => this.list.append(this._row(id, place)));
    if (this.found.length > 60) this.list.append(clew.el("p", {}, `and ${this.found.length - 60} more`));
  }

  _row(id, place) {
    const {sites, texts} = this.tree.data, isGroup = this.tree.isGroup(id);
    const thing = isGroup ? this.tree.group(id) : this.tree.node(id), site = sites[thing.site];
    const where = isGroup ? [thing.path || thing.type, clew.count(thing.count, "node")] : [texts[thing.module], site && clew.place(site)];
    const colour = isGroup ? "--line-strong" : `--kind-${kindOf(thing)}`;
    return clew.el("button", {
      role: "option", "aria-selected": String(place === this.at), onclick: () => this._choose(place),
    },
    clew.el("i", {style: `background: var(${colour})`}),
    clew.el("span", {}, this.tree.title(id)),
    clew.el("small", {}, where.filter(Boolean).join("  ·  ")));
  }

  _choose(place) {
    this.at = place;
    this.list.hidden = true;
    this.choose(this.found[place]);
  }

  _key(event) {
    if (event.key === "Escape") { this.clear(); event.preventDefault(); return; }
    if (!this.found.length) return;
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) {
      const most = Math.min(this.found.length, 60);
      this.at = (this.at + step + most) % most;
      this._render(true);
      this.list.children[this.at].scrollIntoView({block: "nearest"});
      event.preventDefault();
    } else if (event.key === "Enter") this._choose(this.at);
  }
}
