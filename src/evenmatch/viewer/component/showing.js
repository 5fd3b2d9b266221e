// The part of the element that draws, points, moves and copies.

const scoreLine = (shown, letter) => {
  const numbers = Object.entries({ score: shown.score.value, precision: shown.score.precision, recall: shown.score.recall })
    .filter(([, value]) => value !== null).map(([name, value]) => `<span>${name} <strong>${number(value, 4)}</strong></span>`);
  const flags = shown.score.flags.map((flag) => flag.replace("_", " ")).join(", ");
  return `<p class="score">${letter ? `<span>${letter}</span>` : ""}${numbers.join("")}</p>` +
    (flags ? `<p class="flags">Note: ${escaped(flags)}.</p>` : "");
};

const CAPTIONS = {
  links: "Lines join the pairs: broader for a larger weight, fainter for a lower similarity. A dashed box has no partner.",
  map: "Candidate in rows, reference in columns; a stronger colour is more similar. Framed cells are pairs, a heavier frame a larger weight.",
  trees: "The candidate's tree on the left, the reference's on the right. A line joins nodes whose pieces are paired.",
};

const scrolled = (content, name) => `<div class="wide" role="region" tabindex="0" aria-label="${name}">${content}</div>`;

Object.assign(Viewer.prototype, {
  // Trees only where the metric aligns pieces of trees; the links stand in for them elsewhere.
  view() { return this.state.view === "trees" && !this.found.some((s) => s.trees) ? "links" : this.state.view; },

  picture(shown, view) {
    if (view === "map") return mapTable(shown);
    if (view === "trees" && shown.trees) return shown.trees;
    return linksSvg(shown, this.upright);
  },

  draw() {
    if (!this.found) return;
    this.upright = this.narrow();
    const view = this.view(), several = this.found.length > 1;
    const trees = this.shadowRoot.querySelector('input[value="trees"]');
    trees.disabled = !this.found.some((s) => s.trees);
    const figures = this.found.map((shown, n) =>
      `<figure data-n="${n}">${scoreLine(shown, several ? "AB"[n] : "")}<figcaption>${CAPTIONS[view]}</figcaption>` +
      `${scrolled(this.picture(shown, view), view)}</figure>`).join("");
    this.at("drawn").innerHTML = figures + (several ? comparison(...this.found) : "") +
      `<p class="recipe">Metric: <code>${escaped(this.found[0].signature)}</code></p>`;
    for (const figure of this.shadowRoot.querySelectorAll("figure"))
      figure.querySelector(".unit, td.heat")?.setAttribute("tabindex", "0");
  },

  // Say the numbers of what is pointed at or focused, and bring out its links.
  point(target) {
    const figure = target?.closest("figure"), shown = figure && this.found[figure.dataset.n];
    for (const lit of this.shadowRoot.querySelectorAll(".lit")) lit.classList.remove("lit");
    const part = shown && target.closest(".unit, .link, td.heat");
    if (!part) return;
    part.classList.add("lit");
    const { i, j, side, at } = part.dataset;
    if (part.classList.contains("unit")) {
      this.tell(unitSaid(shown, Number(side), Number(at)));
      const own = Number(side) ? "j" : "i";
      for (const link of figure.querySelectorAll(`.link[data-${own}="${at}"]`)) link.classList.add("lit");
    } else {
      this.tell(pairSaid(shown, Number(i), Number(j), weights(shown).get(`${i},${j}`)));
    }
  },

  // Arrows walk over units and cells; one of them is in the tab order at a time.
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
    const shown = this.found[0], view = this.view();
    if (view === "map") return standalone(mapSvg(shown));
    return standalone(view === "trees" && shown.trees ? shown.trees : linksSvg(shown, false));
  },

  async copy(text, said) {
    try {
      await navigator.clipboard.writeText(text);
      this.tell(said);
    } catch {
      // Where a page may not write to the clipboard, the text is laid out to be copied by hand.
      const area = document.createElement("textarea");
      Object.assign(area, { value: text, readOnly: true, rows: 4, ariaLabel: "text to copy" });
      this.at("said").replaceChildren(area);
      area.select();
    }
  },
});

if (!customElements.get("evenmatch-viewer")) customElements.define("evenmatch-viewer", Viewer);
