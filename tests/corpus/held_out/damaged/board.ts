export function board(lines: string[]): string {
  const rows = lines.map((line) => `<li>${line}</li>`;
  return rows.join("");
}
