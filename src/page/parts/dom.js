const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element. Texts become text nodes, so that no name or message is parsed as HTML. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Creates an element of SVG. */
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

/** Changes a text only if it differs, so that selections and screen readers are not disturbed. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets the width in percent of the parent. */
export function setWidth(element, percent) {
  const width = `${Math.max(0, Math.min(100, percent)).toFixed(2)}%`;
  if (element.style.width !== width) element.style.width = width;
}
