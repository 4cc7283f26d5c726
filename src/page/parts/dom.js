const SVG = 'http://www.w3.org/2000/svg';

/** An element. Texts become text nodes: nothing that a tenant chose is ever read as HTML. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Changes a text only where it differs: selections and screen readers stay undisturbed. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Width in percent of what the element lies in. */
export function setWidth(element, percent) {
  const width = `${Math.max(0, Math.min(100, percent)).toFixed(2)}%`;
  if (element.style.width !== width) element.style.width = width;
}
