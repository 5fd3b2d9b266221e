// Why one candidate scores higher than another against the same reference.

const partnersOf = (shown, side, at) =>
  shown.pairs.filter((pair) => pair[side] === at)
    .map(([i, j]) => quoted(side ? shown.candidate_units[i] : shown.reference_units[j])).join(", ");

const share = (weights, at) => {
  const sum = weights.reduce((a, b) => a + b, 0);
  return sum ? weights[at] / sum : 0;
};

const largest = (items, count) =>
  items.filter((item) => Math.abs(item.size) >= 0.005)
    .sort((a, b) => Math.abs(b.size) - Math.abs(a.size)).slice(0, count);

// What each unit of the reference adds to the difference of the recalls.
const recallReasons = (first, second) =>
  largest(first.reference_units.map((_, j) => ({
    size: share(first.reference_weights, j) * (second.covered[j] - first.covered[j]),
    at: j,
  })), 5).map(({ size, at }) => {
    const how = (shown) => `${number(shown.covered[at])} by ${partnersOf(shown, 1, at) || "nothing"}`;
    return `${named(first.reference_units, at)} is covered ${how(first)} in A and ${how(second)} in B: recall ${signed(size)}`;
  });

// The units on which a candidate loses most of its precision.
const precisionReasons = (shown, letter) =>
  largest(shown.candidate_units.map((_, i) => ({
    size: share(shown.candidate_weights, i) * (1 - shown.gained[i]),
    at: i,
  })), 3).map(({ size, at }) =>
    `${letter}’s ${named(shown.candidate_units, at)} gains ${number(shown.gained[at])}` +
    `${partnersOf(shown, 0, at) ? ` from ${partnersOf(shown, 0, at)}` : ""}: costs ${letter} ${number(size, 3)} of precision`);

const verdict = (first, second) => {
  const difference = second.score.value - first.score.value;
  const parts = ["precision", "recall"].filter((key) => first.score[key] !== null && second.score[key] !== null)
    .map((key) => `${key} ${signed(second.score[key] - first.score[key])}`);
  const beside = parts.length ? ` (${parts.join(", ")})` : "";
  if (Math.abs(difference) < 0.0005) return `A and B score alike, ${number(first.score.value, 3)}${beside}.`;
  const [better, worse] = difference > 0 ? ["B", "A"] : ["A", "B"];
  return `${better} scores higher than ${worse} by ${number(Math.abs(difference), 3)}; B against A: ${signed(difference)}${beside}.`;
};

const listed = (items) => `<ul>${items.map((item) => `<li>${escaped(item)}</li>`).join("")}</ul>`;

const comparison = (first, second) => {
  const recall = first.reference_units.length === second.reference_units.length ? recallReasons(first, second) : [];
  const precision = [...precisionReasons(first, "A"), ...precisionReasons(second, "B")];
  return `<section class="why" aria-label="the difference explained"><h2>Why they differ</h2><p>${escaped(verdict(first, second))}</p>` +
    (recall.length ? `<h3>What of the reference they cover</h3>${listed(recall)}` : "") +
    (precision.length ? `<h3>What they say beyond it</h3>${listed(precision)}` : "") + "</section>";
};
