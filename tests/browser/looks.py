"""What is wrong with how a page looks, measured in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

_CLIPPED = """
() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
  }).map(one => one.textContent);
})
"""

_FAINT = """
() => {
  const channel = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = rgb => { const [r, g, b] = rgb.map(channel); return 0.2126*r + 0.7152*g + 0.0722*b };
  const read = css => css.match(/[\\d.]+/g).map(Number);
  const ground = one => {
    for (; one; one = one.parentElement) {
      const [r, g, b, a = 1] = read(getComputedStyle(one).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('h1,h2,h3,p,td,th,li,b,span,figcaption,a,text')]
    .filter(one => one.textContent.trim())
    .filter(one => {
      const style = getComputedStyle(one);
      const ink = light(read(one.tagName === 'text' ? style.fill : style.color).slice(0, 3));
      const paper = light(ground(one));
      return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05) < 4.5;
    })
    .map(one => one.textContent);
}
"""


_NARROWER = """
() => [...document.querySelectorAll('svg.chart')].filter(svg => svg.getBoundingClientRect().width)
  .filter(svg => svg.getBoundingClientRect().width < svg.closest('figure').clientWidth - 1)
  .map(svg => svg.getAttribute('aria-label'))
"""

_SMALL = """
least => [...document.querySelectorAll('svg text')].filter(one => one.textContent.trim())
  .filter(one => one.getBoundingClientRect().width
    && one.getScreenCTM().a * parseFloat(getComputedStyle(one).fontSize) < least)
  .map(one => one.textContent)
"""


def scrolls_sideways(page: Page) -> bool:
    """Tell whether the page is wider than its window."""
    return bool(page.evaluate(_SIDEWAYS) > 0)


def clipped_texts(page: Page) -> list[str]:
    """Return the texts of charts that reach out of their drawing."""
    return list(page.evaluate(_CLIPPED))


def faint_texts(page: Page) -> list[str]:
    """Return the texts with less contrast than people with weak eyes need (4.5 to 1)."""
    return list(page.evaluate(_FAINT))


def narrower_charts(page: Page) -> list[str]:
    """Return the titles of charts that do not fill their figure."""
    return list(page.evaluate(_NARROWER))


def small_texts(page: Page, least: float = 8.0) -> list[str]:
    """Return the texts of drawings that are shown with letters of fewer pixels than this."""
    return list(page.evaluate(_SMALL, least))
