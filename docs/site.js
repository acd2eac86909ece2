// Opens folded parts of a page in which the search has marked a word.
new MutationObserver(() => {
  for (const mark of document.querySelectorAll("details:not([open]) mark")) {
    mark.closest("details").open = true;
  }
}).observe(document.querySelector("article") || document.body, { childList: true, subtree: true });
