// Airflow's UI shows the pages in a frame. Links out of the frame, and Airflow's theme, need some help.

const outer = window.parent === window ? null : window.parent;

/** Opens a link in the window around the frame; without a frame it is an ordinary link. */
export function openOutside(link) {
  link.addEventListener("click", (event) => {
    if (!outer) return;
    event.preventDefault();
    const own = outer.document.createElement("a");
    own.href = link.href;
    outer.document.body.append(own);
    own.click();
    own.remove();
  });
}

/** Keeps `page` dark or light, as the UI around it is. */
export function followTheme(page) {
  if (!outer) return;
  const root = outer.document.documentElement;
  const follow = () => {
    const isDark = root.classList.contains("dark") || root.dataset.theme === "dark";
    page.documentElement.style.colorScheme = isDark ? "dark" : "light";
  };
  follow();
  new MutationObserver(follow).observe(root, { attributes: true, attributeFilter: ["class", "data-theme"] });
}
