// Tables that sort and filter, plots that say values and zoom, everything open on paper. Without it the page still
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
  for (const body of table.tBodies) {  // what a section compares stays together, below the row that names it
    const rows = rowsOf(body).map(row => ({ row, key: sortKey(row.cells[column]) }));
    rows.sort((a, b) => compareKeys(a.key, b.key, ascending ? 1 : -1));
    for (const { row } of rows) row.classList.remove("group");
    body.append(...rows.map(({ row }) => row));
  }
  say(`Sorted by ${heading.textContent}, ${ascending ? "ascending" : "descending"}`);
}

function rowsOf(body) { return [...body.rows].filter(row => !row.classList.contains("setting")); }

// For who listens to the page.
function say(words) { document.getElementById("said").textContent = words; }

// Shows the rows that hold every word.
function filterBy(table, text, count) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0, all = 0;
  for (const body of table.tBodies) {
    const rows = rowsOf(body), about = [...body.rows].find(row => row.classList.contains("setting"));
    const before = shown;
    for (const row of rows) {
      const said = ((about ? about.textContent + " " : "") + row.textContent).toLowerCase();
      row.hidden = !words.every(word => said.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    if (about) about.hidden = shown === before;
    all += rows.length;
  }
  count.textContent = words.length ? `${shown} of ${all} rows` : "";
}

function equip(table) {
  const num_rows = [...table.tBodies].reduce((sum, body) => sum + rowsOf(body).length, 0);
  if (num_rows < 2) return;
  // One stop of the tabulator for each table; arrows go from heading to heading.
  const buttons = [...table.tHead.rows[table.tHead.rows.length - 1].cells].map(heading => {
    const button = document.createElement("button"), name = heading.querySelector("span");
    button.type = "button";
    button.title = "sort; arrow keys: next column";
    button.tabIndex = -1;
    name.replaceWith(button);
    button.append(name);
    heading.addEventListener("click", () => sortBy(table, heading));
    return button;
  });
  buttons[0].tabIndex = 0;
  table.tHead.addEventListener("keydown", event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], at = buttons.indexOf(document.activeElement);
    if (!step || at < 0 || !buttons[at + step]) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    buttons[at + step].tabIndex = 0;
    buttons[at + step].focus();
  });
  if (num_rows < 5) return;
  const tools = document.createElement("div"), input = document.createElement("input");
  const count = document.createElement("span");
  count.setAttribute("role", "status");
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
  tip.setAttribute("aria-hidden", "true");  // say() says the same
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
    if (best) point_at(best, event.clientX, event.clientY);
  };
  const point_at = (mark, x, y) => {
    near = mark;
    near.classList.add("near");
    tip.textContent = near.dataset.says;
    tip.hidden = false;
    const left = Math.min(x + 12, innerWidth - tip.offsetWidth - 4);
    const top = y + 14 + tip.offsetHeight < innerHeight ? y + 14 : y - 10 - tip.offsetHeight;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${top}px`;
  };
  // Arrows go from mark to mark, and what each says is read aloud, too.
  const walk = (svg, event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], marks = [...svg.querySelectorAll(".mark")];
    if (event.key === "Escape") return forget();
    if (!step || !marks.length) return;
    event.preventDefault();
    const at = marks.indexOf(near), next = marks[at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length];
    forget();
    const box = next.getBoundingClientRect();
    point_at(next, box.right, box.bottom);
    say(next.dataset.says);
  };
  for (const svg of document.querySelectorAll("svg.plot")) {
    for (const title of svg.querySelectorAll(".mark > title")) {
      title.parentNode.dataset.says = title.textContent;
      title.remove();
    }
    svg.addEventListener("pointermove", event => show(svg, event));
    svg.addEventListener("pointerdown", event => show(svg, event));
    svg.addEventListener("pointerleave", forget);
    if (!svg.querySelector(".mark")) continue;
    svg.tabIndex = 0;
    svg.setAttribute("aria-description", "Left and right arrow keys say the values one by one.");
    svg.addEventListener("keydown", event => walk(svg, event));
    svg.addEventListener("blur", forget);
  }
  addEventListener("scroll", forget, { passive: true });
}

// Drag over a plot to zoom, double-click to go back. The area is an <svg> of its own: what it shows is its viewBox,
// and what must keep its size (markers, words) is scaled back by two properties of style.
function zooms(plot) {
  const area = plot.querySelector("svg.area");
  if (!area) return;
  const { x: left, y: top, width, height } = area.viewBox.baseVal;
  const has_rows = !plot.dataset.left;
  const original = [...plot.querySelectorAll("g.ticks")].map(group => group.cloneNode(true));
  let from = null, frame = null;

  const place = event => {
    const box = plot.getBoundingClientRect(), scale = plot.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    return { x: Math.min(Math.max(x, left), left + width), y: Math.min(Math.max(y, top), top + height) };
  };
  const draw = (tag, attributes, parent) => {
    const element = document.createElementNS(plot.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return parent.appendChild(element);
  };
  // The coarsest ticks of which three are seen, with room for their labels.
  const ticks = (side, low, high) => {
    const seen = JSON.parse(plot.dataset[side]).map(list => list.filter(([at]) => at >= low - 0.01 && at <= high + 0.01))
      .reduce((coarse, fine) => coarse.length >= 3 ? coarse : fine);
    const most = side === "below" ? width / 50 : height / 16, stride = Math.ceil(seen.length / most);
    return seen.filter((_, i) => i % stride === 0);
  };
  const label = view => {
    for (const group of plot.querySelectorAll("g.ticks")) {
      const below = group.classList.contains("below");
      group.replaceChildren();
      for (const [at, text] of below ? ticks("below", view.x, view.x + view.width) : ticks("left", view.y, view.y + view.height)) {
        const x = left + (at - view.x) / view.width * width, y = top + (at - view.y) / view.height * height;
        draw("path", { class: "grid", d: below ? `M${x} ${top}v${height}` : `M${left} ${y}h${width}` }, group);
        draw("text", below ? { x, y: top + height + 13, "text-anchor": "middle" } : { x: left - 5, y: y + 3.5, "text-anchor": "end" },
             group).textContent = text;
      }
    }
  };
  const show = view => {
    area.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    area.style.setProperty("--keep-x", view.width / width);
    area.style.setProperty("--keep-y", view.height / height);
    const is_whole = view.width === width && view.height === height;
    area.style.overflow = is_whole ? "visible" : "hidden";
    if (is_whole) plot.querySelectorAll("g.ticks").forEach((group, i) => group.replaceWith(original[i].cloneNode(true)));
    else label(view);
  };
  const selected = to => ({
    x: Math.min(from.x, to.x), width: Math.abs(from.x - to.x),
    y: has_rows ? top : Math.min(from.y, to.y), height: has_rows ? height : Math.abs(from.y - to.y) });

  area.addEventListener("pointerdown", event => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;  // a finger scrolls the page
    from = place(event);
    frame = draw("rect", { class: "selection" }, plot);
    event.preventDefault();
  });
  addEventListener("pointermove", event => {
    if (from) for (const [name, value] of Object.entries(selected(place(event)))) frame.setAttribute(name, value);
  });
  addEventListener("pointerup", event => {
    if (!from) return;
    const part = selected(place(event));
    from = null;
    frame.remove();
    if (part.width < 6 || part.height < 6) return;
    const { x, y, width: w, height: h } = area.viewBox.baseVal;
    show({ x: x + (part.x - left) / width * w, width: part.width / width * w,
           y: y + (part.y - top) / height * h, height: part.height / height * h });
  });
  area.addEventListener("dblclick", () => show({ x: left, y: top, width, height }));
}

for (const table of document.querySelectorAll("table:not(.answers)")) equip(table);
for (const plot of document.querySelectorAll("svg.plot")) zooms(plot);
hints();
// A box that scrolls can be reached by the keyboard; one that shows all it has is no stop on the way.
function scroll_by_keys() {
  for (const box of document.querySelectorAll(".scroll")) {
    const is_more = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (is_more) box.tabIndex = 0; else box.removeAttribute("tabindex");
  }
}
scroll_by_keys();
addEventListener("resize", scroll_by_keys);
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
