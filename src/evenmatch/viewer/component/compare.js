// Explain why one candidate scores higher than another with the same reference.

const MOST_PARTNERS = 3;

// The partners of a unit that give it credit: greedy alignment pairs a unit even with one that is not similar at all.
const partnersOf = (alignment, side, at) => {
  const partners = alignment.pairs.filter(([i, j]) => [i, j][side] === at && alignment.similarity[i][j] !== 0)
    .map(([i, j]) => quote(side ? alignment.candidate_units[i] : alignment.reference_units[j]));
  const more = partners.length - MOST_PARTNERS;
  return partners.slice(0, MOST_PARTNERS).join(", ") + (more > 0 ? ` and ${more} more` : "");
};

const share = (weights, at) => {
  const sum = weights.reduce((a, b) => a + b, 0);
  return sum ? weights[at] / sum : 0;
};

const largest = (items, count) =>
  items.filter((item) => Math.abs(item.size) >= 0.005)
    .sort((a, b) => Math.abs(b.size) - Math.abs(a.size)).slice(0, count);

// Contribution of each reference unit to the difference in recall.
const recallReasons = (first, second) =>
  largest(first.reference_units.map((_, j) => ({
    size: share(first.reference_weights, j) * (second.covered[j] - first.covered[j]),
    at: j,
  })), 5).map(({ size, at }) => {
    const how = (alignment) => `${formatNumber(alignment.covered[at])} by ${partnersOf(alignment, 1, at) || "nothing"}`;
    return `${nameUnit(first.reference_units, at)} is covered ${how(first)} in A and ${how(second)} in B: recall ${formatSigned(size)}`;
  });

// The candidate units that reduce precision most.
const precisionReasons = (alignment, letter) =>
  largest(alignment.candidate_units.map((_, i) => ({
    size: share(alignment.candidate_weights, i) * (1 - alignment.gained[i]),
    at: i,
  })), 3).map(({ size, at }) =>
    `${letter}’s ${nameUnit(alignment.candidate_units, at)} has credit ${formatNumber(alignment.gained[at])}` +
    `${partnersOf(alignment, 0, at) ? ` from ${partnersOf(alignment, 0, at)}` : ""}: precision of ${letter} −${formatNumber(size, 3)}`);

const summarise = (first, second) => {
  const difference = second.score.value - first.score.value;
  const parts = ["precision", "recall"].filter((key) => first.score[key] !== null && second.score[key] !== null)
    .map((key) => `${key} ${formatSigned(second.score[key] - first.score[key])}`);
  const details = parts.length ? ` (${parts.join(", ")})` : "";
  if (Math.abs(difference) < 0.0005) return `A and B have the same score, ${formatNumber(first.score.value, 3)}${details}.`;
  const [better, worse] = difference > 0 ? ["B", "A"] : ["A", "B"];
  return `${better} scores higher than ${worse} by ${formatNumber(Math.abs(difference), 3)}; B minus A: ${formatSigned(difference)}${details}.`;
};

const bulletList = (items) => `<ul>${items.map((item) => `<li>${escapeHtml(item)}</li>`).join("")}</ul>`;

const comparison = (first, second) => {
  const recall = first.reference_units.length === second.reference_units.length ? recallReasons(first, second) : [];
  const precision = [...precisionReasons(first, "A"), ...precisionReasons(second, "B")];
  return `<section class="why" aria-label="explanation of the difference"><h2>Why they differ</h2><p>${escapeHtml(summarise(first, second))}</p>` +
    (recall.length ? `<h3>Coverage of the reference (recall)</h3>${bulletList(recall)}` : "") +
    (precision.length ? `<h3>Content not in the reference (precision)</h3>${bulletList(precision)}` : "") + "</section>";
};
