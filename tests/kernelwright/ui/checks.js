// What must hold of every page, as a browser sees it.
() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const linear = (value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => {
    const [red, green, blue] = channels(colour).map((value) => linear(value / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (channels(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const contrast = (one, property = "color") => {
    const [light, dark] = [luminance(getComputedStyle(one)[property]), luminance(ground(one))].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && one.checkVisibility();
  const ids = all("[id]").map((one) => one.id);
  return {
    wider: Math.max(0, document.documentElement.scrollWidth - innerWidth),
    headings: all("h1").length,
    mains: all("main").length,
    nameless: all("table").filter((one) => !one.caption?.textContent.trim()).length,
    unlabelled: all("input:not([type=hidden]), select, textarea").filter((one) => !one.labels.length).length,
    pictures: all("svg[role]").filter((one) => !one.getAttribute("aria-label")).length,
    faint: all("main *:not(svg *), header *").filter((one) => hasText(one) && contrast(one) < 4.5).map((one) => `${one.className}: ${one.textContent.trim().slice(0, 40)}`),
    pale: all("figure svg text, svg.drawn text").filter((one) => contrast(one, "fill") < 4.5).map((one) => one.textContent),
    unseen: all("figure svg circle").filter((one) => contrast(one, "fill") < 3).map((one) => one.textContent),
    twice: ids.filter((id, place) => ids.indexOf(id) !== place),
  };
};
