// The pages stand in a frame of Airflow's UI, which lets a frame open nothing outside of itself; and it has a theme.

const outer = window.parent === window ? null : window.parent;

/** Follows a link in the window around the frame; without a frame the link is an ordinary one. */
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

/** Makes `page` dark or light as the UI around it is, and keeps it so. */
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
