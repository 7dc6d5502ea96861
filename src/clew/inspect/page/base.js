/* What all pages share: the data, light and dark, how numbers are written, small helpers. */
"use strict";

const clew = {
  data: JSON.parse(document.getElementById("data").textContent),

  /** Bytes as people read them (powers of 1000), as in clew's tables. */
  bytes(n) {
    if (n == null) return "?";
    for (const unit of ["B", "kB", "MB", "GB"]) {
      if (n < 1000 || unit === "GB") return unit === "B" ? `${n} B` : `${n.toFixed(1)} ${unit}`;
      n /= 1000;
    }
  },

  /** Seconds as people read them. */
  seconds(s) {
    if (s == null) return "?";
    if (s >= 1) return `${s.toFixed(2)} s`;
    if (s >= 1e-3) return `${(s * 1e3).toFixed(2)} ms`;
    return `${(s * 1e6).toFixed(1)} µs`;
  },

  count: (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`,
  shape: (s) => `[${s.join(", ")}]`,

  /** A colour of the style sheet. */
  colour: (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(),

  /** The colour of a share from 0 to 1 on the heat scale of the style sheet. */
  heat(share) {
    const stops = [0, 1, 2, 3, 4].map((i) => clew.rgb(clew.colour(`--heat-${i}`)));
    const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * (at - low)));
    return `rgb(${mixed.join(",")})`;
  },

  rgb: (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)),

  /** An element: `clew.el("div", {class: "x"}, "text", child)`. */
  el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value != null) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((c) => c != null && c !== false));
    return element;
  },

  chip: (text, value, kind = "") =>
    clew.el("span", {class: `chip ${kind}`}, value == null ? null : clew.el("b", {}, value), text),

  /** Lines of a program with one marked: `site` is {file, line, function, text, around, first}. */
  source(site) {
    const lines = site.around && site.around.length ? site.around : [site.text];
    const first = site.around && site.around.length ? site.first : site.line;
    return clew.el("div", {class: "source"}, lines.map((text, i) =>
      clew.el("div", {class: first + i === site.line ? "here" : ""},
        clew.el("span", {}, String(first + i)), text || " ")));
  },

  place: (site) => `${site.file.split(/[\\/]/).pop()}:${site.line}`,

  themes: [],
  /** Call a function now and whenever the theme changes. */
  onTheme(callback) { clew.themes.push(callback); callback(); },

  setTheme(theme) {
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("clew-theme", theme); } catch { /* a page without storage */ }
    clew.themes.forEach((callback) => callback());
  },
  toggleTheme() {
    clew.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  },
};

{
  let theme = null;
  try { theme = localStorage.getItem("clew-theme"); } catch { /* a page without storage */ }
  const asked = new URLSearchParams(location.hash.slice(1)).get("theme");
  clew.setTheme(asked || theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", clew.toggleTheme);
}
