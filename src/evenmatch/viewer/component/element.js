// <evenmatch-viewer>: the alignment of one or two candidates with a reference. The data comes from
// the page itself or from the server of the page.

const VIEWS = { links: "Links", map: "Heat map", trees: "Trees" };
const UPRIGHT = 560; // pixels; on narrower screens, units are drawn in two columns
const SIDE_BY_SIDE = 960; // pixels; on wider screens, two candidates stand side by side

class Viewer extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return;
    if (document.readyState === "loading" && !this.nextSibling) {
      // The element was defined by an earlier output, and its children are not parsed yet.
      document.addEventListener("DOMContentLoaded", () => this.connectedCallback(), { once: true });
      return;
    }
    const source = this.querySelector('script[type="application/json"]');
    this.given = JSON.parse(source.textContent);
    this.known = new Map(this.given.shown.map((s) => [this.key(s.candidate, s.reference, s.name), s]));
    this.state = this.start();
    const root = this.attachShadow({ mode: "open" });
    // Set by script, since the policy of a server allows no style elements or attributes.
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    root.adoptedStyleSheets = [style];
    root.innerHTML = `<div class="evenmatch viewer">${this.frame()}</div>`;
    this.at = (name) => root.querySelector(`[data-part="${name}"]`);
    this.fill();
    this.listen(root);
    new ResizeObserver(() => this.drawnWidth !== this.clientWidth && this.draw()).observe(this);
    this.update();
  }

  key(candidate, reference, metric) { return JSON.stringify([candidate, reference, metric]); }
  narrow() { return this.clientWidth < UPRIGHT; }

  // Initial state: from the fragment of the URL, or else the first alignment.
  start() {
    const params = new URLSearchParams(this.given.page ? location.hash.slice(1) : "");
    const [candidate, reference] = this.given.try; // example texts, if the page has no alignment
    const first = this.given.shown[0] || { candidate, reference, name: this.given.names[0] };
    const other = this.given.shown.find((s) => s.candidate !== first.candidate);
    const text = (name, fallback) => (this.given.served && params.has(name) ? params.get(name) : fallback);
    return {
      candidate: text("c", first.candidate),
      second: text("b", other ? other.candidate : ""),
      reference: text("r", first.reference),
      metric: this.given.names.includes(params.get("m")) ? params.get("m") : first.name,
      view: params.get("v") in VIEWS ? params.get("v") : first.trees ? "trees" : "links",
    };
  }

  frame() {
    const area = (name, label) => `<label>${label}<textarea data-part="${name}" rows="2" ${this.given.served ? "" : "readonly"}></textarea></label>`;
    const second = this.given.served || this.state.second ? area("second", this.given.served ? "Candidate B (optional, for comparison)" : "Candidate B") : "";
    const options = this.given.names.map((name) => `<option>${escapeHtml(name)}</option>`).join("");
    const views = Object.entries(VIEWS).map(([view, label]) =>
      `<label><input type="radio" name="view" value="${view}"${view === "trees" ? ' aria-describedby="why-no-trees"' : ""}>${label}</label>`).join("");
    const share = this.given.page ? '<button type="button" data-part="share">Copy link</button>' : "";
    return `<form data-part="texts">${area("candidate", second ? "Candidate A" : "Candidate")}${second}${area("reference", "Reference")}
      <label class="token" data-part="lock" hidden>Token<input type="password" data-part="token" autocomplete="off"></label></form>
      <div class="tools"><label>Metric <select data-part="metric">${options}</select></label>
      <fieldset><legend>View</legend>${views}<small id="why-no-trees" data-part="why-no-trees" hidden>(this metric does not align parse trees)</small></fieldset>
      <span class="copies"><button type="button" data-part="copy">Copy as SVG</button>${share}</span></div>
      <p class="status" data-part="status" role="status" aria-live="polite"></p><div data-part="drawn"></div>
      <div class="tip" data-part="tip" aria-hidden="true" hidden></div>`;
  }

  fill() {
    for (const name of ["candidate", "second", "reference"]) if (this.at(name)) this.at(name).value = this.state[name];
    this.at("metric").value = this.state.metric;
    for (const radio of this.shadowRoot.querySelectorAll("input[name=view]")) radio.checked = radio.value === this.state.view;
  }

  listen(root) {
    this.at("texts").addEventListener("submit", (event) => event.preventDefault());
    this.at("texts").addEventListener("input", () => {
      clearTimeout(this.later);
      this.later = setTimeout(() => this.read(), 350);
    });
    this.at("metric").addEventListener("change", () => this.read());
    root.querySelector("fieldset").addEventListener("change", () => this.read());
    this.at("copy").addEventListener("click", () => this.copy(this.svg(), "Copied the picture as SVG."));
    this.at("share")?.addEventListener("click", () => this.copy(location.href, "Copied the URL, which contains the texts."));
    const drawn = this.at("drawn");
    drawn.addEventListener("pointerover", (event) => this.point(event.target, event));
    drawn.addEventListener("focusin", (event) => this.point(event.target));
    drawn.addEventListener("pointerleave", () => this.point(null));
    drawn.addEventListener("keydown", (event) => this.move(event));
    if (this.given.page) window.addEventListener("hashchange", () => {
      if (location.hash.slice(1) === this.fragment()) return;
      this.state = this.start();
      this.fill();
      this.update();
    });
  }

  read() {
    for (const name of ["candidate", "second", "reference"]) if (this.at(name)) this.state[name] = this.at(name).value;
    this.state.metric = this.at("metric").value;
    this.state.view = this.shadowRoot.querySelector("input[name=view]:checked").value;
    this.update();
  }

  fragment() {
    const { candidate, second, reference, metric, view } = this.state;
    const texts = this.given.served ? { c: candidate, ...(second ? { b: second } : {}), r: reference } : {};
    return new URLSearchParams({ ...texts, m: metric, v: view }).toString();
  }

  async update() {
    const turn = (this.turn = (this.turn || 0) + 1);
    if (this.given.page) history.replaceState(null, "", `#${this.fragment()}`);
    const { candidate, second, reference, metric } = this.state;
    const wanted = [candidate, ...(second ? [second] : [])];
    try {
      const found = await Promise.all(wanted.map((text) => this.find(text, reference, metric)));
      if (turn !== this.turn) return; // the input has changed since
      this.found = found;
      this.draw();
      this.announce(found.map((s, n) => `${found.length > 1 ? "AB"[n] + ": " : ""}score ${formatNumber(s.score.value ?? 0, 4)}`).join(", "), "unseen");
    } catch (error) {
      if (turn === this.turn) this.announce(error.message);
    }
  }

  async find(candidate, reference, metric) {
    const key = this.key(candidate, reference, metric);
    if (!this.known.has(key)) this.known.set(key, await this.ask({ candidate, reference, metric }));
    return this.known.get(key);
  }

  async ask(body) {
    if (!this.given.served) throw new Error("This page does not contain this alignment.");
    const token = this.at("token").value;
    const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch("align", { method: "POST", headers, body: JSON.stringify(body) })
      .catch(() => { throw new Error("No response from the server; is it still running?"); });
    if (answer.status === 401) this.at("lock").hidden = false;
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.detail);
    return found;
  }

  // A message; one of class "unseen" repeats for screen readers what the page shows elsewhere.
  announce(text, name = "") {
    const message = document.createElement("span");
    message.className = name;
    message.textContent = text;
    this.at("status").replaceChildren(message);
  }
}
