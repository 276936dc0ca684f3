export const gate = ({ side = "left", ...rest } = {}) => ({ side, open: rest?.open ?? false });
export async function* gates(names) {
  for await (const name of names) yield gate({ side: name });
}
