// Methods of the element for drawing, pointing, keyboard navigation and copying.

const scoreLine = (alignment, letter) => {
  const numbers = Object.entries({ score: alignment.score.value, precision: alignment.score.precision, recall: alignment.score.recall })
    .filter(([, value]) => value !== null).map(([name, value]) => `<span>${name} <strong>${formatNumber(value, 4)}</strong></span>`);
  const flags = alignment.score.flags.map((flag) => flag.replaceAll("_", " ")).join(", ");
  return `<p class="score">${letter ? `<span>${letter}</span>` : ""}${numbers.join("")}</p>` +
    (flags ? `<p class="flags">Note: ${escapeHtml(flags)}.</p>` : "");
};

const CAPTIONS = {
  links: "Lines connect matched units: wider lines have a larger weight, fainter lines a lower similarity. Dashed boxes are unmatched.",
  map: "Candidate in rows, reference in columns; stronger colour means more similar. Framed cells are pairs; a thicker frame means a larger weight.",
  trees: "Lines connect nodes whose subtrees are matched; dashed nodes are unmatched.",
};

const LEAST_SCALE = 0.7; // wide trees are shrunk by at most this factor, then they scroll

const scrollable = (content, name) => `<div class="wide" role="region" tabindex="0" aria-label="${name}">${content}</div>`;

Object.assign(Viewer.prototype, {
  // Trees exist only if the metric aligns subtrees; otherwise the links are shown.
  view() { return this.state.view === "trees" && !this.found.some((s) => s.trees) ? "links" : this.state.view; },

  picture(alignment, view) {
    if (view === "map") return mapTable(alignment);
    if (view === "trees" && alignment.trees) return alignment.trees;
    return linksSvg(alignment, this.upright, this.room());
  },

  // Two figures stand side by side where there is room. Links wrap; trees and wide tables do not.
  beside() {
    const view = this.view(), half = this.at("drawn").clientWidth / 2;
    const fits = view === "links" || (view === "map" && this.found.every((s) => mapWidth(s) <= half));
    return this.found.length > 1 && this.clientWidth >= SIDE_BY_SIDE && fits;
  },

  // Width of a figure.
  room() {
    const inner = this.at("drawn").clientWidth;
    return this.beside() ? Math.floor((inner - 24) / 2) : inner;
  },

  draw() {
    if (!this.found) return;
    this.upright = this.narrow();
    this.drawnWidth = this.clientWidth;
    const view = this.view(), several = this.found.length > 1;
    const trees = this.shadowRoot.querySelector('input[value="trees"]');
    trees.disabled = !this.found.some((s) => s.trees);
    this.at("why-no-trees").hidden = !trees.disabled;
    const figures = this.found.map((alignment, n) =>
      `<figure data-n="${n}">${scoreLine(alignment, several ? "AB"[n] : "")}<figcaption>${CAPTIONS[view]}</figcaption>` +
      `${scrollable(this.picture(alignment, view), view)}</figure>`).join("");
    this.at("drawn").innerHTML = `<div class="figures${this.beside() ? " beside" : ""}">${figures}</div>` + (several ? comparison(...this.found) : "") +
      `<p class="recipe">Metric: <code>${escapeHtml(this.found[0].signature)}</code></p>`;
    for (const trees of this.shadowRoot.querySelectorAll("svg.trees")) {
      const width = trees.width.baseVal.value;
      trees.style.width = `${Math.max(LEAST_SCALE * width, Math.min(width, this.room()))}px`;
    }
    for (const region of this.shadowRoot.querySelectorAll(".wide"))
      if (region.scrollWidth > region.clientWidth + 1)
        region.insertAdjacentHTML("afterend", '<p class="more">Scroll sideways to see the rest →</p>');
    for (const cell of this.shadowRoot.querySelectorAll("td.heat"))
      for (const name of ["s", "w"]) cell.style.setProperty(`--${name}`, cell.dataset[name]);
    for (const figure of this.shadowRoot.querySelectorAll("figure"))
      figure.querySelector(".unit, td.heat")?.setAttribute("tabindex", "0");
  },

  // Show the numbers of the unit, link or cell under the pointer or focus, and highlight its links.
  point(target, event) {
    const tip = this.at("tip");
    tip.hidden = true;
    const figure = target?.closest("figure"), alignment = figure && this.found[figure.dataset.n];
    for (const lit of this.shadowRoot.querySelectorAll(".lit")) lit.classList.remove("lit");
    const node = target?.closest(".node"), joint = target?.closest(".joint");
    if (node)
      for (const link of figure.querySelectorAll(`.joint[data-${node.dataset.tree}="${node.dataset.at}"]`)) link.classList.add("lit");
    joint?.classList.add("lit");
    if (alignment && joint) this.tell(joint.querySelector("title").textContent, joint, event);
    const part = alignment && target.closest(".unit, .link, td.heat");
    if (!part) return;
    part.classList.add("lit");
    const { i, j, side, at } = part.dataset;
    if (part.classList.contains("unit")) {
      this.tell(describeUnit(alignment, Number(side), Number(at)), part, event);
      const index = Number(side) ? "j" : "i";
      for (const link of figure.querySelectorAll(`.link[data-${index}="${at}"]`)) link.classList.add("lit");
    } else {
      this.tell(describePair(alignment, Number(i), Number(j), weights(alignment).get(`${i},${j}`)), part, event);
    }
  },

  // Say a value in the status line and show it at the pointer or, for the keyboard, below the part.
  tell(text, part, event) {
    this.announce(text);
    const tip = this.at("tip"), box = part.getBoundingClientRect();
    const [x, y] = event instanceof PointerEvent ? [event.clientX + 14, event.clientY + 18] : [box.left, box.bottom + 6];
    tip.textContent = text;
    tip.hidden = false;
    const width = tip.offsetWidth, height = tip.offsetHeight, view = document.documentElement;
    tip.style.left = `${Math.max(4, Math.min(x, view.clientWidth - width - 8))}px`;
    tip.style.top = `${y + height > window.innerHeight ? Math.max(4, y - height - 30) : y}px`;
  },

  // Arrow keys move between units and cells; only the current one is in the tab order.
  move(event) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const part = event.target.closest(".unit, td.heat"), step = steps[event.key];
    if (!part || !step) return;
    const figure = part.closest("figure"), { i, j, side, at } = part.dataset;
    let next;
    if (part.matches("td")) {
      next = figure.querySelector(`td[data-i="${Number(i) + step[0]}"][data-j="${Number(j) + step[1]}"]`);
    } else {
      const [across, along] = this.upright ? [step[1], step[0]] : step;
      const row = figure.querySelectorAll(`.unit[data-side="${Number(side) + across}"]`);
      next = row[Math.min(Number(at) + along, row.length - 1)];
    }
    event.preventDefault();
    if (!next) return;
    part.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  },

  svg() {
    const alignment = this.found[0], view = this.view();
    if (view === "map") return standalone(mapSvg(alignment));
    return standalone(view === "trees" && alignment.trees ? alignment.trees : linksSvg(alignment, false));
  },

  async copy(text, message) {
    try {
      await navigator.clipboard.writeText(text);
      this.announce(message);
    } catch {
      // If the page may not write to the clipboard, show the text for copying by hand.
      const area = document.createElement("textarea");
      Object.assign(area, { value: text, readOnly: true, rows: 4, ariaLabel: "text to copy" });
      this.at("status").replaceChildren(area);
      area.select();
    }
  },
});

if (!customElements.get("evenmatch-viewer")) customElements.define("evenmatch-viewer", Viewer);
