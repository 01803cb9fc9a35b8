// Tables that sort and filter, values where one points, everything open on paper. Without it the page still
// shows all that it has.
"use strict";

// "1,234" and "+1.25" are numbers, "-" is nothing; words compare as words.
function sortKey(cell) {
  const text = cell.textContent.trim();
  if (text === "" || text === "-") return null;
  const number = Number(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

// What is not there comes last in either direction.
function compareKeys(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return typeof a === "number" ? -sign : sign;
  return a < b ? -sign : a > b ? sign : 0;
}

function sortBy(table, heading) {
  const ascending = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const column = [...heading.parentNode.cells].indexOf(heading);
  const rows = [...table.tBodies[0].rows].map(row => ({ row, key: sortKey(row.cells[column]) }));
  rows.sort((a, b) => compareKeys(a.key, b.key, ascending ? 1 : -1));
  for (const { row } of rows) row.classList.remove("group");
  table.tBodies[0].append(...rows.map(({ row }) => row));
}

// Shows the rows that hold every word.
function filterBy(table, text, count) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = [...table.tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    const said = row.textContent.toLowerCase();
    row.hidden = !words.every(word => said.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
}

function equip(table) {
  if (table.tBodies[0].rows.length < 2) return;
  for (const heading of table.tHead.rows[table.tHead.rows.length - 1].cells) {
    heading.tabIndex = 0;
    heading.title = "sort";
    heading.addEventListener("click", () => sortBy(table, heading));
    heading.addEventListener("keydown", event => { if (event.key === "Enter") sortBy(table, heading); });
  }
  if (table.tBodies[0].rows.length < 5) return;
  const tools = document.createElement("div"), input = document.createElement("input");
  const count = document.createElement("span");
  tools.className = "tools";
  input.type = "search";
  input.placeholder = "show rows with ...";
  input.setAttribute("aria-label", "Show only the rows that hold these words");
  input.addEventListener("input", () => filterBy(table, input.value, count));
  tools.append(input, count);
  table.parentNode.before(tools);
}

// The browser's own hints come late and not at all by touch: the nearest mark's title is shown at once.
function hints() {
  const reach = 24;
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  let near = null;
  const forget = () => {
    if (near) near.classList.remove("near");
    near = null;
    tip.hidden = true;
  };
  const distance = (mark, x, y) => {
    const box = mark.getBoundingClientRect();
    return Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
  };
  const show = (svg, event) => {
    let best = null, least = reach;
    for (const mark of svg.querySelectorAll(".mark")) {
      const far = distance(mark, event.clientX, event.clientY);
      if (far < least) [best, least] = [mark, far];
    }
    if (best !== near) forget();
    if (!best) return;
    near = best;
    near.classList.add("near");
    tip.textContent = near.dataset.says;
    tip.hidden = false;
    const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4);
    const top = event.clientY + 14 + tip.offsetHeight < innerHeight ? event.clientY + 14 : event.clientY - 10 - tip.offsetHeight;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${top}px`;
  };
  for (const svg of document.querySelectorAll("svg.plot")) {
    for (const title of svg.querySelectorAll(".mark > title")) {
      title.parentNode.dataset.says = title.textContent;
      title.remove();
    }
    svg.addEventListener("pointermove", event => show(svg, event));
    svg.addEventListener("pointerdown", event => show(svg, event));
    svg.addEventListener("pointerleave", forget);
  }
  addEventListener("scroll", forget, { passive: true });
}

for (const table of document.querySelectorAll("table:not(.answers)")) equip(table);
hints();
const opened = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details.prints:not([open])")) {
    part.open = true;
    opened.push(part);
  }
});
addEventListener("afterprint", () => {
  for (const part of opened.splice(0)) part.open = false;
});
