"""Opens the report's page of a study of 200 points, whose texts are hostile, in a headless Chromium: on a desktop, on a
phone, on paper. Usage: page_in_chromium.py PAGE. Says what is wrong and ends with 1."""
import sys

from chromium import Chromium

failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


# JavaScript that returns texts of a plot that exceed it, with the reader's own fonts.
STICKING_OUT = """[...document.querySelectorAll('svg.plot')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 6 || own.right > box.right + 6 || own.bottom > box.bottom + 6 || own.top < box.top - 6;
  }).map(text => text.textContent);
})"""

# JavaScript functions: the table below this heading, and the texts of a column in the rows that are shown, of the longest
# section: each section is sorted by itself.
HELPERS = """
function tableOf(part) {
  let at = document.getElementById(part);
  while (!at.querySelector('table')) at = at.nextElementSibling;
  return at.querySelector('table');
}
function headingOf(part, name) {
  return [...tableOf(part).tHead.rows].at(-1).cells.namedItem?.(name)
      ?? [...[...tableOf(part).tHead.rows].at(-1).cells].find(cell => cell.firstChild.textContent === name);
}
function column(part, name) {
  const index = headingOf(part, name).cellIndex;
  const sections = [...tableOf(part).tBodies].map(body => [...body.rows].filter(row => !row.hidden && row.className !== 'setting'));
  return sections.reduce((a, b) => a.length >= b.length ? a : b).map(row => row.cells[index].textContent);
}
"""


def numbers(texts):
    return [float(text.replace(",", "")) for text in texts if text != "-"]


def on_a_desktop(browser):
    check(browser.run("document.title").startswith("shardmark"), "no title")
    check(browser.run("document.querySelectorAll('table.answers tr').length") > 5, "the answers are short")
    check(browser.run("document.querySelectorAll('svg.plot').length") > 10, "plots are missing")
    check(browser.run("[...document.querySelectorAll('svg.plot')].every(svg => svg.clientHeight > 60)"), "a plot has no height")
    check(browser.run("document.documentElement.scrollWidth") <= 1440, "wider than a desktop")
    check(not browser.run(STICKING_OUT), f"texts stick out of their plots: {browser.run(STICKING_OUT)}")
    check(browser.run("typeof window.hit") == "undefined", "a text of the study ran as a script")
    check(browser.run("document.querySelectorAll('main img, main iframe, main script').length") == 0, "a text became an element")
    browser.run(HELPERS)


def sorts(browser):
    browser.run("headingOf('strategies', 'x single').scrollIntoView()")
    box = browser.run("(({left, top, width, height}) => [left + width / 2, top + height / 2])"
                      "(headingOf('strategies', 'x single').getBoundingClientRect())")
    before = browser.run("column('strategies', 'x single')")
    check(numbers(before) != sorted(numbers(before)) and "-" in before, "the column proves nothing: it is sorted as it is")
    for direction, reverse in (("ascending", False), ("descending", True)):
        browser.click(*box)
        after = browser.run("column('strategies', 'x single')")
        check(len(after) == len(before), "sorting changed the number of rows")
        check(numbers(after) == sorted(numbers(after), reverse=reverse), f"not {direction}: {after}")
        check(all(text == "-" for text in after[len(numbers(after)):]), f"what is missing is not last: {after}")
        check(browser.run("headingOf('strategies', 'x single').getAttribute('aria-sort')") == direction, "no aria-sort")
    # The keyboard: one stop for the table, arrows from heading to heading, Space and Enter sort.
    browser.run("tableOf('strategies').querySelector('thead button[tabindex=\"0\"]').focus()")
    check(browser.run("tableOf('strategies').querySelectorAll('thead button[tabindex=\"0\"]').length") == 1, "more than one stop")
    browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))")
    browser.run("document.activeElement.click()")
    check(browser.run("document.activeElement.closest('th').hasAttribute('aria-sort')"), "the keyboard does not sort")
    check(browser.run("document.getElementById('said').textContent").startswith("Sorted by "), "sorting is not announced")
    browser.run("headingOf('strategies', 'strategy').click()")
    after = browser.run("column('strategies', 'strategy')")
    check(after == sorted(after), f"words are not sorted: {after}")


def filters(browser):
    every = len(browser.run("column('strategies', 'ranks')"))
    browser.run("""{ const input = tableOf('strategies').parentNode.previousElementSibling.querySelector('input');
      input.value = 'ZERO3 oversub'; input.dispatchEvent(new Event('input')); }""")
    shown = browser.run("column('strategies', 'strategy')")
    check(0 < len(shown) < every and set(shown) == {"zero3"}, f"the filter shows {shown}")
    every = browser.run("[...tableOf('strategies').tBodies].flatMap(body => [...body.rows]).filter(row => row.className !== 'setting').length")
    shown = browser.run("[...tableOf('strategies').tBodies].flatMap(body => [...body.rows]).filter(row => !row.hidden && row.className !== 'setting').map(row => 0)")
    count = browser.run("tableOf('strategies').parentNode.previousElementSibling.querySelector('span').textContent")
    check(count == f"{len(shown)} of {every} rows", f"the filter counts '{count}'")


def says_values(browser):
    browser.run("document.querySelector('#plot_weak_efficiency_1').scrollIntoView({block: 'center'})")
    browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")  # waits until the page has scrolled
    x, y = browser.run("""(({left, top, width, height}) => [left + width / 2, top + height / 2])
      ([...document.querySelectorAll('#plot_weak_efficiency_1 .mark')].at(3).getBoundingClientRect())""")
    browser.move_to(x, y)
    said = browser.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    check("ranks: " in said and "%" in said, f"pointing at a mark says '{said}'")
    browser.move_to(2, 2)
    check(browser.run("document.getElementById('tip').hidden"), "the hint stays")
    plot = "document.querySelector('#plot_weak_efficiency_1 svg.plot')"
    browser.run(f"{plot}.focus(); {plot}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowRight'}}))")
    said = browser.run("document.getElementById('said').textContent")
    check(" rank" in said and "%" in said, f"an arrow key says '{said}'")
    browser.run(f"{plot}.blur()")


def zooms(browser):
    plot = "document.querySelector('#plot_weak_scaling_1 svg.plot')"
    labels = f"[...{plot}.querySelectorAll('g.ticks.left text')].map(text => text.textContent)"
    area = f"{plot}.querySelector('svg.area')"
    browser.run(f"{plot}.scrollIntoView({{block: 'center'}})")
    browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
    whole = browser.run(labels)
    left, top, width, height = browser.run(f"(({{left, top, width, height}}) => [left, top, width, height])({area}.querySelector('rect').getBoundingClientRect())")
    browser.drag(left + 0.1 * width, top + 0.5 * height, left + 0.6 * width, top + 0.9 * height)
    zoomed = browser.run(labels)
    check(len(zoomed) >= 3 and zoomed != whole, f"a drag does not zoom: {whole}, {zoomed}")
    view = browser.run(f"{area}.getAttribute('viewBox').split(' ').map(Number)")
    base = browser.run(f"['x', 'y', 'width', 'height'].map(name => Number({area}.getAttribute(name)))")
    check(abs(view[2] / base[2] - 0.5) < 0.02 and abs(view[3] / base[3] - 0.4) < 0.02, f"the drag shows {view} of {base}")
    sizes = browser.run(f"[...{area}.querySelectorAll('.mark.point')].map(mark => mark.getBoundingClientRect()).map(box => box.width / box.height)")
    check(all(0.8 < size < 1.25 for size in sizes), f"markers lost their form: {sizes}")
    browser.run(f"{area}.dispatchEvent(new MouseEvent('dblclick'))")
    check(browser.run(labels) == whole, "a double click does not go back")


# The parts of a table or of a plot that are hard to see: with less than three times the contrast to the paper.
FAINT = """(() => {
  const light = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(part => part / 255).map(c => c <= 0.04 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const contrast = color => (Math.max(light(color), paper) + 0.05) / (Math.min(light(color), paper) + 0.05);
  const words = [...document.querySelectorAll('h1, h2, p, th, td, nav a')].filter(one => contrast(getComputedStyle(one).color) < 4.5);
  const marks = [...document.querySelectorAll('.plot .curve, .plot .point:not(.spot)')].filter(one => contrast(getComputedStyle(one).stroke) < 3);
  return [...words.map(one => one.textContent.slice(0, 30)), ...new Set(marks.map(one => getComputedStyle(one).stroke))];
})()"""


def on_dark_paper(browser):
    check(browser.run(FAINT) == [], f"faint on white paper: {browser.run(FAINT)}")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    check(browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(21, 25, 30)", "no dark paper")
    check(browser.run(FAINT) == [], f"faint on dark paper: {browser.run(FAINT)}")
    browser.call("Emulation.setEmulatedMedia", features=[])


# Boxes whose table is wider than they are.
WIDE = """[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => box.getAttribute('aria-label') + ' ' + box.scrollWidth)"""


def on_a_phone(browser):
    browser.size(390, 844, mobile=True)
    width = browser.run("document.documentElement.scrollWidth")
    check(width <= 390, f"{width} wide on a phone of 390")
    check(not browser.run(STICKING_OUT), f"on a phone texts stick out of plots: {browser.run(STICKING_OUT)}")


def on_paper(browser):
    browser.size(1032, 700)  # A4 landscape without margins
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.call("Emulation.setEmulatedMedia", media="print")
    check(browser.run("getComputedStyle(document.querySelector('nav')).display") == "none", "the contents are printed")
    check(browser.run("[...document.querySelectorAll('details.prints')].every(part => part.open)"), "notes stay folded")
    wide = browser.run("[...document.querySelectorAll('table')].filter(t => t.offsetWidth > 1032).map(t => t.innerText.slice(0, 60) + t.offsetWidth).join('; ')")
    check(wide == "", f"wider than the paper of 1032: {wide}")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.run("dispatchEvent(new Event('afterprint'))")
    check(not browser.run("document.querySelector('details.prints').open"), "notes stay open after printing")
    check(browser.pdf("1-2").startswith(b"%PDF-"), "it does not print")


with Chromium() as browser:
    browser.size(1440, 900)
    browser.open(sys.argv[1])
    for step in (on_a_desktop, on_dark_paper, sorts, filters, says_values, zooms, on_a_phone, on_paper):
        step(browser)
    for error in browser.errors:
        failures.append("console: " + error)
for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
