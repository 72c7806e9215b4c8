// Fetches a page that is followed again every two seconds and puts in the parts that changed; what is unfolded, typed or focused stays so.
const EVERY_MS = 2000;
const notice = document.getElementById("notice");

function put(old, fresh) {
  if (!fresh || fresh.innerHTML === old.last) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const typed = [...old.querySelectorAll("input, textarea")].some((one) => one.value !== one.defaultValue);
  if (typed || focused?.matches("input, textarea, select")) return;
  const open = [...old.querySelectorAll("details[open]")].map((one) => one.id);
  const scrolled = [...old.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
  old.innerHTML = old.last = fresh.innerHTML;
  for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
  [...old.querySelectorAll(".scroll")].forEach((one, place) => scrolled[place] && one.scrollTo(...scrolled[place]));
  const address = focused?.getAttribute("href");
  if (address) [...old.querySelectorAll("a")].find((one) => one.getAttribute("href") === address)?.focus();
}

async function follow() {
  try {
    const answer = await fetch(location.href, { cache: "no-cache" });
    notice.hidden = answer.ok;
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-part]")) put(part, page.getElementById(part.id));
      if (!page.querySelector("main[data-live]")) return;
    }
  } catch (error) {
    notice.hidden = false;
  }
  setTimeout(follow, EVERY_MS);
}

if (document.querySelector("main[data-live]")) {
  for (const part of document.querySelectorAll("[data-part]")) part.last = part.innerHTML;
  setTimeout(follow, EVERY_MS);
}
