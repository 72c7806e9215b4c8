// Fetches a page that is followed again every two seconds and puts in what changed; what is unfolded or focused stays so.
const main = document.querySelector("main[data-live]");
async function follow() {
  try {
    const answer = await fetch(location.href, { headers: { "x-followed": "1" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main");
    if (answer.ok && fresh && fresh.innerHTML !== main.dataset.last) {
      const open = [...main.querySelectorAll("details[open]")].map((one) => one.id);
      if (!main.contains(document.activeElement) || document.activeElement.tagName !== "INPUT") {
        main.innerHTML = fresh.innerHTML;
        for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
      }
      main.dataset.last = fresh.innerHTML;
    }
    if (fresh && !fresh.hasAttribute("data-live")) return;
  } catch (error) {
    document.title = "(not reached) " + document.title.replace("(not reached) ", "");
  }
  setTimeout(follow, 2000);
}
if (main) setTimeout(follow, 2000);
