function order(dish, count) {
  const line = { dish, count };
  return `${line.dish} × ${line.count};
}
