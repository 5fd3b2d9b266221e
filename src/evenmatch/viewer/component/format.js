// Text formatting of units, numbers and pairs.

const escapeHtml = (text) =>
  String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

// On one line, without control characters; blank units become "(blank)".
const printable = (unit) =>
  unit.replace(/[\p{C}\p{Z}\s]+/gu, " ").trim() || "(blank)";

const shorten = (unit, longest = 18) => {
  const letters = Array.from(printable(unit));
  return letters.length <= longest ? letters.join("") : letters.slice(0, longest - 1).join("") + "…";
};

// Estimated width in pixels in a 14 pixel monospaced font.
const textWidth = (text) =>
  Array.from(text).reduce((sum, c) => sum + (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u.test(c) ? 14 : 8.5), 0);

const formatNumber = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
};

const formatSigned = (value, digits = 3) => (value < 0 ? "−" : "+") + formatNumber(Math.abs(value), digits);

const quote = (unit) => `“${shorten(unit, 40)}”`;

// A quoted unit, numbered if the same text occurs more than once.
const nameUnit = (units, at) => {
  const same = units.slice(0, at + 1).filter((unit) => unit === units[at]).length;
  const all = units.filter((unit) => unit === units[at]).length;
  return quote(units[at]) + (all > 1 ? ` (no. ${same})` : "");
};

const weights = (alignment) => new Map(alignment.pairs.map(([i, j, weight]) => [`${i},${j}`, weight]));

const describePair = (alignment, i, j, weight) =>
  `${quote(alignment.candidate_units[i])} – ${quote(alignment.reference_units[j])}: ` +
  `similarity ${formatNumber(alignment.similarity[i][j], 3)}` +
  (weight ? `, weight ${formatNumber(weight)}` : ", not matched");

// Describe a unit and its partners. Side 0 is the candidate, side 1 the reference.
const describeUnit = (alignment, side, at) => {
  const [units, others] = side
    ? [alignment.reference_units, alignment.candidate_units]
    : [alignment.candidate_units, alignment.reference_units];
  const credit = (side ? alignment.covered : alignment.gained)[at];
  const partners = alignment.pairs
    .filter((pair) => pair[side] === at)
    .map(([i, j, w]) => `${quote(others[side ? i : j])} (weight ${formatNumber(w)}, similarity ${formatNumber(alignment.similarity[i][j], 3)})`);
  return `${side ? "reference" : "candidate"} ${nameUnit(units, at)}: ` +
    (partners.length ? `matched to ${partners.join(", ")}; credit ${formatNumber(credit, 3)}` : "unmatched");
};
