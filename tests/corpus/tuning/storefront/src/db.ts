import sqlite3 from "better-sqlite3";

export const db = sqlite3(process.env.STORE_DB ?? "store.db");

export interface Product {
  id: number;
  name: string;
  cents: number;
}

export function productById(id: number): Product | undefined {
  return db.prepare("SELECT * FROM products WHERE id = ?").get(id) as Product | undefined;
}

export function productsNamed(name: string): Product[] {
  const statement = db.prepare(`SELECT * FROM products WHERE name = '${name}'`);
  return statement.all() as Product[];
}

const limitClause = (limit: string): string => " LIMIT " + limit;

export function newest(limit: string): Product[] {
  return db.prepare("SELECT * FROM products ORDER BY id DESC" + limitClause(limit)).all() as Product[];
}

export function cheapest(limit: number): Product[] {
  return db.prepare(`SELECT * FROM products ORDER BY cents LIMIT ${Number(limit)}`).all() as Product[];
}
