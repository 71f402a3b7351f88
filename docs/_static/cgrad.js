// Names, for those who listen, of what the theme shows as a sign alone; the search button is called what it says.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll(".bd-sidebar summary"))
    summary.setAttribute("aria-label", "Pages under " + summary.closest("li").querySelector("a").textContent);
  for (const button of document.querySelectorAll(".search-button-field"))
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
});
