// The link diagram as SVG, and the heat map as a table and as SVG.

const BOX = { high: 26, gap: 10, padding: 7, apart: 114, leading: 14 };

// Position of each unit's box: rows of at most `room` pixels from `top` on or, if upright (narrow
// screens), a column.
const boxes = (units, side, upright, columnWide, top, room) => {
  let x = BOX.gap, y = top;
  return units.map((unit) => {
    const text = shorten(unit), width = textWidth(text) + 2 * BOX.padding;
    if (upright) {
      const box = { text, width, x: side ? columnWide + 90 : BOX.gap + columnWide - width, y };
      y += BOX.high + 6;
      return box;
    }
    if (x > BOX.gap && x + width + BOX.gap > room) [x, y] = [BOX.gap, y + BOX.high + BOX.leading];
    const box = { text, width, x, y };
    x += width + BOX.gap;
    return box;
  });
};

const curve = (a, b, upright) => {
  if (upright) {
    const [x, y, u, v] = [a.x + a.width, a.y + BOX.high / 2, b.x, b.y + BOX.high / 2];
    return `M${x} ${y}C${(x + u) / 2} ${y} ${(x + u) / 2} ${v} ${u} ${v}`;
  }
  const [x, y, u, v] = [a.x + a.width / 2, a.y + BOX.high, b.x + b.width / 2, b.y];
  return `M${x} ${y}C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v}`;
};

const drawUnit = (alignment, side, at, box, paired) =>
  `<g class="unit${paired ? "" : " alone"}" data-side="${side}" data-at="${at}" role="img" ` +
  `aria-label="${escapeHtml(describeUnit(alignment, side, at))}">` +
  `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${BOX.high}" rx="4"/>` +
  `<text x="${box.x + box.width / 2}" y="${box.y + 18}">${escapeHtml(box.text)}</text></g>`;

const linksSvg = (alignment, upright, room = Infinity) => {
  const sides = [alignment.candidate_units, alignment.reference_units];
  const columnWide = Math.max(60, ...sides[0].map((unit) => textWidth(shorten(unit)) + 2 * BOX.padding));
  const above = boxes(sides[0], 0, upright, columnWide, upright ? 32 : 24, room);
  const bottom = Math.max(24, ...above.map((b) => b.y)) + BOX.high + BOX.apart;
  const rows = [above, boxes(sides[1], 1, upright, columnWide, upright ? 32 : bottom, room)];
  const all = rows.flat();
  const width = Math.ceil(Math.max(220, ...all.map((b) => b.x + b.width)) + BOX.gap);
  const high = Math.ceil(Math.max(upright ? 32 : bottom, ...all.map((b) => b.y)) + BOX.high + 24);
  const lines = alignment.pairs.map(([i, j, weight]) =>
    `<path class="link" data-i="${i}" data-j="${j}" data-weight="${weight}" d="${curve(rows[0][i], rows[1][j], upright)}" ` +
    `stroke-width="${(0.8 + 3.2 * Math.min(weight, 1)).toFixed(2)}" ` +
    `opacity="${(0.25 + 0.75 * Math.min(Math.max(alignment.similarity[i][j], 0), 1)).toFixed(2)}"/>`);
  const paired = [0, 1].map((side) => new Set(alignment.pairs.map((pair) => pair[side])));
  const drawn = rows.map((row, side) =>
    row.map((box, at) => drawUnit(alignment, side, at, box, paired[side].has(at))).join(""));
  const [ax, ay] = upright ? [columnWide + 90, 14] : [BOX.gap, high - 6];
  return `<svg xmlns="http://www.w3.org/2000/svg" class="links" role="group" aria-label="links between ` +
    `${sides[0].length} candidate units and ${sides[1].length} reference units" width="${width}" ` +
    `height="${high}" viewBox="0 0 ${width} ${high}"><text class="side" x="${BOX.gap}" y="14">candidate</text>` +
    `<text class="side" x="${ax}" y="${ay}">reference</text>${lines.join("")}${drawn.join("")}</svg>`;
};

const scaleSimilarity = (alignment) => {
  const all = alignment.similarity.flat();
  const low = all.reduce((a, b) => Math.min(a, b), 0), high = all.reduce((a, b) => Math.max(a, b), 1);
  return (value) => (value - low) / (high - low);
};

const MOST_CELLS = 10000;
const LIGHT_TEXT = 0.77; // white numbers from this colour depth on, black ones below

const mapTable = (alignment) => {
  const [rows, columns] = [alignment.candidate_units, alignment.reference_units];
  if (rows.length * columns.length > MOST_CELLS)
    return `<p>${rows.length} by ${columns.length} similarities are too many to show; use the links view.</p>`;
  const weight = weights(alignment), alpha = scaleSimilarity(alignment);
  const cell = (i, j) => {
    const w = weight.get(`${i},${j}`) || 0, a = alpha(alignment.similarity[i][j]);
    return `<td role="gridcell" tabindex="-1" class="heat${a > LIGHT_TEXT ? " hot" : ""}${w ? " pair" : ""}" data-i="${i}" ` +
      `data-j="${j}" data-s="${a.toFixed(2)}" data-w="${w.toFixed(2)}">${formatNumber(alignment.similarity[i][j])}` +
      (w ? `<span class="unseen">, pair of weight ${formatNumber(w)}</span>` : "") + "</td>";
  };
  const heads = columns.map((unit) => `<th scope="col" role="columnheader">${escapeHtml(shorten(unit))}</th>`);
  const body = rows.map((unit, i) =>
    `<tr role="row"><th scope="row" role="rowheader">${escapeHtml(shorten(unit))}</th>${columns.map((_, j) => cell(i, j)).join("")}</tr>`);
  return `<table role="grid" aria-label="similarities: candidate in rows, reference in columns" ` +
    `class="${columns.length > 8 ? "dense" : ""}"><thead><tr role="row"><td role="presentation"></td>${heads.join("")}</tr></thead>` +
    `<tbody>${body.join("")}</tbody></table>`;
};

// Estimated width of the table in pixels.
const mapWidth = ({ candidate_units: rows, reference_units: columns }) => {
  const cell = columns.length > 8 ? () => 46 : (unit) => Math.max(46, textWidth(shorten(unit)) + 16);
  return columns.reduce((sum, unit) => sum + cell(unit), Math.max(40, ...rows.map((u) => textWidth(shorten(u)))) + 16);
};

const mapSvg = (alignment) => {
  const [rows, columns] = [alignment.candidate_units, alignment.reference_units];
  const weight = weights(alignment), alpha = scaleSimilarity(alignment);
  const left = Math.max(40, ...rows.map((u) => textWidth(shorten(u)))) + 10;
  const top = Math.max(40, ...columns.map((u) => textWidth(shorten(u)))) + 10;
  const side = 40, high = 28;
  const cells = rows.map((_, i) => columns.map((_, j) => {
    const x = left + j * side, y = top + i * high, w = weight.get(`${i},${j}`) || 0;
    const a = alpha(alignment.similarity[i][j]);
    return `<rect x="${x}" y="${y}" width="${side}" height="${high}" style="fill:#08519c;fill-opacity:${a.toFixed(2)};stroke:none"/>` +
      (w ? `<rect x="${x + 2}" y="${y + 2}" width="${side - 4}" height="${high - 4}" style="fill:none;stroke:#e8590c;stroke-width:${(1 + 2.5 * w).toFixed(1)}"/>` : "") +
      `<text x="${x + side / 2}" y="${y + 18}" style="fill:${a > LIGHT_TEXT ? "#fff" : "#000"}">${formatNumber(alignment.similarity[i][j])}</text>`;
  }).join("")).join("");
  const names = rows.map((u, i) => `<text x="${left - 6}" y="${top + i * high + 18}" style="text-anchor:end">${escapeHtml(shorten(u))}</text>`).join("") +
    columns.map((u, j) => `<text transform="translate(${left + j * side + 24} ${top - 6}) rotate(-90)" style="text-anchor:start">${escapeHtml(shorten(u))}</text>`).join("");
  const [w, h] = [left + columns.length * side + 10, top + rows.length * high + 10];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">${names}${cells}</svg>`;
};

// Add the style to an SVG, so that it can be used outside the page.
const standalone = (svg) =>
  svg.replace(/>/, "><style>text{font:14px monospace;text-anchor:middle;fill:#212529}.side{text-anchor:start;fill:#5c636a}" +
    ".word{fill:#5c636a}.edge{stroke:#adb5bd}rect{fill:#fff;stroke:#adb5bd}path{fill:none;stroke:#e8590c;stroke-linecap:round}" +
    ".alone rect{stroke-dasharray:3 3}.alone text{font-style:italic}</style>");
