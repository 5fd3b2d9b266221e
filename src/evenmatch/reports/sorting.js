// Tables can be sorted and searched.

// A click on a column heading sorts the table: numbers descending, text ascending; again: reversed.
for (const table of document.querySelectorAll("table.sorted")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.firstChild.addEventListener("click", () => {
    const numbers = head.classList.contains("number");
    const first = numbers ? "descending" : "ascending", other = numbers ? "ascending" : "descending";
    const order = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of heads) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const turn = order === "ascending" ? 1 : -1;
    const key = (row) => row.cells[column].textContent;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      if (!numbers) return turn * key(a).localeCompare(key(b));
      const [x, y] = [parseFloat(key(a)), parseFloat(key(b))];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return turn * (x - y);
    });
    table.tBodies[0].append(...rows);
  }));
}

// A long table gets a field that hides the rows without the typed text in a cell.
const MANY_ROWS = 15;
for (const table of document.querySelectorAll("table.sorted")) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length <= MANY_ROWS) continue;
  const label = document.createElement("label"), field = document.createElement("input"), count = document.createElement("span");
  label.className = "search";
  count.setAttribute("role", "status");
  Object.assign(field, { type: "search", ariaLabel: `Search: ${table.caption.textContent}` });
  label.append("Search", field, count);
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const row of rows) row.hidden = ![...row.cells].some((cell) => cell.textContent.toLowerCase().includes(wanted));
    count.textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
  });
  table.closest(".wide").before(label);
}

// Say so where a table or figure is wider than the screen.
const hints = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const wider = target.scrollWidth > target.clientWidth + 1, hint = target.nextElementSibling;
    if (hint?.classList.contains("more")) hint.hidden = !wider;
    else if (wider) target.insertAdjacentHTML("afterend", '<p class="more">Scroll sideways to see the rest →</p>');
  }
});
for (const region of document.querySelectorAll(".wide")) hints.observe(region);
