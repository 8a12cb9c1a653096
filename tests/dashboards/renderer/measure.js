// Reports, for each panel, its state and the texts in it that do not fit: cut off, wider than their panel, or outside.
const report = [];
for (const panel of document.querySelectorAll("section")) {
  const outside = (element) => {
    const box = element.getBoundingClientRect();
    const edge = panel.getBoundingClientRect();
    return box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1;
  };
  const texts = [...panel.querySelectorAll(".fits")].filter((each) => each.scrollWidth > each.clientWidth + 1);
  texts.push(...[...panel.querySelectorAll("svg text")].filter(outside));
  texts.push(...[...panel.querySelectorAll(".wide")].filter((each) => each.scrollWidth > each.clientWidth + 1));
  report.push({
    title: panel.dataset.title,
    state: panel.className,
    error: panel.querySelector(".failed")?.textContent ?? "",
    overflow: texts.map((each) => (each.matches(".wide") ? "scrolls sideways" : each.textContent)),
  });
}
const result = document.createElement("pre");
result.id = "result";
result.textContent = JSON.stringify(report);
document.body.append(result);
