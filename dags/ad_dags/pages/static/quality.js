// The page Data quality: the report of the lake in a frame of its own, in which nothing can run.
import { followTheme, openOutside } from "./links.js";

for (const link of document.querySelectorAll("a.outside")) openOutside(link);
followTheme(document);
const report = document.getElementById("report");
if (report) {
  const follow = () => followTheme(report.contentDocument);
  report.addEventListener("load", follow);
  follow();
}
