// The page Data quality: the report from the lake, in a frame in which no script can run.
import { followTheme, openOutside } from "./links.js";

for (const link of document.querySelectorAll("a.outside")) openOutside(link);
followTheme(document);
const report = document.getElementById("report");
if (report) {
  const follow = () => followTheme(report.contentDocument);
  report.addEventListener("load", follow);
  follow();
}
