// How units, numbers and pairs are written.

const escaped = (text) =>
  String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// On one line, without control characters, and never nothing at all.
const printable = (unit) =>
  unit.replace(/[\p{C}\p{Z}\s]+/gu, " ").trim() || "(blank)";

const short = (unit, longest = 18) => {
  const letters = Array.from(printable(unit));
  return letters.length <= longest ? letters.join("") : letters.slice(0, longest - 1).join("") + "…";
};

// Roughly, in pixels of a 14 pixel monospaced font.
const wide = (text) =>
  Array.from(text).reduce((sum, c) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(c) ? 14 : 8.5), 0);

const number = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
};

const signed = (value, digits = 3) => (value < 0 ? "−" : "+") + number(Math.abs(value), digits);

const quoted = (unit) => `“${short(unit, 40)}”`;

// A unit among others of the same writing: which of them it is.
const named = (units, at) => {
  const same = units.slice(0, at + 1).filter((unit) => unit === units[at]).length;
  const all = units.filter((unit) => unit === units[at]).length;
  return quoted(units[at]) + (all > 1 ? ` (no. ${same})` : "");
};

const weights = (shown) => new Map(shown.pairs.map(([i, j, weight]) => [`${i},${j}`, weight]));

const pairSaid = (shown, i, j, weight) =>
  `${quoted(shown.candidate_units[i])} – ${quoted(shown.reference_units[j])}: ` +
  `similarity ${number(shown.similarity[i][j], 3)}` +
  (weight ? `, weight ${number(weight)}` : ", no pair");

// One unit with its partners, in a sentence. side 0 is the candidate, 1 the reference.
const unitSaid = (shown, side, at) => {
  const [own, other] = side
    ? [shown.reference_units, shown.candidate_units]
    : [shown.candidate_units, shown.reference_units];
  const credit = (side ? shown.covered : shown.gained)[at];
  const partners = shown.pairs
    .filter((pair) => pair[side] === at)
    .map(([i, j, w]) => `${quoted(other[side ? i : j])} (weight ${number(w)}, similarity ${number(shown.similarity[i][j], 3)})`);
  return `${side ? "reference" : "candidate"} ${named(own, at)}: ` +
    (partners.length ? `paired with ${partners.join(", ")}; ${side ? "covered" : "gains"} ${number(credit, 3)}` : "no partner");
};
