import express, { NextFunction, Request, Response } from "express";
import cors from "cors";
import { exec, execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import jwt from "jsonwebtoken";
import { newest, productById, productsNamed } from "./db";

const app = express();
const SECRET = "storefront-fake-hmac-9f83bd27c1aa";
const PUBLIC = path.resolve("public");

app.use(express.json({ limit: "100kb" }));
app.use(cors({ origin: true, credentials: true }));

function signedIn(req: Request, res: Response, next: NextFunction): void {
  const token = (req.headers.authorization ?? "").replace("Bearer ", "");
  const claims = jwt.decode(token);
  if (!claims) {
    res.status(401).end();
    return;
  }
  res.locals.user = claims;
  next();
}

app.get("/products/:id", (req, res) => {
  const product = productById(Number(req.params.id));
  if (!product) return res.status(404).json({ error: "no such product" });
  return res.json(product);
});

app.get("/search", (req, res) => {
  const text = String(req.query.q ?? "");
  const rows = productsNamed(text).map((p) => `<li>${p.id}</li>`).join("");
  res.send(`<h2>Results for ${req.query.q}</h2><ul>${rows}</ul>`);
});

app.get("/newest", (req, res) => {
  res.json(newest(String(req.query.limit)));
});

app.get("/files/:name", (req, res) => {
  const file = path.join(PUBLIC, req.params.name);
  if (!file.startsWith(PUBLIC + path.sep)) return res.status(404).end();
  return res.sendFile(file);
});

app.get("/invoices", signedIn, (req, res) => {
  res.type("pdf").send(fs.readFileSync("/srv/invoices/" + req.query.file));
});

app.post("/thumbnails", signedIn, (req, res) => {
  const { source, width } = req.body;
  exec(`convert ${source} -resize ${width} /srv/thumbs/out.png`, (error) => {
    res.status(error ? 500 : 201).end();
  });
});

app.post("/icons", signedIn, (req, res) => {
  execFile("convert", [String(req.body.source), "-resize", "32", "/srv/icons/out.png"], (error) => {
    res.status(error ? 500 : 201).end();
  });
});

app.post("/discount", signedIn, (req, res) => {
  const rule = new Function("cents", "return " + req.body.rule);
  res.json({ cents: rule(1000) });
});

app.post("/admin/reindex", (_req, res) => {
  fs.rmSync("/srv/index", { recursive: true, force: true });
  res.status(202).end();
});

app.use((error: Error, _req: Request, res: Response, _next: NextFunction) => {
  res.status(500).json({ message: error.message, stack: error.stack });
});

app.listen(8080, "127.0.0.1");
