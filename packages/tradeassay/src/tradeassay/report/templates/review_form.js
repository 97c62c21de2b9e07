(() => {
  const form = document.getElementById("review");
  const cell = (text) => `"${String(text).replaceAll('"', '""')}"`;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const rater = form.elements.rater.value.trim();
    const lines = [["item", "strategy", "rater", "fidelity", "risk", "comment"]];
    let open = 0;
    for (const one of form.querySelectorAll("section[data-item]")) {
      const value = (name) => one.querySelector(`[data-mark="${name}"]`).value;
      if (!value("fidelity") || !value("risk")) open += 1;
      lines.push([one.dataset.item, one.dataset.strategy, rater, value("fidelity"), value("risk"), value("comment")]);
    }
    const link = document.createElement("a");
    const text = lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = `marks-${rater.replace(/[^A-Za-z0-9]+/g, "-") || "rater"}.csv`;
    link.click();
    document.getElementById("saved").textContent = open ? `saved; ${open} not fully marked` : "saved";
  });
})();
