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
