// What the canvases share: colours of the style sheet, and sharp pixels at any size of the window.

/** The colours of the style sheet now: they change with the colour scheme. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  return new Proxy({}, { get: (known, name) => (known[name] ??= style.getPropertyValue(`--${name}`).trim()) });
}

/** A canvas that fills its place; `draw(context, width, height)` is called when it must be drawn anew. */
export class Canvas {
  constructor(element, draw) {
    this.element = element;
    this.draw = draw;
    this.size = [0, 0];
    new ResizeObserver(() => this.fit()).observe(element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.element;
    const scale = devicePixelRatio || 1;
    if (!width || !height) return;
    this.size = [width, height];
    this.element.width = Math.round(width * scale);
    this.element.height = Math.round(height * scale);
    this.paint();
  }

  paint() {
    const [width, height] = this.size;
    if (!width) return;
    const context = this.element.getContext("2d");
    context.setTransform(this.element.width / width, 0, 0, this.element.height / height, 0, 0);
    context.clearRect(0, 0, width, height);
    this.draw(context, width, height);
  }
}
